import { asFault, type Fault, fault } from '../core/fault.ts'
import { FAULTS } from '../core/fault-catalogue.ts'
import { formatIssue, repositoryOf } from '../core/issue-key.ts'
import {
  COMMIT_IDENTITY,
  type Journal,
  type Publication,
  type PublishStage,
} from '../core/journal.ts'
import { findLabel, isSameLabel } from '../core/labels.ts'
import type { Git, GitHub, PullRequest } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import { carriesMarker, commentMarkerOf } from './freeze-publication.ts'

/** What a look at the world says about a stage. A look that could not be completed throws instead. */
export type Probe =
  | Readonly<{ kind: 'found'; marker: string }>
  | Absent
  | Readonly<{ kind: 'contradiction'; fault: Fault }>

/** It is not there; `name` is what has to be acted on, as GitHub calls it now. */
export type Absent = Readonly<{ kind: 'absent'; name?: string }>

/** A run at the point where a stage is probed or performed. */
export type StageInput = Readonly<{
  git: Git
  github: GitHub
  journal: Journal
  publication: Publication
  base: NonNullable<Journal['base']>
}>

export type Stage = Readonly<{
  /** Leaves this machine, so it needs an intent; a local stage is repeated freely (P§3). */
  remote: boolean
  probe(input: StageInput): Promise<Probe>
  /** Returns the marker to record. */
  perform(input: StageInput, seen: Absent): Promise<string>
  /** Of a write that GitHub may take twice: removes all but the first, and names what was removed. */
  removeTwins?(input: StageInput): Promise<readonly string[]>
}>

const ABSENT: Absent = { kind: 'absent' }

const found = (marker: string): Probe => ({ kind: 'found', marker })

/** The stages of P§3: found when, performed how. `run-stages.ts` walks them. */
export const STAGES = {
  committed: {
    remote: false,
    // Its id is a function of the journal, so committing again is the probe.
    probe: async () => ABSENT,
    perform: async ({ git, journal, publication, base }) =>
      git.commitTree(base.storePath, {
        treeOid: required(publication.treeOid, 'tree'),
        parentOid: base.oid,
        message: publication.commitMessage,
        author: COMMIT_IDENTITY,
        dateSeconds: publication.commitDateSeconds,
        keepAs: `refs/runs/${journal.runId}`,
      }),
  },

  pushed: {
    remote: true,
    probe: async ({ git, journal, base }) => {
      const ours = markerOf(journal, 'committed')
      const there = await git.remoteBranch(base.storePath, journal.branch, journal.remote)
      if (there === null) return ABSENT
      return there === ours
        ? found(ours)
        : { kind: 'contradiction', fault: foreign(journal, there) }
    },
    perform: async ({ git, journal, base }) => {
      const oid = markerOf(journal, 'committed')
      await git.pushNewBranch(base.storePath, oid, journal.branch, journal.remote)
      return oid
    },
  },

  pr_created: {
    remote: true,
    probe: async (input) => {
      const pull = await findPull(input)
      return pull === null ? ABSENT : found(String(pull.number))
    },
    perform: async (input) => {
      const { github, journal, publication, base } = input
      const repository = repositoryOf(journal.key)
      const answer = await github.createPullRequest(repository, {
        title: publication.pullTitle,
        body: publication.pullBody,
        headBranch: journal.branch,
        baseBranch: base.branch,
      })
      if (answer.kind === 'created') return String(answer.pull.number)
      const request = `creating the pull request of ${journal.branch}`
      if (answer.kind === 'no-commits') {
        throw fault('github/refused', {
          request,
          status: 422,
          reason: 'no commits',
          effect: 'none',
        })
      }
      // GitHub has it, though the list may not show it yet (cases C7, C8).
      const pull = await findPull(input)
      if (pull !== null) return String(pull.number)
      throw fault('github/bad-answer', {
        request,
        reason: 'it exists but is not listed',
        effect: 'unknown',
      })
    },
  },

  commented: {
    remote: true,
    probe: async ({ github, journal, publication }) => {
      const [first] = await findComments(github, journal, publication)
      return first === undefined ? ABSENT : found(String(first))
    },
    perform: async ({ github, journal, publication }) => {
      const body = `${pullLine(journal)}${publication.comment}`
      return String((await github.createComment(journal.key, body)).id)
    },
    removeTwins: async ({ github, journal, publication }) => {
      const found = await findComments(github, journal, publication)
      // The one we were answered with may not be listed yet; its id is known all the same.
      const answered = journal.intent?.answered ?? null
      const all = new Set(answered === null ? found : [...found, Number(answered)])
      const [, ...younger] = [...all].sort((a, b) => a - b)
      const removed: string[] = []
      for (const id of younger) {
        if (await deleted(github, journal, id)) removed.push(String(id))
      }
      return removed
    },
  },

  label_removed: {
    remote: true,
    probe: async ({ github, journal, publication }) => {
      if (await didOurselves(github, journal, publication, 'unlabeled')) return found('removed')
      const issue = await issueOf(github, journal)
      // As the issue spells it now: GitHub finds a label by its exact name.
      const name = findLabel(issue.labels, journal.label)
      return name === null ? found('absent') : { kind: 'absent', name }
    },
    perform: async ({ github, journal }, { name = journal.label }) => {
      await github.removeLabel(journal.key, name)
      return 'removed'
    },
  },

  closed: {
    remote: true,
    probe: async ({ github, journal, publication }) => {
      if (await didOurselves(github, journal, publication, 'closed')) return found('closed')
      const issue = await issueOf(github, journal)
      return issue.isOpen ? ABSENT : found('closed-already')
    },
    perform: async ({ github, journal }) => {
      await github.closeIssue(journal.key)
      return 'closed'
    },
  },
} as const satisfies Record<PublishStage, Stage>

/** false = GitHub will not let us; a comment too many holds up nothing. */
async function deleted(github: GitHub, { key }: Journal, id: number): Promise<boolean> {
  try {
    await github.deleteComment(repositoryOf(key), id)
    return true
  } catch (thrown) {
    if (FAULTS[asFault(thrown).code].class !== 'terminal') throw thrown
    return false
  }
}

/** An issue that is not there now proves nothing about its label or its state. Faults: github/not-found. */
async function issueOf(github: GitHub, { key }: Journal) {
  const issue = await github.issue(key)
  if (issue !== null) return issue
  throw fault('github/not-found', { what: formatIssue(key) })
}

/** The marker of a stage that must have been recorded. */
export function markerOf(journal: Journal, stage: PublishStage): string {
  return required(journal.markers[stage] ?? null, stage)
}

function required(value: string | null, what: string): string {
  if (value !== null) return value
  throw fault('internal/unexpected', { reason: `the journal has no ${what}` })
}

function foreign(journal: Journal, there: string): Fault {
  const ours = markerOf(journal, 'committed')
  return fault('git/foreign-branch', {
    branch: journal.branch,
    found: there,
    expected: ours,
    kept: `${ours} in ${journal.base?.storePath ?? ''}`,
  })
}

/** Our pull request for the branch; GitHub's filter returns everything when it is malformed (P§3). */
async function findPull({ github, journal, publication }: StageInput): Promise<PullRequest | null> {
  const repository = repositoryOf(journal.key)
  const facts = await github.repository(repository)
  const { value } = await github.pullRequestsByHead(repository, journal.branch)
  const ours = value.filter(
    (pull) =>
      pull.headBranch === journal.branch &&
      pull.authorId === publication.actorId &&
      (facts === null || pull.headRepositoryId === facts.id),
  )
  const marker = {
    kind: 'pull-request',
    runId: journal.runId,
    generation: journal.generation,
  } as const
  const marked = ours.find((pull) => carriesMarker(pull.body, marker))
  return marked ?? ours.find((pull) => pull.state === 'open') ?? null
}

function pullLine(journal: Journal): string {
  const number = journal.markers.pr_created
  return number === undefined ? '' : `Pull request #${number} is ready for review.\n\n`
}

/**
 * After an open intent: whether our account did it since. A human's later reversal then stands, because
 * the stage counts as done (P§3).
 */
async function didOurselves(
  github: GitHub,
  journal: Journal,
  publication: Publication,
  kind: 'unlabeled' | 'closed',
): Promise<boolean> {
  if (journal.intent === null) return false
  const since = fromTimestamp(journal.intent.serverTime) - CLOCK_SLACK_MS
  const { value } = await github.timeline(journal.key)
  return value.some(
    (event) =>
      event.kind === kind &&
      event.actorId === publication.actorId &&
      event.createdAt >= since &&
      (kind === 'closed' || (event.label !== null && isSameLabel(event.label, journal.label))),
  )
}

/** GitHub's times have whole seconds, and its servers differ a little. */
const CLOCK_SLACK_MS = 2_000

/** How far back from an intent a comment of ours may be dated (P§3). */
const LOOK_BACK_MS = 60_000

/**
 * The ids of our comments of this run, oldest first; none = it certainly is not there. The marker counts only
 * from our own account. Unless a first write is open, the whole list is read and must be as long as the issue says,
 * else the list is behind and nothing is known.
 * Faults: github/bad-answer when the list is behind; github/*.
 */
export async function findComments(
  github: GitHub,
  journal: Journal,
  publication: Publication,
): Promise<readonly number[]> {
  const { intent } = journal
  // Of a repeated write the first one is older than the intent, so all are looked at.
  const since = intent?.attempt === 1 ? fromTimestamp(intent.serverTime) - LOOK_BACK_MS : null
  const { value } =
    since === null ? await github.comments(journal.key) : await github.comments(journal.key, since)
  const marker = commentMarkerOf(journal, publication.plan)
  const ours = value
    .filter(({ authorId, body }) => authorId === publication.actorId && body.includes(marker))
    .map(({ id }) => id)
  if (ours.length > 0) return ours.sort((a, b) => a - b)

  if (since === null) {
    const issue = await github.issue(journal.key)
    if (issue !== null && value.length < issue.commentCount) {
      throw fault('github/bad-answer', {
        request: `the comments of ${formatIssue(journal.key)}`,
        reason: `${value.length} of ${issue.commentCount} were listed`,
      })
    }
  }
  return []
}
