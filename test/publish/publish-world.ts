import { type Fault, isFault, withEffect } from '../../daemon/core/fault.ts'
import type { Journal, Publication } from '../../daemon/core/journal.ts'
import type {
  Clock,
  CommitRequest,
  Git,
  GitHub,
  IssueComment,
  Journals,
  Log,
  PullRequest,
  TimelineEvent,
} from '../../daemon/core/ports.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { type PublishPorts, runActions } from '../../daemon/publish/run-actions.ts'
import type { PublishPolicy } from '../../daemon/publish/validate-tree.ts'
import { sampleFault } from '../support/faults.ts'

// A small world in memory for the publish protocol: one issue, its repository, and a clock. What is done to
// it can become visible late (read-after-write lag), and a write can be told to fail in each way there is.

export type WriteName = 'push' | 'createPull' | 'createComment' | 'removeLabel' | 'close'

/**
 * How a write goes wrong. refused: certainly nothing happened. unknown: it was done, and the answer was
 * lost. lost: it was not done, and nobody can know. late: it takes effect only `lateMs` later.
 */
export type Failure = 'refused' | 'unknown' | 'lost' | 'late'

export type World = ReturnType<typeof makeWorld>

export function makeWorld(options: Readonly<{ lagMs?: number; lateMs?: number }> = {}) {
  const { lagMs = 0, lateMs = 25_000 } = options
  let now = START
  let skewMs = 0
  /** Everything that happened, with the time from which it can be seen. */
  const facts: { from: number; apply: () => void }[] = []
  const branches = new Map<string, string>()
  const pulls: PullRequest[] = []
  const comments: IssueComment[] = []
  const timeline: TimelineEvent[] = []
  const issue = { labels: ['bug', JOURNAL.label], isOpen: true }
  /** Effects in the order they took place, and the looks and writes that were asked for. */
  const done: WriteName[] = []
  const asked: string[] = []
  const failures = new Map<WriteName, Failure>()
  const files = new Map<string, string>()
  const requests: CommitRequest[] = []
  const lost = { claim: false }
  /** Whose token it is now. */
  const viewer = { id: US.id, login: US.login }

  const settle = (): void => {
    for (const fact of facts.filter(({ from }) => from <= now)) {
      facts.splice(facts.indexOf(fact), 1)
      fact.apply()
    }
  }
  const look = <T>(name: string, value: () => T): T => {
    asked.push(name)
    settle()
    return structuredClone(value())
  }
  const wholeSecond = (): number => Math.floor(now / 1000) * 1000
  const failed = (effect: 'none' | 'unknown'): Fault =>
    withEffect(effect, sampleFault(effect === 'none' ? 'github/refused' : 'github/failed'))

  /** The effect is real at once (a second one would be a twin) and seen after the lag. */
  const write = (name: WriteName, apply: () => void): void => {
    asked.push(name)
    const failure = failures.get(name)
    failures.delete(name)
    if (failure === 'refused') throw failed('none')
    if (failure !== 'lost') {
      const at = now + (failure === 'late' ? lateMs : 0)
      facts.push({ from: at + lagMs, apply })
      settle()
      done.push(name)
    }
    if (failure !== undefined) throw failed('unknown')
  }
  const git = fakePort<Git>('git', {
    commitTree: async (_, request) => {
      asked.push('commit')
      requests.push(request)
      return COMMIT
    },
    remoteBranch: async (_, branch) => look('branch?', () => branches.get(branch) ?? null),
    pushNewBranch: async (_, oid, branch) => {
      write('push', () => branches.set(branch, oid))
    },
  })
  const github = fakePort<GitHub>('github', {
    serverTime: () => now + 1000,
    viewer: async () => look('viewer?', () => viewer),
    repository: async () => ({
      id: REPOSITORY_ID,
      name: { owner: 'Acme', name: 'Widgets' },
      defaultBranch: 'develop',
      archived: false,
    }),
    issue: async (key) =>
      look('issue?', () => ({
        number: key.number,
        title: 't',
        body: '',
        author: 'ada',
        labels: issue.labels,
        isOpen: issue.isOpen,
        isPullRequest: false,
        mergedAt: null,
        updatedAt: now,
        commentCount: comments.length,
        movedTo: null,
      })),
    comments: async (_, since = 0) =>
      look('comments?', () => ({
        value: comments.filter(({ updatedAt }) => updatedAt >= since),
        serverTime: now,
      })),
    timeline: async () => look('timeline?', () => ({ value: timeline, serverTime: now })),
    // GitHub ignores a filter it cannot read, so all are returned (P§3).
    pullRequestsByHead: async () => look('pulls?', () => ({ value: pulls, serverTime: now })),
    createPullRequest: async (_, { title, body, headBranch, baseBranch }) => {
      const isOpenAlready = pulls.some(
        (each) =>
          each.state === 'open' &&
          each.headRepositoryId === REPOSITORY_ID &&
          each.headBranch === headBranch &&
          each.baseBranch === baseBranch,
      )
      if (isOpenAlready || done.includes('createPull')) return { kind: 'exists' }
      const made = pull(12, { title, body, headBranch, baseBranch })
      write('createPull', () => pulls.push(made))
      return { kind: 'created', pull: made }
    },
    createComment: async (_, body) => {
      const id = 500 + done.filter((name) => name === 'createComment').length
      const at = wholeSecond()
      const made = comment(id, { body, authorId: US.id, createdAt: at, updatedAt: at })
      write('createComment', () => comments.push(made))
      return made
    },
    deleteComment: async (_, id) => {
      asked.push('deleteComment')
      comments.splice(
        comments.findIndex((each) => each.id === id),
        1,
      )
    },
    removeLabel: async (_, label) => {
      const event = timelineEvent('unlabeled', { createdAt: wholeSecond(), label })
      write('removeLabel', () => {
        if (issue.labels.includes(label)) timeline.push(event)
        issue.labels = issue.labels.filter((other) => other !== label)
      })
    },
    closeIssue: async () => {
      const event = timelineEvent('closed', { createdAt: wholeSecond() })
      write('close', () => {
        if (issue.isOpen) timeline.push(event)
        issue.isOpen = false
      })
    },
  })
  const journals: Journals = {
    read: (runId) => {
      const text = files.get(runId)
      // What was written by this very object; JSON shows that a journal survives being stored.
      return text === undefined ? null : (JSON.parse(text) as Journal)
    },
    write: (journal) => {
      asked.push(`journal ${describeJournal(journal)}`)
      files.set(journal.runId, JSON.stringify(journal))
    },
    list: () => [...files.keys()],
  }
  const clock: Clock = { now: () => now + skewMs, sleep: async () => {} }
  const log: Log = { info: () => {}, warn: () => {}, error: () => {} }
  const claim = { isCurrent: (): boolean => !lost.claim }
  const ports: PublishPorts = { git, github, journals, claim, clock, log, bootId: 'boot' }
  return {
    ports,
    /** The journal a run begins with, unless there is one. */
    begin: (journal: Journal): Journal => {
      const text = files.get(journal.runId) ?? JSON.stringify(journal)
      files.set(journal.runId, text)
      return JSON.parse(text) as Journal
    },
    issue,
    branches,
    pulls,
    comments,
    timeline,
    requests,
    /** Effects that took place. */
    done,
    asked,
    lost,
    viewer,
    fail: (name: WriteName, failure: Failure) => failures.set(name, failure),
    advance: (ms: number) => {
      now += ms
    },
    /** Our clock is set; GitHub's is not. */
    skew: (ms: number) => {
      skewMs += ms
    },
    now: () => now,
  }
}

/**
 * A port of which a test uses only some methods; any other says that it was called. A method that is
 * added to the port later needs no change here.
 */
export function fakePort<P extends object>(name: string, methods: Partial<P>): P {
  // What is missing is supplied by the trap below.
  return new Proxy(methods, {
    get(target, property) {
      const method: unknown = Reflect.get(target, property)
      if (method !== undefined || typeof property === 'symbol' || property === 'then') return method
      return (): never => {
        throw new TypeError(`${name}.${property} is not a part of this test`)
      }
    },
  }) as P
}

/** What a journal says about publishing, in short. */
function describeJournal({ markers, intent }: Journal): string {
  const stages = Object.keys(markers).join(',')
  return intent === null ? `[${stages}]` : `[${stages}] ${intent.stage}!${intent.attempt}`
}

export type Tried =
  | Readonly<{ kind: 'published'; journal: Journal }>
  | Readonly<{ kind: 'waits' | 'stopped' | 'fault'; code: string; fault: Fault }>

/** Publishes as far as it goes, from what is stored or from `start`; other throws pass through. */
export async function publish(
  world: World,
  start: Partial<Journal> = {},
  options: Readonly<{
    plan?: Publication['plan']
    policy?: Partial<PublishPolicy>
    ports?: PublishPorts
    withdrawn?: () => Promise<Fault | null>
  }> = {},
): Promise<Tried> {
  const publication = publicationOf(options.plan ?? 'code')
  const ports = options.ports ?? world.ports
  const journal = world.begin({ ...JOURNAL, publication, ...start })
  const settings = {
    policy: { ...POLICY, ...options.policy },
    pushTimeoutMs: PUSH_MS,
    stepMs: STEP_MS,
    whyIneligible: options.withdrawn ?? (async () => null),
  }
  try {
    const published = await runActions(ports, settings, journal, publication)
    if (published.kind === 'published') return published
    const { kind, reason } = published
    return { kind, code: reason.code, fault: reason }
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    return { kind: 'fault', code: thrown.code, fault: thrown }
  }
}

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
  remote: null,
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
