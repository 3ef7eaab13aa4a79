import { RUN_STAGES } from '../core/journal.ts'
import { PHASES } from '../core/queue-state.ts'
import { oneLine } from './one-line.ts'
import type { ShownEntry } from './show-entry.ts'
import type { QueueShow, ShownRun } from './show-issue.ts'

const WAITS = {
  backoff: 'it failed before',
  limit: 'GitHub limits requests',
  circuit: 'its repository or GitHub fails, see: caduceus status',
} as const satisfies Record<NonNullable<ShownEntry['next_attempt']>['why'], string>

/** `queue show` for people, without fields that are unknown or empty. */
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
  const { base, open_intent: intent, trouble, commit_kept: commit } = journal
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
    commit: commit && `${commit.ref} in ${commit.store}`,
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
