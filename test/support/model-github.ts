import {
  type IssueKey,
  issueId,
  type RepositoryName,
  repositoryId,
  repositoryOf,
} from '../../daemon/core/issue-key.ts'
import type {
  Actor,
  IssueComment,
  IssueSummary,
  PullRequest,
  TimelineEvent,
} from '../../daemon/core/ports.ts'

// What GitHub and its git server hold, in memory and with its history, so that a look can show how it was a while
// ago; and what people do with it. How our processes reach it is model-calls.ts.

export const US: Actor = { id: 42, login: 'our-bot' }
export const ALICE: Actor = { id: 7, login: 'alice' }

/** GitHub's time goes on evenly; ours may be set. Milliseconds since the epoch. */
export type ModelTime = { server: number; skew: number; wasSetAhead: boolean }

/** One thing that really happened, by our account. */
export type Done = Readonly<{
  name: 'push' | 'pull' | 'comment' | 'uncomment' | 'unlabel' | 'close' | 'reopen'
  runId: string | null
  /** `issueId`, or the branch of a push. */
  where: string
}>

export type Version = Readonly<{
  at: number
  labels: readonly string[]
  isOpen: boolean
  updatedAt: number
  commentCount: number
}>
type StoredComment = IssueComment & { readonly at: number; goneAt: number | null }
export type StoredEvent = Readonly<{ event: TimelineEvent; pull: ModelPull | null }>
export type PullVersion = Readonly<{ at: number; state: 'open' | 'closed'; merged: boolean }>

export type ModelIssue = {
  readonly key: IssueKey
  readonly versions: Version[]
  readonly comments: StoredComment[]
  readonly timeline: StoredEvent[]
  movedTo: ModelIssue | null
  isGone: boolean
}
export type ModelPull = Readonly<{
  key: IssueKey
  headBranch: string
  baseBranch: string
  title: string
  body: string
  author: Actor
  versions: PullVersion[]
}>
export type ModelRepository = {
  readonly name: RepositoryName
  readonly id: number
  hasClone: boolean
  readonly branches: Map<string, Readonly<{ at: number; oid: string }>[]>
}

export type ModelGitHub = ReturnType<typeof makeModelGitHub>

export type ContentParts = Readonly<{
  repositories: readonly RepositoryName[]
  time: ModelTime
  note: (line: string) => void
}>

export function makeModelGitHub(parts: ContentParts) {
  const { time, note } = parts
  const repositories = new Map<string, ModelRepository>(
    parts.repositories.map((name, at) => [
      repositoryId(name),
      { name, id: 1000 + at, hasClone: true, branches: new Map([['main', [base(time.server)]]]) },
    ]),
  )
  const issues = new Map<string, ModelIssue>()
  const pulls: ModelPull[] = []
  const done: Done[] = []
  /** Markers of all comments we ever made. */
  const written: string[] = []
  let lastId = 100
  const nextId = (): number => (lastId += 1)

  const repositoryAt = (name: RepositoryName): ModelRepository => {
    const found = repositories.get(repositoryId(name))
    if (found === undefined) throw new RangeError(`no repository ${repositoryId(name)}`)
    return found
  }
  const issueAt = (key: IssueKey): ModelIssue | null => {
    let found = issues.get(issueId(key)) ?? null
    while (found?.movedTo) found = found.movedTo
    return found === null || found.isGone ? null : found
  }
  const numberIn = (repository: RepositoryName): number =>
    1 +
    [...issues.values(), ...pulls].filter(
      ({ key }) => repositoryId(repositoryOf(key)) === repositoryId(repository),
    ).length

  // What the world looks like, as of a time.
  const versionOf = <V extends { at: number }>(
    versions: readonly V[],
    asOf: number,
  ): V | undefined => versions.findLast(({ at }) => at <= asOf) ?? versions[0]
  const summaryOf = (issue: ModelIssue, asOf: number): IssueSummary | null => {
    const version = versionOf(issue.versions, asOf)
    if (version === undefined) return null
    const { labels, isOpen, updatedAt, commentCount } = version
    return {
      number: issue.key.number,
      title: `issue ${issue.key.number}`,
      body: 'Please.',
      author: ALICE.login,
      labels,
      isOpen,
      isPullRequest: false,
      mergedAt: null,
      updatedAt,
      commentCount,
    }
  }
  const pullSummary = (pull: ModelPull, asOf: number): IssueSummary => {
    const version = versionOf(pull.versions, asOf) ?? current(pull.versions)
    const updatedAt = seconds(version.at)
    return {
      number: pull.key.number,
      title: pull.title,
      body: pull.body,
      author: pull.author.login,
      labels: [],
      isOpen: version.state === 'open',
      isPullRequest: true,
      mergedAt: version.merged ? updatedAt : null,
      updatedAt,
      commentCount: 0,
    }
  }
  const pullAsOf = (pull: ModelPull, asOf: number): PullRequest => {
    const { state, merged } = versionOf(pull.versions, asOf) ?? current(pull.versions)
    const repository = repositoryAt(repositoryOf(pull.key))
    return {
      number: pull.key.number,
      url: `https://github.com/${repositoryId(repository.name)}/pull/${pull.key.number}`,
      state,
      merged,
      headBranch: pull.headBranch,
      headRepositoryId: repository.id,
      headOid: branchTip(repository, pull.headBranch) ?? '',
      baseBranch: pull.baseBranch,
      title: pull.title,
      body: pull.body,
      authorId: pull.author.id,
    }
  }
  const eventAsOf = ({ event, pull }: StoredEvent, asOf: number): TimelineEvent => {
    if (pull === null) return event
    const { state } = versionOf(pull.versions, asOf) ?? current(pull.versions)
    const { author, title, body, key } = pull
    return {
      ...event,
      pull: {
        repository: repositoryOf(key),
        number: key.number,
        isOpen: state === 'open',
        author: author.login,
        title,
        body,
      },
    }
  }

  // What changes it.
  const change = (
    issue: ModelIssue,
    actor: Actor,
    next: Partial<Pick<Version, 'labels' | 'isOpen' | 'commentCount'>>,
    kind: string,
    more: Readonly<{ label?: string; pull?: ModelPull }> = {},
  ): void => {
    const at = time.server
    const updatedAt = seconds(at)
    issue.versions.push({ ...current(issue.versions), ...next, at, updatedAt })
    note(`    ${actor.login}: ${kind} ${more.label ?? ''} ${issueId(issue.key)}`)
    if (kind === 'commented') return
    const event: TimelineEvent = {
      id: nextId(),
      kind,
      actor: actor.login,
      actorId: actor.id,
      createdAt: updatedAt,
      label: more.label ?? null,
      pull: null,
    }
    issue.timeline.push({ event, pull: more.pull ?? null })
  }
  const setOpen = (issue: ModelIssue, actor: Actor, isOpen: boolean): boolean => {
    if (current(issue.versions).isOpen === isOpen) return false
    change(issue, actor, { isOpen }, isOpen ? 'reopened' : 'closed')
    return true
  }
  const setLabel = (issue: ModelIssue, actor: Actor, label: string, isSet: boolean): boolean => {
    const { labels } = current(issue.versions)
    if (labels.includes(label) === isSet) return false
    const others = labels.filter((other) => other !== label)
    const next = isSet ? [...others, label] : others
    change(issue, actor, { labels: next }, isSet ? 'labeled' : 'unlabeled', { label })
    return true
  }
  const addComment = (issue: ModelIssue, actor: Actor, body: string): IssueComment => {
    const at = seconds(time.server)
    const made: StoredComment = {
      id: nextId(),
      author: actor.login,
      authorId: actor.id,
      authorAssociation: 'NONE',
      body,
      createdAt: at,
      updatedAt: at,
      at: time.server,
      goneAt: null,
    }
    issue.comments.push(made)
    if (actor === US) written.push(markerOf(body))
    const { commentCount } = current(issue.versions)
    change(issue, actor, { commentCount: commentCount + 1 }, 'commented')
    return made
  }
  const addPull = (
    repository: RepositoryName,
    author: Actor,
    pull: Readonly<{ title: string; body: string; headBranch: string; baseBranch: string }>,
  ): ModelPull => {
    const key = { ...repository, number: numberIn(repository) }
    const versions: PullVersion[] = [{ at: time.server, state: 'open', merged: false }]
    const made: ModelPull = { ...pull, key, author, versions }
    pulls.push(made)
    for (const [, number] of pull.body.matchAll(/#(\d+)/g)) {
      const issue = issueAt({ ...repository, number: Number(number) })
      if (issue !== null) change(issue, author, {}, 'cross-referenced', { pull: made })
    }
    return made
  }
  const endPull = (pull: ModelPull, merged: boolean): void => {
    note(`    alice: ${merged ? 'merges' : 'closes'} pull ${issueId(pull.key)}`)
    pull.versions.push({ at: time.server, state: 'closed', merged })
    const [, number] = /(?:closes|fixes) #(\d+)/i.exec(pull.body) ?? []
    const issue = issueAt({ ...pull.key, number: Number(number ?? 0) })
    if (merged && issue !== null) setOpen(issue, ALICE, false)
  }
  const setBranch = (repository: ModelRepository, branch: string, oid: string): void => {
    const versions = repository.branches.get(branch) ?? []
    repository.branches.set(branch, [...versions, { at: time.server, oid }])
  }
  const removeComment = (id: number): void => {
    for (const issue of issues.values()) {
      const comment = issue.comments.find((one) => one.id === id && one.goneAt === null)
      if (comment === undefined || issue.movedTo !== null) continue
      comment.goneAt = time.server
      const { commentCount } = current(issue.versions)
      change(issue, US, { commentCount: commentCount - 1 }, 'commented')
    }
  }

  /** What the lists of a repository show, as of a time. */
  const listed = (name: RepositoryName, asOf: number): readonly IssueSummary[] => {
    const here = ({ key }: Readonly<{ key: IssueKey }>): boolean =>
      repositoryId(repositoryOf(key)) === repositoryId(name)
    const shown = [...issues.values()].filter(
      (issue) => here(issue) && issue.movedTo === null && !issue.isGone,
    )
    return [
      ...shown.flatMap((issue) => summaryOf(issue, asOf) ?? []),
      ...pulls
        .filter((pull) => here(pull) && (pull.versions[0]?.at ?? 0) <= asOf)
        .map((pull) => pullSummary(pull, asOf)),
    ]
  }

  /** What people do. Each does nothing when there is nothing to do it to. */
  const human = {
    add: (repository: RepositoryName): ModelIssue => {
      const key = { ...repository, number: numberIn(repository) }
      const at = time.server
      const first: Version = {
        at,
        labels: [],
        isOpen: true,
        updatedAt: seconds(at),
        commentCount: 0,
      }
      const made: ModelIssue = {
        key,
        versions: [first],
        comments: [],
        timeline: [],
        movedTo: null,
        isGone: false,
      }
      issues.set(issueId(key), made)
      return made
    },
    label: (issue: ModelIssue, label: string) => setLabel(issue, ALICE, label, true),
    unlabel: (issue: ModelIssue, label: string) => setLabel(issue, ALICE, label, false),
    close: (issue: ModelIssue) => setOpen(issue, ALICE, false),
    reopen: (issue: ModelIssue) => setOpen(issue, ALICE, true),
    comment: (issue: ModelIssue) => addComment(issue, ALICE, 'What about this?'),
    openPull: (issue: ModelIssue) =>
      addPull(repositoryOf(issue.key), ALICE, {
        title: 'mine',
        body: `Fixes #${issue.key.number}`,
        headBranch: `alice-${issue.key.number}-${lastId}`,
        baseBranch: 'main',
      }),
    endPull: (issue: ModelIssue, merged: boolean) => {
      const open = openPullsOf(issue)[0]
      if (open !== undefined) endPull(open, merged)
    },
    pushTo: (issue: ModelIssue, branch: string) => {
      note(`    alice: pushes to ${branch}`)
      setBranch(repositoryAt(repositoryOf(issue.key)), branch, `${nextId()}`.padStart(40, 'f'))
    },
    transfer: (issue: ModelIssue) => {
      const home = repositoryId(repositoryOf(issue.key))
      const target = parts.repositories.find((name) => repositoryId(name) !== home)
      if (target === undefined) return
      const key = { ...target, number: numberIn(target) }
      const moved: ModelIssue = { ...issue, key, versions: [...issue.versions] }
      issues.set(issueId(key), moved)
      issue.movedTo = moved
      change(moved, ALICE, {}, 'transferred')
    },
    remove: (issue: ModelIssue) => {
      note(`    alice: deletes ${issueId(issue.key)}`)
      issue.isGone = true
    },
    setClone: (repository: RepositoryName, isThere: boolean) => {
      repositoryAt(repository).hasClone = isThere
    },
  }
  const openPullsOf = (issue: ModelIssue): readonly ModelPull[] =>
    pulls.filter(
      ({ key, body, versions }) =>
        repositoryId(repositoryOf(key)) === repositoryId(repositoryOf(issue.key)) &&
        new RegExp(`#${issue.key.number}(?!\\d)`).test(body) &&
        current(versions).state === 'open',
    )

  return {
    repositoryAt,
    /** Follows transfers; null = gone. */
    issueAt,
    /** As it was under this key, moved or gone or not. */
    stored: (key: IssueKey): ModelIssue | undefined => issues.get(issueId(key)),
    summaryOf,
    listed,
    pulls,
    pullAsOf,
    eventAsOf,
    openPullsOf,
    setOpen,
    setLabel,
    addComment,
    removeComment,
    addPull,
    setBranch,
    human,
    done,
    made: written as readonly string[],
    /** Those that can still be acted on, in the order they were made. */
    issues: (): readonly ModelIssue[] =>
      [...issues.values()].filter(({ movedTo, isGone }) => movedTo === null && !isGone),
    stateOf: (key: IssueKey): Version | null => {
      const issue = issueAt(key)
      return issue === null ? null : current(issue.versions)
    },
    /** Our comments that are there now, by the marker each carries. */
    markers: (): readonly string[] =>
      [...issues.values()]
        .filter(({ movedTo }) => movedTo === null)
        .flatMap(({ comments }) => comments)
        .filter(({ authorId, goneAt }) => authorId === US.id && goneAt === null)
        .map(({ body }) => markerOf(body)),
  }
}

const markerOf = (body: string): string =>
  /<!-- automation-run:.*?-->/.exec(body)?.[0] ?? 'without a marker'
const base = (at: number) => ({ at, oid: 'b'.repeat(40) })
/** GitHub's times have whole seconds. */
export const seconds = (ms: number): number => Math.floor(ms / 1000) * 1000
export const branchTip = ({ branches }: ModelRepository, branch: string): string | null =>
  branches.get(branch)?.at(-1)?.oid ?? null
/** The newest version of a thing. */
export function current<V extends { at: number }>(versions: readonly V[]): V {
  const last = versions.at(-1)
  if (last === undefined) throw new RangeError('never made')
  return last
}
