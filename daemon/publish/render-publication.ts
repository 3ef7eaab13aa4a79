import { fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, Publication, PublishPlan } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import { neutralizePlain } from '../core/neutralize.ts'
import type { Actor, CapturedTree } from '../core/ports.ts'
import { checkVoice, type OutgoingText, shortenCharacters } from '../core/voice.ts'
import { renderBody } from './render-body.ts'
import type { PublishPolicy } from './validate-tree.ts'

/** What the worker said, as the publication needs it. */
export type Report = Readonly<{
  summary: string
  commitMessage: string
  pullRequestTitle: string
  artifacts: Readonly<Record<string, unknown>>
}>

/** The comment of each plan, and which texts leave with it. */
const PLANS = {
  code: { marker: 'completion', lead: '', texts: ['title', 'commit', 'body', 'comment'] },
  findings: { marker: 'findings', lead: '', texts: ['comment'] },
  'no-changes': {
    marker: 'no-changes',
    lead: 'No change was needed, or none could be made. Nothing was published.',
    texts: ['comment'],
  },
  notice: { marker: 'notice', lead: '', texts: ['comment'] },
} as const satisfies Record<
  PublishPlan,
  { marker: MarkerKind; lead: string; texts: readonly (keyof ReturnType<typeof outgoing>)[] }
>

/** Which marker the comment of a plan carries. */
export function commentMarkerOf(journal: Journal, plan: PublishPlan): string {
  const { runId, generation } = journal
  return renderMarker({ kind: PLANS[plan].marker, runId, generation })
}

const REFERENCE = { finalize: 'Closes', merge: 'Closes', never: 'Refs' } as const

/** Room left in a frozen comment for the line that names the pull request, known only later. */
const LEAD_CHARACTERS = 200

/**
 * Every outgoing text and date of a run, decided once, before the first publish stage, so that a later
 * process says the same (design §9). All of it passes the public-voice rule here.
 * @param captured null when no commit is published
 * @param now milliseconds since the epoch
 * Faults: publish/forbidden-word, publish/too-long.
 */
export function renderPublication(
  journal: Journal,
  report: Report,
  plan: PublishPlan,
  captured: CapturedTree | null,
  actor: Actor,
  policy: PublishPolicy,
  now: number,
): Publication {
  const { runId, generation, key } = journal
  const shared = { summary: report.summary, artifacts: report.artifacts }
  const submodules = captured?.submodulesKept ?? []
  const publication = {
    plan,
    commitMessage: neutralizePlain(report.commitMessage).trim(),
    commitDateSeconds: Math.floor(now / 1000),
    pullTitle: shortenCharacters(
      neutralizePlain(report.pullRequestTitle).trim(),
      LIMITS.titleCharacters,
    ),
    pullBody: renderBody({
      ...shared,
      lead: `${REFERENCE[policy.closeIssue]} #${key.number}`,
      lines: submodules.map((path) => `The submodule \`${path}\` stays where it was.`),
      marker: renderMarker({ kind: 'pull-request', runId, generation }),
      maxCharacters: LIMITS.bodyCharacters,
    }),
    comment: renderBody({
      ...shared,
      lead: PLANS[plan].lead,
      lines: [],
      marker: commentMarkerOf(journal, plan),
      maxCharacters: LIMITS.bodyCharacters - LEAD_CHARACTERS,
    }),
    actorId: actor.id,
    actorLogin: actor.login,
    treeOid: captured?.treeOid ?? null,
    changedFiles: captured?.changes.length ?? 0,
  }
  const texts = outgoing(publication)
  requireVoice(
    [
      ...PLANS[plan].texts.map((name) => texts[name]),
      // As the worker wrote it too: a term with a sign in it no longer matches once that is made inert.
      ...PLANS[plan].texts.map((name) => ({
        where: texts[name].where,
        text: report[SOURCES[name]],
        limit: Number.POSITIVE_INFINITY,
        unit: 'bytes' as const,
      })),
    ],
    policy.forbiddenStrings,
    journal,
  )
  return publication
}

/**
 * The publication of a run that something on GitHub contradicts: one comment that says so, and nothing
 * else (P§3). null = a forbidden word keeps even that from being said.
 */
export function renderNotice(
  journal: Journal,
  publication: Publication,
  text: string,
  policy: PublishPolicy,
): Publication | null {
  const comment = renderBody({
    lead: neutralizePlain(text),
    summary: '',
    lines: [],
    artifacts: {},
    marker: commentMarkerOf(journal, 'notice'),
    maxCharacters: LIMITS.bodyCharacters,
  })
  const notice: Publication = { ...publication, plan: 'notice', comment }
  const verdict = checkVoice([outgoing(notice).comment], policy.forbiddenStrings)
  return verdict.kind === 'fine' ? notice : null
}

/** What of the worker's report each outgoing text is made from. */
const SOURCES = {
  title: 'pullRequestTitle',
  commit: 'commitMessage',
  body: 'summary',
  comment: 'summary',
} as const satisfies Record<keyof ReturnType<typeof outgoing>, keyof Report>

function outgoing(publication: Publication) {
  const body = { limit: LIMITS.bodyCharacters, unit: 'characters' } as const
  return {
    title: {
      where: 'pull request title',
      text: publication.pullTitle,
      limit: LIMITS.titleCharacters,
      unit: 'characters',
    },
    commit: {
      where: 'commit message',
      text: publication.commitMessage,
      limit: LIMITS.commitMessageBytes,
      unit: 'bytes',
    },
    body: { where: 'pull request body', text: publication.pullBody, ...body },
    comment: { where: 'comment', text: publication.comment, ...body },
  } as const satisfies Record<string, OutgoingText>
}

function requireVoice(
  texts: readonly OutgoingText[],
  forbidden: readonly string[],
  journal: Journal,
): void {
  const verdict = checkVoice(texts, forbidden)
  const kept = { tree: journal.treePath, issue: formatIssue(journal.key) }
  if (verdict.kind === 'forbidden') {
    throw fault('publish/forbidden-word', { where: verdict.where, word: verdict.word, ...kept })
  }
  if (verdict.kind === 'too-long') {
    const { where, found, limit, unit } = verdict
    throw fault('publish/too-long', { where, found, limit, unit, ...kept })
  }
}

// Every text we publish carries a marker, so that a later look can tell ours from others' and this run's
// from another's (design §9). A marker counts only from our own account. Its wording names nobody, so
// the public-voice rule never trips over it (R§12 W31).

export type MarkerKind = 'pull-request' | 'completion' | 'findings' | 'no-changes' | 'notice'

export type Marker = Readonly<{ kind: MarkerKind; runId: string; generation: number }>

/** An HTML comment that GitHub does not show. */
export function renderMarker(marker: Marker): string {
  return `<!-- automation-run:${marker.runId} kind:${marker.kind} generation:${marker.generation} -->`
}

/** Whether a text carries exactly this marker. */
export function carriesMarker(text: string, marker: Marker): boolean {
  return text.includes(renderMarker(marker))
}
