import { createHash } from 'node:crypto'
import { type Fault, fault, writeFault } from '../../daemon/core/fault.ts'
import {
  formatIssue,
  type IssueKey,
  issueId,
  repositoryId,
  repositoryOf,
} from '../../daemon/core/issue-key.ts'
import { isSameLabel, type TriggerLabels, ticketOf } from '../../daemon/core/labels.ts'
import type { Meta } from '../../daemon/core/meta.ts'
import type { Git, GitHub, IssueSummary } from '../../daemon/core/ports.ts'
import { fromTimestamp, toTimestamp } from '../../daemon/core/timestamp.ts'
import {
  branchTip,
  current,
  type Done,
  type ModelGitHub,
  type ModelIssue,
  type ModelRepository,
  type ModelTime,
  seconds,
  US,
} from './model-github.ts'

// How our processes reach the model GitHub and its git server: each list lags behind by a time of its own, every
// call can go wrong in each way there is, and what was really done is recorded.

/** What lags behind a write, each by its own time. */
export const LISTS = ['poll', 'issue', 'comments', 'timeline', 'pulls', 'branch'] as const
export type ListName = (typeof LISTS)[number]

/**
 * How the next calls go wrong. refused: certainly nothing happened. lost: not done, and nobody can know.
 * done: done, and the answer was lost. garbled: done, and the answer is unreadable. late: takes effect up to
 * `LATE_MS` later. limited: GitHub asks us to wait. token: it rejects the token.
 */
export const FAULT_KINDS = [
  'refused',
  'lost',
  'done',
  'garbled',
  'late',
  'limited',
  'token',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** A request is over within the intent's time; what is still on its way then was never sent (P§3). */
const LATE_MS = 29_000

/** Who calls: one process of ours. */
export type Caller = {
  readonly runId: string | null
  /** GitHub's clock at the last answer this process got. */
  lastAnswer: number | null
  /** Calls that met a stored limit. */
  gated: number
  /** What the last look of this process at an issue said: whether it asks for work. */
  readonly wanted: Map<string, boolean>
  /** Announces a write before it is sent; throws when it must not be. */
  readonly onWrite: (name: string, detail: string) => void
}

type CallParts = Readonly<{
  github: ModelGitHub
  time: ModelTime
  /** In [0, 1). */
  random: () => number
  lagMs: Readonly<Record<ListName, number>>
  triggers: TriggerLabels
  /** The limit all processes obey, and where a new one is stored. */
  wait: () => Meta['wait']
  storeWait: (wait: NonNullable<Meta['wait']>) => Promise<void>
  note: (line: string) => void
}>

export type ModelCalls = ReturnType<typeof makeModelCalls>

export function makeModelCalls(parts: CallParts) {
  const { github, time, random, lagMs, note } = parts
  const commits = new Set<string>()
  const onItsWay: { at: number; apply: () => unknown }[] = []
  const net = { kind: null as FaultKind | null, calls: 0, writesOnly: false, met: 0 }
  const ourNow = (): number => time.server + time.skew
  /** What a look shows is as old as this; servers differ, so a later look may show less. */
  const asOf = (list: ListName | null): number =>
    time.server - (list === null ? 0 : Math.round((0.6 + 0.4 * random()) * lagMs[list]))

  // How a call goes.
  /** What is due by now takes effect when it was due. */
  const arrive = (): void => {
    const { server } = time
    const due = onItsWay.filter(({ at }) => at <= server).sort((a, b) => a.at - b.at)
    for (const one of due) {
      onItsWay.splice(onItsWay.indexOf(one), 1)
      note('    (late) takes effect')
      time.server = one.at
      one.apply()
    }
    time.server = server
  }
  const meet = (isWrite: boolean): FaultKind | null => {
    const { kind, writesOnly } = net
    if (kind === null || (writesOnly && !isWrite)) return null
    net.calls -= 1
    net.met += 1
    if (net.calls <= 0) net.kind = null
    note(`    meets ${kind}`)
    return kind
  }
  const limitFault = (request: string, until: string): Fault => {
    const untilMs = fromTimestamp(until) + Math.round(random() * 5000)
    return writeFault('none', 'github/rate-limited', { kind: 'primary', until, untilMs })
  }
  /** As the real connection: nothing is sent while a limit is stored, unless the clock was set back. */
  const passGate = (caller: Caller, request: string): void => {
    const wait = parts.wait()
    const left = wait === null ? 0 : fromTimestamp(wait.until) - ourNow()
    if (wait === null || left <= 0 || left > 3_660_000) return
    caller.gated += 1
    throw limitFault(request, wait.until)
  }
  const failedCall = async (kind: FaultKind, request: string): Promise<Fault> => {
    switch (kind) {
      case 'limited': {
        const until = toTimestamp(ourNow() + 60_000 + Math.round(random() * 3_000_000))
        await parts.storeWait({ kind: 'primary', until })
        return limitFault(request, until)
      }
      case 'refused':
        return writeFault('none', 'github/refused', { request, status: 403, reason: 'no' })
      case 'token':
        return writeFault('none', 'token/rejected', { status: 401 })
      case 'garbled':
        return writeFault('unknown', 'github/bad-answer', { request, reason: 'cut off' })
      case 'done':
        return writeFault('unknown', 'github/failed', { request, status: 502, reason: 'bad' })
      case 'lost':
      case 'late':
        return writeFault('unknown', 'github/unreachable', { request, reason: 'cut' })
      default:
        return kind satisfies never
    }
  }
  const pass = (): void => {
    time.server += Math.round(random() * 1500)
    arrive()
  }
  const read = async <T>(
    caller: Caller,
    list: ListName | null,
    request: string,
    look: (asOf: number) => T,
  ): Promise<T> => {
    pass()
    passGate(caller, request)
    const kind = meet(false)
    if (kind !== null) throw await failedCall(kind, request)
    caller.lastAnswer = time.server
    return look(asOf(list))
  }
  /** `perform` is what GitHub does with it, at once or later. */
  const send = async <T>(
    caller: Caller,
    request: string,
    perform: () => T,
    failed: (kind: FaultKind) => Promise<Fault> = (kind) => failedCall(kind, request),
  ): Promise<T> => {
    pass()
    const kind = meet(true)
    if (kind === 'late') {
      const apply = (): unknown => attempt(perform)
      onItsWay.push({ at: time.server + Math.round(random() * LATE_MS), apply })
    }
    if (kind === 'done' || kind === 'garbled') perform()
    if (kind !== null) throw await failed(kind)
    caller.lastAnswer = time.server
    return perform()
  }
  const write = async <T>(
    caller: Caller,
    name: Done['name'],
    key: IssueKey,
    perform: (issue: ModelIssue) => T,
  ): Promise<T> => {
    const request = `${name} ${formatIssue(key)}`
    caller.onWrite(name, issueId(key))
    passGate(caller, request)
    return send(caller, request, () => {
      const stored = github.stored(key)
      if (stored === undefined || stored.isGone) {
        throw writeFault('none', 'github/not-found', { what: formatIssue(key) })
      }
      // A write's redirect is its answer (github/send.ts).
      if (stored.movedTo !== null) {
        throw writeFault('none', 'github/failed', { request, status: 301, reason: 'moved' })
      }
      return perform(stored)
    })
  }
  const record = (caller: Caller, name: Done['name'], where: string): void => {
    github.done.push({ name, runId: caller.runId, where })
  }

  const portFor = (caller: Caller): GitHub => ({
    serverTime: () => caller.lastAnswer,
    viewer: async () => read(caller, null, 'viewer', () => US),
    repository: async (name) =>
      read(caller, null, `repository ${repositoryId(name)}`, () => {
        const { id } = github.repositoryAt(name)
        return { id, name, defaultBranch: 'main', archived: false }
      }),
    accessibleRepositories: async () => read(caller, null, 'repositories', () => []),
    pollLabel: async (name, label) =>
      read(caller, 'poll', `label ${label}`, (asOf) =>
        pollOf(
          github
            .listed(name, asOf)
            .filter(
              ({ isOpen, labels }) => isOpen && labels.some((one) => isSameLabel(one, label)),
            ),
        ),
      ),
    pollChanges: async (name, since) =>
      read(caller, 'poll', `changes of ${repositoryId(name)}`, (asOf) =>
        pollOf(github.listed(name, asOf).filter(({ updatedAt }) => updatedAt >= seconds(since))),
      ),
    issue: async (key) => {
      const seen = await read(caller, 'issue', formatIssue(key), (asOf) => {
        const issue = github.issueAt(key)
        const summary = issue === null ? null : github.summaryOf(issue, asOf)
        if (issue === null || summary === null) return null
        const moved = issueId(issue.key) !== issueId(key)
        return { ...summary, movedTo: moved ? issue.key : null }
      })
      const ticket = seen === null ? null : ticketOf(seen.labels, parts.triggers)
      const isWanted = seen?.isOpen === true && seen.movedTo === null
      caller.wanted.set(issueId(key), isWanted && ticket !== null && ticket !== 'ambiguous')
      return seen
    },
    comments: async (key, since = 0) =>
      read(caller, 'comments', `comments of ${formatIssue(key)}`, (asOf) => ({
        value: requireIssue(key).comments.filter(
          ({ at, goneAt, updatedAt }) =>
            at <= asOf && (goneAt ?? Infinity) > asOf && updatedAt >= seconds(since),
        ),
        serverTime: time.server,
      })),
    timeline: async (key) =>
      read(caller, 'timeline', `timeline of ${formatIssue(key)}`, (asOf) => ({
        value: requireIssue(key)
          .timeline.filter(({ event }) => event.createdAt <= asOf)
          .map((stored) => github.eventAsOf(stored, asOf)),
        serverTime: time.server,
      })),
    pullRequest: async (name, number) =>
      read(caller, 'pulls', `pull ${number}`, (asOf) => {
        const pull = github.pulls.find(({ key }) => issueId(key) === issueId({ ...name, number }))
        return pull === undefined ? null : github.pullAsOf(pull, asOf)
      }),
    pullRequestsByHead: async (name, branch) =>
      read(caller, 'pulls', `pulls of ${branch}`, (asOf) => ({
        value: github.pulls
          .filter(
            ({ key, headBranch, versions }) =>
              repositoryId(repositoryOf(key)) === repositoryId(name) &&
              headBranch === branch &&
              (versions[0]?.at ?? 0) <= asOf,
          )
          .map((pull) => github.pullAsOf(pull, asOf)),
        serverTime: time.server,
      })),
    createPullRequest: async (name, pull) => {
      const request = `creating the pull request of ${pull.headBranch}`
      caller.onWrite('pull', pull.headBranch)
      passGate(caller, request)
      return send(caller, request, () => {
        const repository = github.repositoryAt(name)
        if (branchTip(repository, pull.headBranch) === null) {
          throw writeFault('none', 'github/refused', { request, status: 422, reason: 'head' })
        }
        const exists = github.pulls.some(
          ({ headBranch, versions }) =>
            headBranch === pull.headBranch && current(versions).state === 'open',
        )
        if (exists) return { kind: 'exists' } as const
        const made = github.addPull(name, US, pull)
        record(caller, 'pull', pull.headBranch)
        return { kind: 'created', pull: github.pullAsOf(made, time.server) } as const
      })
    },
    createComment: async (key, body) =>
      write(caller, 'comment', key, (issue) => {
        record(caller, 'comment', issueId(key))
        return github.addComment(issue, US, body)
      }),
    deleteComment: async (name, id) => {
      caller.onWrite('uncomment', String(id))
      passGate(caller, 'delete comment')
      await send(caller, `comment ${id} in ${repositoryId(name)}`, () => {
        github.removeComment(id)
        record(caller, 'uncomment', String(id))
      })
    },
    removeLabel: async (key, label) =>
      write(caller, 'unlabel', key, (issue) => {
        if (github.setLabel(issue, US, label, false)) record(caller, 'unlabel', issueId(key))
      }),
    closeIssue: async (key) =>
      write(caller, 'close', key, (issue) => {
        if (github.setOpen(issue, US, false)) record(caller, 'close', issueId(key))
      }),
    reopenIssue: async (key) =>
      write(caller, 'reopen', key, (issue) => {
        if (github.setOpen(issue, US, true)) record(caller, 'reopen', issueId(key))
      }),
  })

  const requireIssue = (key: IssueKey): ModelIssue => {
    const issue = github.issueAt(key)
    if (issue === null) throw fault('github/not-found', { what: formatIssue(key) })
    return issue
  }
  const pollOf = (found: readonly IssueSummary[]) => ({
    unchanged: false,
    issues: found,
    malformed: [],
    serverTime: time.server,
  })

  /** The part of git that goes over the network, or makes commits; the rest needs files (model-world.ts). */
  const gitFor = (
    caller: Caller,
  ): Pick<
    Git,
    'inspectClone' | 'fetchBase' | 'commitTree' | 'hasCommit' | 'remoteBranch' | 'pushNewBranch'
  > => {
    const gitFault = async (kind: FaultKind): Promise<Fault> => {
      const details = { operation: 'network', reason: kind }
      if (kind === 'refused') {
        return writeFault('none', 'git/push-rejected', { branch: 'it', reason: 'a rule', kept: '' })
      }
      const isCertain = kind === 'limited' || kind === 'token'
      return writeFault(isCertain ? 'none' : 'unknown', 'git/failed', details)
    }
    const look = async <T>(list: ListName | null, value: (asOf: number) => T): Promise<T> => {
      pass()
      if (meet(false) !== null) throw fault('git/failed', { operation: 'fetch', reason: 'cut' })
      return value(asOf(list))
    }
    const storeOf = (storePath: string): ModelRepository => {
      const [owner = '', name = ''] = storePath.split('/')
      return github.repositoryAt({ owner, name })
    }
    return {
      inspectClone: async (name) => {
        if (github.repositoryAt(name).hasClone) {
          return { path: '/clone', originUrl: 'o', shallowOrPartial: false }
        }
        throw fault('clone/missing', {
          repo: repositoryId(name),
          path: '/clone',
          url: '',
          target: '',
        })
      },
      fetchBase: async (name) =>
        look(null, () => ({
          storePath: repositoryId(name),
          branch: 'main',
          oid: branchTip(github.repositoryAt(name), 'main') ?? '',
          remote: { clonePath: '/clone', settings: [] },
        })),
      commitTree: async (_, request) => {
        const oid = createHash('sha1').update(JSON.stringify(request)).digest('hex')
        commits.add(oid)
        return oid
      },
      hasCommit: async (_, oid) => commits.has(oid),
      remoteBranch: async (storePath, branch) =>
        look('branch', (asOf) => {
          const versions = storeOf(storePath).branches.get(branch) ?? []
          return versions.findLast(({ at }) => at <= asOf)?.oid ?? null
        }),
      pushNewBranch: async (storePath, oid, branch) => {
        caller.onWrite('push', branch)
        await send(
          caller,
          `push ${branch}`,
          () => {
            const repository = storeOf(storePath)
            const there = branchTip(repository, branch)
            if (there === oid) return
            if (there !== null) {
              const details = { branch, found: there, expected: oid, kept: oid }
              throw writeFault('none', 'git/foreign-branch', details)
            }
            if (!commits.has(oid)) throw new RangeError('a commit that was never made')
            github.setBranch(repository, branch, oid)
            note(`    pushed ${branch}`)
            record(caller, 'push', branch)
          },
          gitFault,
        )
      },
    }
  }

  return {
    portFor,
    gitFor,
    net,
    arrive,
    /** The next calls, or the next writes, go wrong in this way. */
    fail: (kind: FaultKind, calls: number, writesOnly: boolean) => {
      net.kind = kind
      net.writesOnly = writesOnly
      net.calls = calls
    },
    mend: () => {
      net.kind = null
    },
  }
}

/** A late request that GitHub refuses is heard of by nobody. */
function attempt(perform: () => unknown): unknown {
  try {
    return perform()
  } catch {
    return null
  }
}
