import { asFault, type Fault, fault, writeFault } from '../core/fault.ts'
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
import { carriesMarker, commentMarkerOf } from './render-publication.ts'

/** What a look at the world says about a stage. A look that could not be completed throws instead. */
export type ProbeResult =
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
  probe(input: StageInput): Promise<ProbeResult>
  /** Returns the marker to record. */
  perform(input: StageInput, seen: Absent): Promise<string>
  /** Of a write that GitHub may take twice: removes all but the first, and names what was removed. */
  removeDuplicates?(input: StageInput): Promise<readonly string[]>
}>

const ABSENT: Absent = { kind: 'absent' }

const found = (marker: string): ProbeResult => ({ kind: 'found', marker })

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
      const { branch, remote } = journal
      const expected = markerOf(journal, 'committed')
      const there = await git.remoteBranch(base.storePath, branch, remote)
      if (there === null) return ABSENT
      if (there === expected) return found(expected)
      const details = { branch, found: there, expected, kept: retainedAs(journal) }
      return { kind: 'contradiction', fault: fault('git/foreign-branch', details) }
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
      const pull = await ownPull(input, await pullsOfBranch(input))
      return pull === null ? ABSENT : found(String(pull.number))
    },
    perform: async (input) => {
      const { github, journal, publication, base } = input
      const answer = await github.createPullRequest(repositoryOf(journal.key), {
        title: publication.pullTitle,
        body: publication.pullBody,
        headBranch: journal.branch,
        baseBranch: base.branch,
      })
      if (answer.kind === 'created') return String(answer.pull.number)
      if (answer.kind === 'no-commits') {
        const request = `creating the pull request of ${journal.branch}`
        throw writeFault('none', 'github/refused', { request, status: 422, reason: 'no commits' })
      }
      const pulls = await pullsOfBranch(input)
      const pull = await ownPull(input, pulls)
      if (pull === null) throw notOurs(input, pulls)
      return String(pull.number)
    },
  },

  commented: {
    remote: true,
    probe: async (input) => {
      const [first] = await findComments(input)
      return first === undefined ? ABSENT : found(String(first))
    },
    perform: async ({ github, journal, publication }) => {
      const pull = journal.markers.pr_created
      const lead = pull === undefined ? '' : `Pull request #${pull} is ready for review.\n\n`
      return String((await github.createComment(journal.key, lead + publication.comment)).id)
    },
    removeDuplicates: async (input) => {
      const { github, journal } = input
      const listed = await findComments(input)
      // The one we were answered with may not be listed yet; its id is known all the same.
      const answered = journal.intent?.answered ?? null
      const all = new Set(answered === null ? listed : [...listed, Number(answered)])
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
    probe: async (input) => {
      if (await didOurselves(input, 'unlabeled')) return found('removed')
      const { github, journal } = input
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
    probe: async (input) => {
      if (await didOurselves(input, 'closed')) return found('closed')
      const issue = await issueOf(input.github, input.journal)
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

/** Where our commit is, whatever becomes of its branch. */
function retainedAs(journal: Journal): string {
  return `${markerOf(journal, 'committed')} in ${journal.base?.storePath ?? ''}`
}

/**
 * Those that we did: our account as it was when the texts were frozen, or the one whose token has been put in
 * its place since. That one is asked for only when somebody else did one of them.
 */
async function doneByUs<T>(
  { github, publication: { actorId } }: StageInput,
  things: readonly T[],
  doerOf: (thing: T) => number | null,
): Promise<readonly T[]> {
  if (things.every((thing) => doerOf(thing) === actorId)) return things
  const { id } = await github.viewer()
  return things.filter((thing) => doerOf(thing) === actorId || doerOf(thing) === id)
}

/** Everybody's of our branch; GitHub's filter returns everything when it is malformed (P§3). */
async function pullsOfBranch({ github, journal }: StageInput): Promise<readonly PullRequest[]> {
  const repository = repositoryOf(journal.key)
  const facts = await github.repository(repository)
  const { value } = await github.pullRequestsByHead(repository, journal.branch)
  return value.filter(
    ({ headBranch, headRepositoryId }) =>
      headBranch === journal.branch && (facts === null || headRepositoryId === facts.id),
  )
}

/** With our marker, or open and with a text that somebody has edited since. */
async function ownPull(input: StageInput, pulls: readonly PullRequest[]) {
  const { runId, generation } = input.journal
  const marker = { kind: 'pull-request', runId, generation } as const
  const marked = pulls.filter(({ body }) => carriesMarker(body, marker))
  const [own] = await doneByUs(input, marked, ({ authorId }) => authorId)
  const { actorId } = input.publication
  const edited = pulls.find(({ authorId, state }) => authorId === actorId && state === 'open')
  return own ?? edited ?? null
}

/** GitHub has one that is not ours, which stays; or it does not list it yet (cases C7, C8). */
function notOurs({ journal, base }: StageInput, pulls: readonly PullRequest[]): Fault {
  const { branch } = journal
  const theirs = pulls.find((pull) => pull.state === 'open' && pull.baseBranch === base.branch)
  if (theirs === undefined) return writeFault('unknown', 'github/pull-unlisted', { branch })
  const { number } = theirs
  return writeFault('none', 'github/foreign-pull', { number, branch, kept: retainedAs(journal) })
}

/**
 * After an open intent: whether our account did it since. A human's later reversal then stands, because
 * the stage counts as done (P§3).
 */
async function didOurselves(input: StageInput, kind: 'unlabeled' | 'closed'): Promise<boolean> {
  const { github, journal } = input
  if (journal.intent === null) return false
  const since = fromTimestamp(journal.intent.serverTime) - CLOCK_SLACK_MS
  const { value } = await github.timeline(journal.key)
  const done = value.filter(
    (event) =>
      event.kind === kind &&
      event.createdAt >= since &&
      (kind === 'closed' || (event.label !== null && isSameLabel(event.label, journal.label))),
  )
  return (await doneByUs(input, done, ({ actorId }) => actorId)).length > 0
}

/** GitHub's times have whole seconds, and its servers differ a little. */
const CLOCK_SLACK_MS = 2_000

/** How far back from an intent a comment of ours may be dated (P§3). */
const LIST_BACK_MS = 60_000

/**
 * The ids of our comments of this run, oldest first; none = it is not there. The marker counts only from our
 * own account. Faults: github/comments-unlisted when the list is behind; github/*.
 */
async function findComments(input: StageInput): Promise<readonly number[]> {
  const { github, journal, publication } = input
  const { intent, key } = journal
  // Of a repeated write the first one is older than the intent, so all are looked at.
  const isFirst = intent?.attempt === 1
  const since = isFirst ? fromTimestamp(intent.serverTime) - LIST_BACK_MS : undefined
  const { value } = await github.comments(key, since)
  const marker = commentMarkerOf(journal, publication.plan)
  const marked = value.filter(({ body }) => body.includes(marker))
  const ours = await doneByUs(input, marked, ({ authorId }) => authorId)
  // One that is missing would be sent again, or stay as a twin.
  if (!isFirst && ours.length < (intent?.attempt ?? 1)) await requireWhole(input, value.length)
  return ours.map(({ id }) => id).sort((a, b) => a - b)
}

/** Failed looks in a row after which a short list is taken as it is; of a write sent n times, n times as many. */
const SHORT_LISTS = 3

/**
 * A list shorter than the issue says is behind, and nothing is known – or the issue counts what GitHub never
 * lists, such as comments of hidden accounts. Believing it in the end makes no twin: while no write is open
 * none was sent, and an open one still has to wait for the settle time and two looks.
 */
async function requireWhole({ github, journal }: StageInput, listed: number): Promise<void> {
  const { key, trouble, intent } = journal
  if ((trouble?.count ?? 0) >= SHORT_LISTS * (intent?.attempt ?? 1)) return
  const count = (await github.issue(key))?.commentCount ?? 0
  if (listed >= count) return
  throw fault('github/comments-unlisted', { issue: formatIssue(key), listed, count })
}
