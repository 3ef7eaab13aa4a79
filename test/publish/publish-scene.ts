import type { Journal, Publication } from '../../daemon/core/journal.ts'
import type { IssueComment, PullRequest, TimelineEvent } from '../../daemon/core/ports.ts'
import type { PublishPolicy } from '../../daemon/core/publish-policy.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

// What the tests of publishing publish.

export const START = Date.parse('2026-03-01T12:00:00.000Z')
export const RUN = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
export const US = { id: 42, login: 'our-bot' }
export const REPOSITORY_ID = 1000
export const COMMIT = 'c'.repeat(40)
export const SETTLE_MS = 120_000
/** How long a push may take here; every other write ends within 30 s. */
export const PUSH_MS = 600_000
export const STEP_MS = 600_000

export const POLICY: PublishPolicy = {
  forbiddenStrings: [],
  closeIssue: 'finalize',
  removeLabel: true,
  settleMs: SETTLE_MS,
  protectedPaths: [],
  maxChangedFiles: 5000,
  maxDiffBytes: 1_000_000,
  maxFileBytes: 1_000_000,
}

export const JOURNAL: Journal = {
  runId: RUN,
  key: { owner: 'Acme', name: 'Widgets', number: 7 },
  ticket: 'code',
  generation: 2,
  previousRunId: null,
  attempt: 1,
  dryRun: false,
  build: '/build',
  createdAt: toTimestamp(START),
  epoch: 1,
  adoptions: 0,
  stage: 'publishing',
  branch: 'automation/issue-7-r',
  base: { storePath: '/store', branch: 'develop', oid: 'b'.repeat(40) },
  treePath: '/tree',
  indexPath: '/index',
  label: '🤖️ Auto-Fix',
  labeledEventId: 5,
  runner: null,
  ownedUntil: null,
  publication: null,
  markers: {},
  intent: null,
  notBefore: null,
  trouble: null,
  outcome: null,
  endedIn: null,
}

export const MARKER = {
  pull: `<!-- automation-run:${RUN} kind:pull-request generation:2 -->`,
  completion: `<!-- automation-run:${RUN} kind:completion generation:2 -->`,
  findings: `<!-- automation-run:${RUN} kind:findings generation:2 -->`,
  'no-changes': `<!-- automation-run:${RUN} kind:no-changes generation:2 -->`,
  notice: `<!-- automation-run:${RUN} kind:notice generation:2 -->`,
} as const

export function publicationOf(plan: Publication['plan']): Publication {
  return {
    plan,
    commitMessage: 'fix: x',
    commitDateSeconds: START / 1000,
    pullTitle: 'fix: x',
    pullBody: `Closes #7\n\n${MARKER.pull}`,
    comment: `Done.\n\n${MARKER[plan === 'code' ? 'completion' : plan]}`,
    actorId: US.id,
    actorLogin: US.login,
    treeOid: plan === 'code' ? 't'.repeat(40) : null,
    changedFiles: 1,
  }
}

export const comment = (id: number, change: Partial<IssueComment> = {}): IssueComment => ({
  id,
  author: 'ada',
  authorId: 5,
  authorAssociation: 'NONE',
  body: 'hello',
  createdAt: START,
  updatedAt: START,
  ...change,
})
export const pull = (number: number, change: Partial<PullRequest> = {}): PullRequest => ({
  number,
  url: `https://github.com/Acme/Widgets/pull/${number}`,
  state: 'open',
  merged: false,
  headBranch: JOURNAL.branch,
  headRepositoryId: REPOSITORY_ID,
  headOid: COMMIT,
  baseBranch: 'develop',
  title: 'fix: x',
  body: MARKER.pull,
  authorId: US.id,
  ...change,
})
export const timelineEvent = (
  kind: 'unlabeled' | 'closed',
  change: Partial<TimelineEvent> = {},
): TimelineEvent => ({
  id: 1,
  kind,
  actor: US.login,
  actorId: US.id,
  createdAt: START,
  label: kind === 'unlabeled' ? JOURNAL.label : null,
  pull: null,
  ...change,
})
