// Interfaces of every effect the engine asks for. Adapters implement them; tests count and fail them.

import type { IssueKey, RepositoryName } from './issue-key.ts'
import type { CapturedRemote, Journal, RunRemote } from './journal.ts'
import type { Meta } from './meta.ts'
import type { QueueState } from './queue-state.ts'

/** Wall clock and waiting. Milliseconds since the epoch; injectable, so no other code reads the time. */
export type Clock = {
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A structured log: one fixed sentence, values as fields (style: no interpolation). */
export type Log = {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}
export type LogFields = Readonly<Record<string, unknown>>

/** What a transaction leaves: the next state (the same object = nothing to write) and a value for the caller. */
export type Change<State, T> = Readonly<{ state: State; value: T }>

/** The durable queue and metadata; both backends pass test/contract/store.test.ts (design §5). */
export type Store = {
  /** A consistent copy; no lock is kept, nothing is touched. Faults: state/*. */
  readQueue(): QueueState
  /** Runs a pure change under the state lock; durable when it resolves. Faults: state/*, sys/io. */
  changeQueue<T>(change: (queue: QueueState) => Change<QueueState, T>): Promise<T>
  readMeta(): Meta
  changeMeta<T>(change: (meta: Meta) => Change<Meta, T>): Promise<T>
  /** Whether any state was ever written here. */
  exists(): boolean
}

/** One journal per run, written only by the holder of the run's claim (design §5). */
export type Journals = {
  read(runId: string): Journal | null
  /** Durable when it returns. */
  write(journal: Journal): void
  list(): readonly string[]
}

/** A held claim: the kernel lock is the evidence of life (P§1). */
export type Claim = {
  readonly key: IssueKey
  readonly runId: string
  /** The descriptor to hand over to a runner; `close` afterwards. */
  readonly fd: number
  /** Whether the claim file on disk is still the one we locked. */
  isCurrent(): boolean
  /** Drops our copy of the lock. */
  close(): void
  /** Removes the file, then drops the lock: the run is over. */
  release(): void
}

export type Claims = {
  /** null = another process holds it. Writes run id and pid into the file. */
  take(key: IssueKey, runId: string): Claim | null
  /** A runner's end of the hand-over; null = the descriptor is not the current claim. */
  inherit(fd: number, key: IssueKey, runId: string): Claim | null
  isHeld(key: IssueKey): boolean
  /** What the claim files name, held or not; there are as many as runs that have not settled. */
  list(): readonly Readonly<{ key: IssueKey; runId: string }>[]
}

/** An issue as the poll sees it. Times are milliseconds since the epoch. */
export type IssueSummary = Readonly<{
  number: number
  title: string
  body: string
  author: string | null
  labels: readonly string[]
  isOpen: boolean
  isPullRequest: boolean
  /** Of a pull request in the list: when it was merged. */
  mergedAt: number | null
  updatedAt: number
  commentCount: number
}>

/** What a poll of one repository brought. */
export type Poll = Readonly<{
  /** Every page came from the cache (304). */
  unchanged: boolean
  issues: readonly IssueSummary[]
  /** Things on GitHub we could not read as an issue; shown, never fatal (R§5.6). */
  malformed: readonly string[]
  /** GitHub's clock at the first page. */
  serverTime: number
}>

export type IssueComment = Readonly<{
  id: number
  author: string | null
  authorId: number | null
  authorAssociation: string
  body: string
  createdAt: number
  updatedAt: number
}>

export type TimelineEvent = Readonly<{
  id: number
  kind: string
  actor: string | null
  actorId: number | null
  createdAt: number
  label: string | null
  /** The pull request that refers to the issue; only of a cross-reference. */
  pull: ReferringPull | null
}>

/** A pull request, as the timeline of an issue it mentions shows it. */
export type ReferringPull = Readonly<{
  repository: RepositoryName | null
  number: number
  isOpen: boolean
  author: string | null
  title: string
  body: string
}>

export type PullRequest = Readonly<{
  number: number
  url: string
  state: 'open' | 'closed'
  merged: boolean
  headBranch: string
  headRepositoryId: number | null
  headOid: string
  baseBranch: string
  title: string
  body: string
  authorId: number | null
}>

export type RepositoryFacts = Readonly<{
  id: number
  name: RepositoryName
  defaultBranch: string
  archived: boolean
}>

export type Actor = Readonly<{ id: number; login: string }>

/** GitHub's clock when it answered, beside what it answered. */
export type Answer<T> = Readonly<{ value: T; serverTime: number }>

/**
 * GitHub as the engine needs it. Reads follow same-origin redirects, are complete over all pages, and
 * fault as github/unreachable, github/failed, github/bad-answer, github/too-many-pages,
 * github/rate-limited, github/refused, token/*. Writes are sent once, never retried; a fault of a write
 * is a `WriteFault`, whose `effect` says what became of it (PROTOCOLS, Writes to GitHub).
 */
export type GitHub = {
  viewer(): Promise<Actor>
  repository(repository: RepositoryName): Promise<RepositoryFacts | null>
  /** What the token may reach, without archived and disabled repositories (R§5.5). */
  accessibleRepositories(): Promise<readonly RepositoryName[]>
  /** Open issues carrying the label (design §10; GitHub docs "List repository issues"). */
  pollLabel(repository: RepositoryName, label: string): Promise<Poll>
  /** Issues and pull requests of any state updated since a time; stable URL, so an idle one is a 304. */
  pollChanges(repository: RepositoryName, since: number): Promise<Poll>
  /** null = 404 or 410. `movedTo` is set when a redirect led to another issue. */
  issue(key: IssueKey): Promise<(IssueSummary & { movedTo: IssueKey | null }) | null>
  comments(key: IssueKey, since?: number): Promise<Answer<readonly IssueComment[]>>
  timeline(key: IssueKey): Promise<Answer<readonly TimelineEvent[]>>
  pullRequest(repository: RepositoryName, number: number): Promise<PullRequest | null>
  /** All pages, any state, any base; filtered by head as GitHub does it, so compare again. */
  pullRequestsByHead(
    repository: RepositoryName,
    branch: string,
  ): Promise<Answer<readonly PullRequest[]>>
  createPullRequest(
    repository: RepositoryName,
    pull: Readonly<{ title: string; body: string; headBranch: string; baseBranch: string }>,
  ): Promise<{ kind: 'created'; pull: PullRequest } | { kind: 'exists' } | { kind: 'no-commits' }>
  createComment(key: IssueKey, body: string): Promise<IssueComment>
  deleteComment(repository: RepositoryName, id: number): Promise<void>
  /** A missing label counts as removed. */
  removeLabel(key: IssueKey, label: string): Promise<void>
  closeIssue(key: IssueKey): Promise<void>
  reopenIssue(key: IssueKey): Promise<void>
  /** GitHub's clock, from the last answer of any kind; null before the first. */
  serverTime(): number | null
}

/** The operator's clone of a watched repository, proved (design §8). */
export type OperatorClone = Readonly<{
  path: string
  /** As configured; may carry a user part, so it is never shown or put into an argument. */
  originUrl: string
  shallowOrPartial: boolean
}>

/** The daemon's own bare store of one repository, after a fetch (P§6). */
export type BaseCommit = Readonly<{
  storePath: string
  branch: string
  oid: string
}>

export type FetchedBase = BaseCommit & Readonly<{ remote: CapturedRemote }>

/** The tree of a run, checked out for its worker. */
export type RunTree = Readonly<{
  storePath: string
  path: string
  /** Pristine copy of the index made at launch; the commit starts from it (P§5). */
  indexPath: string
  baseOid: string
}>

/** What the worker's tree amounts to, built by plumbing. */
export type CapturedTree = Readonly<{
  treeOid: string
  changes: readonly TreeChange[]
  /** Submodules the worker moved; kept at the base and mentioned (P§5). */
  submodulesKept: readonly string[]
  /** Links out of the tree, or into a git directory, also by way of other links; not those the base has. */
  linksOut: readonly string[]
}>

export type TreeChange = Readonly<{
  path: string
  status: 'added' | 'modified' | 'deleted' | 'type-changed'
  oldMode: string
  newMode: string
  newOid: string
  /** Bytes of the new content; 0 for a deletion. */
  size: number
  /** Target of a symbolic link, else null. */
  linkTarget: string | null
}>

export type CommitRequest = Readonly<{
  treeOid: string
  parentOid: string
  message: string
  author: Readonly<{ name: string; email: string }>
  /** Seconds since the epoch, UTC; fixed in the journal so that the object id is a function of it. */
  dateSeconds: number
  /** The ref in the store that keeps the commit from being collected: `refs/runs/<run id>`. */
  keepAs: string
}>

export type Git = {
  /** Faults: clone/*. Reads only. */
  inspectClone(repository: RepositoryName): Promise<OperatorClone>
  /**
   * Creates or fetches the store; returns the default branch's tip, and the settings it was fetched with,
   * for the calls that come after the worker.
   */
  fetchBase(
    repository: RepositoryName,
    clone: OperatorClone,
    defaultBranch: string | null,
  ): Promise<FetchedBase>
  /** Checks the base out into `path` with a separate git directory for the worker. Idempotent. */
  createTree(
    base: BaseCommit,
    run: Readonly<{ runId: string; path: string; indexPath: string; branch: string }>,
  ): Promise<RunTree>
  /** Builds the published tree from the worker's files (P§5); `controlFiles` never reach it. */
  captureTree(tree: RunTree, controlFiles: readonly string[]): Promise<CapturedTree>
  /** Same request, same object id. */
  commitTree(storePath: string, request: CommitRequest): Promise<string>
  hasCommit(storePath: string, oid: string): Promise<boolean>
  /** The object id of a branch on the remote, or null. */
  remoteBranch(storePath: string, branch: string, remote: RunRemote): Promise<string | null>
  /** Create-only push; its faults are `WriteFault`s (PROTOCOLS, Writes to GitHub). */
  pushNewBranch(storePath: string, oid: string, branch: string, remote: RunRemote): Promise<void>
  /** Text of the difference for people, cut at maxBytes. */
  describeDifference(
    storePath: string,
    fromTree: string,
    toTree: string,
    maxBytes: number,
  ): Promise<string>
  removeTree(tree: Readonly<{ path: string; indexPath: string }>): Promise<void>
  /** Moves a tree with its git directory to `archivePath` in one step. Idempotent; false = none was there. */
  archiveTree(
    tree: Readonly<{ path: string; indexPath: string }>,
    archivePath: string,
  ): Promise<boolean>
  /**
   * Removes from a store what killed gits left, and the refs that keep the commits of runs that are gone.
   * false = somebody works on the store; nothing was done.
   */
  tidyStore(repository: RepositoryName, goneRuns: readonly string[]): Promise<boolean>
}
