import { asFault, type Fault, fault, isFaultOf, writeFault } from '../core/fault.ts'
import { policyOf } from '../core/fault-catalogue.ts'
import { formatIssue, repositoryOf } from '../core/issue-key.ts'
import { COMMIT_IDENTITY, type PublishAction } from '../core/journal.ts'
import { findLabel } from '../core/labels.ts'
import type { Absent, Look } from '../core/next-write.ts'
import { type ActionInput, markerOf, retainedCommit } from './action-input.ts'
import { findComments } from './find-comments.ts'
import { ownPull, pullsOfBranch, whyNotOurs } from './find-pulls.ts'
import { didOurselves } from './timeline-evidence.ts'

/** What became of a write that was sent. One that went wrong throws; see `effectOf`. */
export type Sent =
  | Readonly<{ kind: 'done'; marker: string }>
  /** Nothing was written, because what is there contradicts the run, for good. */
  | Readonly<{ kind: 'contradiction'; fault: Fault }>

export type Removed =
  | Readonly<{ kind: 'removed'; markers: readonly string[] }>
  | Readonly<{ kind: 'unclear'; fault: Fault }>

/** How one action is looked for and performed. */
export type Action = Readonly<{
  /** Leaves this machine, so it needs an intent; a local action is repeated freely (I6). */
  isRemote: boolean
  look(input: ActionInput): Promise<Look>
  perform(input: ActionInput, seen: Absent): Promise<Sent>
  /** Of a write that GitHub may take twice: removes all but the first. */
  removeDuplicates?(input: ActionInput): Promise<Removed>
}>

const ABSENT: Absent = { kind: 'absent' }

const found = (marker: string): Look => ({ kind: 'found', marker })

const done = (marker: string): Sent => ({ kind: 'done', marker })

/** What a publication consists of: found when, performed how. `run-actions.ts` walks them. */
export const ACTIONS = {
  committed: {
    isRemote: false,
    // Its id is a function of the journal, so committing again is the look.
    look: async () => ABSENT,
    perform: async ({ git, journal, publication, base }) => {
      const { treeOid, commitMessage: message, commitDateSeconds: dateSeconds } = publication
      if (treeOid === null) throw fault('internal/unexpected', { reason: 'no tree was captured' })
      const keepAs = `refs/runs/${journal.runId}`
      const commit = { treeOid, parentOid: base.oid, message, dateSeconds, keepAs }
      return done(await git.commitTree(base.storePath, { ...commit, author: COMMIT_IDENTITY }))
    },
  },

  pushed: {
    isRemote: true,
    look: async (input) => {
      const { branch, remote } = input.journal
      const expected = markerOf(input.journal, 'committed')
      const there = await input.git.remoteBranch(input.base.storePath, branch, remote)
      if (there === null) return ABSENT
      if (there === expected) return found(expected)
      const details = { branch, found: there, expected, kept: retainedCommit(input) }
      return { kind: 'contradiction', fault: fault('git/foreign-branch', details) }
    },
    perform: async ({ git, journal, base }) => {
      const oid = markerOf(journal, 'committed')
      try {
        await git.pushNewBranch(base.storePath, oid, journal.branch, journal.remote)
        return done(oid)
      } catch (thrown) {
        // It came into being since we looked.
        if (!isFaultOf(thrown, 'git/foreign-branch')) throw thrown
        return { kind: 'contradiction', fault: thrown }
      }
    },
  },

  pr_created: {
    isRemote: true,
    look: async (input) => {
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
      if (answer.kind === 'created') return done(String(answer.pull.number))
      if (answer.kind === 'no-commits') {
        const request = `creating the pull request of ${journal.branch}`
        throw writeFault('none', 'github/refused', { request, status: 422, reason: 'no commits' })
      }
      const pulls = await pullsOfBranch(input)
      const pull = await ownPull(input, pulls)
      if (pull !== null) return done(String(pull.number))
      const reason = whyNotOurs(input, pulls)
      if (!isFaultOf(reason, 'github/foreign-pull')) throw reason
      return { kind: 'contradiction', fault: reason }
    },
  },

  commented: {
    isRemote: true,
    look: async (input) => {
      const comments = await findComments(input)
      if (comments.kind === 'unclear') return comments
      const [first] = comments.ids
      return first === undefined ? ABSENT : found(String(first))
    },
    perform: async ({ github, journal, publication }) => {
      const pull = journal.markers.pr_created
      const lead = pull === undefined ? '' : `Pull request #${pull} is ready for review.\n\n`
      const { id } = await github.createComment(journal.key, lead + publication.comment)
      return done(String(id))
    },
    removeDuplicates: async (input) => {
      const comments = await findComments(input)
      if (comments.kind === 'unclear') return comments
      // The one we were answered with may not be listed yet; its id is known all the same.
      const answered = input.intent?.answered ?? null
      const all = new Set(answered === null ? comments.ids : [...comments.ids, Number(answered)])
      const [, ...younger] = [...all].sort((a, b) => a - b)
      const markers: string[] = []
      for (const id of younger) {
        if (await isDeleted(input, id)) markers.push(String(id))
      }
      return { kind: 'removed', markers }
    },
  },

  label_removed: {
    isRemote: true,
    look: async (input) => {
      if (await didOurselves(input, 'unlabeled')) return found('removed')
      const issue = await issueOf(input)
      // As the issue spells it now: GitHub finds a label by its exact name.
      const name = findLabel(issue.labels, input.journal.label)
      return name === null ? found('absent') : { kind: 'absent', name }
    },
    perform: async ({ github, journal }, { name = journal.label }) => {
      await github.removeLabel(journal.key, name)
      return done('removed')
    },
  },

  closed: {
    isRemote: true,
    look: async (input) => {
      if (await didOurselves(input, 'closed')) return found('closed')
      return (await issueOf(input)).isOpen ? ABSENT : found('closed-already')
    },
    perform: async ({ github, journal }) => {
      await github.closeIssue(journal.key)
      return done('closed')
    },
  },
} as const satisfies Record<PublishAction, Action>

/** false = GitHub will not let us; a comment too many holds up nothing. */
async function isDeleted({ github, journal: { key } }: ActionInput, id: number): Promise<boolean> {
  try {
    await github.deleteComment(repositoryOf(key), id)
    return true
  } catch (thrown) {
    if (!policyOf(asFault(thrown).code).isRefusal) throw thrown
    return false
  }
}

/** An issue that is not there now proves nothing about its label or its state. Faults: github/not-found. */
async function issueOf({ github, journal: { key } }: ActionInput) {
  const issue = await github.issue(key)
  if (issue !== null) return issue
  throw fault('github/not-found', { what: formatIssue(key) })
}
