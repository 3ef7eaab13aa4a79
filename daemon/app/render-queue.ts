import { RUN_STAGES } from '../core/journal.ts'
import { PHASES } from '../core/queue-state.ts'
import type { QueueList, QueueShow, ShownEntry, ShownRun } from './queue-report.ts'

const NONE = '-'
/** Less of an error than this tells nothing, so a narrower terminal wraps. */
const LEAST_ERROR_WIDTH = 20

const WAITS = {
  backoff: 'it failed before',
  limit: 'GitHub limits requests',
  circuit: 'its repository or GitHub fails, see: caduceus status',
} as const satisfies Record<NonNullable<ShownEntry['next_attempt']>['why'], string>

/**
 * `queue list` for people: a line for each entry under a head.
 * @param width characters of the terminal, to which errors are cut; null = they are left whole
 */
export function renderList({ phase, entries }: QueueList, width: number | null): readonly string[] {
  if (entries.length === 0) {
    return [phase === null ? 'The queue is empty.' : `No issue is in the phase ${phase}.`]
  }
  const rows = [
    ['ISSUE', 'PHASE', 'ATTEMPTS', 'UPDATED', 'NEXT', 'LAST ERROR'],
    ...entries.map((entry) => [
      entry.issue,
      entry.phase,
      String(entry.attempts),
      entry.updated_at,
      nextOf(entry),
      oneLine(entry.last_error?.message ?? NONE),
    ]),
  ]
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows.map((row) => {
    const head = row.slice(0, -1).map((cell, column) => cell.padEnd(widths[column] ?? 0))
    const before = `${head.join('  ')}  `
    return before + cut(row.at(-1) ?? '', width === null ? null : width - before.length)
  })
}

/** Its pull request, or when it goes on and what keeps it until then. */
function nextOf({ phase, next_attempt: next, pull }: ShownEntry): string {
  if (phase === 'queued') return next === null ? 'next tick' : `${next.until} (${next.why})`
  return pull === null ? NONE : `#${pull.number}`
}

function cut(text: string, width: number | null): string {
  if (width === null || text.length <= Math.max(width, LEAST_ERROR_WIDTH)) return text
  return `${text.slice(0, Math.max(width, LEAST_ERROR_WIDTH) - 1)}…`
}

/** Errors carry words of workers and servers, which must not steer the reader's terminal. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g, ' ')
}

/** `queue show` for people: what is unknown or empty is left out. */
export function renderShow(shown: QueueShow): readonly string[] {
  const { pull, last_error: error, degraded, next_attempt: next } = shown
  const from = shown.phase === 'queued' && next === null ? 'the next tick' : null
  const until = next === null ? null : `${next.until} (${next.why}: ${WAITS[next.why]})`
  return [
    `${shown.issue} is ${shown.phase}: ${PHASES[shown.phase].meaning}`,
    ...fields('  ', {
      ticket: `${shown.ticket}, generation ${shown.generation}`,
      attempts: `${shown.attempts}, interruptions ${shown.interruptions}`,
      degraded:
        degraded && `${degraded.count} failures around it in a row, since ${degraded.since}`,
      queued: shown.queued_at,
      updated: shown.updated_at,
      'next attempt': until ?? from,
      'goes on with': shown.resume_run && `run ${shown.resume_run}, without another worker`,
      'pull request': pull && `#${pull.number} ${pull.url}`.trim(),
      'last error': error && `${error.at} ${error.code}: ${oneLine(error.message)}`,
      'blocked by': shown.blocked_source,
      next: oneLine(shown.next_step),
    }),
    ...(shown.last_run === null ? ['  It had no run yet.'] : runLines(shown.last_run)),
  ]
}

function runLines(run: ShownRun): readonly string[] {
  const { journal } = run
  const by = run.pid === null ? 'a process' : `process ${run.pid}`
  const claim = run.claim_held ? `held by ${by}` : 'free: no process is at work on it'
  return [
    `  last run ${run.run_id}`,
    ...fields('    ', { claim, problem: run.problem && oneLine(run.problem) }),
    ...(journal === null ? [] : journalLines(journal)),
    ...fields('    ', run.paths),
  ]
}

function journalLines(journal: NonNullable<ShownRun['journal']>): readonly string[] {
  const { base, open_intent: intent, trouble, commit_kept: kept } = journal
  const markers = Object.entries(journal.markers).map(([stage, left]) => `${stage} ${left}`)
  return fields('    ', {
    stage: `${journal.stage}: ${RUN_STAGES[journal.stage].meaning}`,
    attempt: `${journal.attempt} of generation ${journal.generation}${journal.dry_run ? ', a dry run' : ''}`,
    created: journal.created_at,
    epoch: `${journal.epoch}, ${journal.adoptions} adoptions without progress`,
    branch: journal.branch,
    base: base && `${base.branch} ${base.oid}`,
    publishes: journal.plan,
    published: markers.join(', '),
    commit: kept && `${kept.ref} in ${kept.store}`,
    'open intent':
      intent &&
      `${intent.stage}, sent before ${intent.deadline_at}; not known whether it took effect`,
    'not before': journal.not_before,
    trouble: trouble && `${trouble.count} times in a row since ${trouble.since}`,
    outcome: outcomeOf(journal),
  })
}

function outcomeOf({ outcome, ended_in: stage }: NonNullable<ShownRun['journal']>): string | null {
  if (stage === null) return outcome
  return outcome === null ? `given up at ${stage}` : `${outcome}, by a fault at ${stage}`
}

/** One line for each field that has a value. */
function fields(
  indent: string,
  values: Readonly<Record<string, string | null>>,
): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${indent}${name.replaceAll('_', ' ')}: ${value}`],
  )
}
