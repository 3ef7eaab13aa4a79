// What the embedded GitHub holds: everything but git objects. Plain JSON data, written to `github.json` as it
// stands. It is changed in place, one request at a time, and only by the verbs of accounts, repositories, issues
// and pull requests; everything that presents it only reads. Times are milliseconds since the epoch.

export const STATE_FORMAT = 1

export type GitHubState = {
  readonly format: typeof STATE_FORMAT
  /** Of accounts and repositories; small, as GitHub's are. */
  nextSmallId: number
  /** Of issues, labels, comments and events: beyond 32 bits, as GitHub's are, and ever increasing. */
  nextId: number
  readonly accounts: Account[]
  readonly tokens: Token[]
  readonly repositories: Repository[]
}

export type Account = {
  readonly id: number
  readonly login: string
  readonly kind: AccountKind
  readonly createdAt: number
}

export type AccountKind = 'User' | 'Bot' | 'Organization'

/** The token itself is not stored: only its SHA-256, in hexadecimal. */
export type Token = {
  readonly hash: string
  readonly accountId: number
  readonly permissions: TokenPermissions
}

/**
 * What a fine-grained personal access token may do (GitHub docs, "Permissions required for fine-grained personal
 * access tokens").
 */
export type TokenPermissions = Readonly<Record<TokenScope, TokenLevel>>

export type TokenScope = 'metadata' | 'contents' | 'issues' | 'pull_requests'

export type TokenLevel = 'none' | 'read' | 'write'

/** Roles of a collaborator, in rising order. */
export const ROLES = ['none', 'read', 'triage', 'write', 'maintain', 'admin'] as const

export type Role = (typeof ROLES)[number]

export type Repository = {
  readonly id: number
  owner: string
  name: string
  /** `owner/name` in lower case: names it had before; they redirect. */
  readonly formerNames: string[]
  defaultBranch: string
  description: string | null
  isPrivate: boolean
  isArchived: boolean
  isDisabled: boolean
  hasIssues: boolean
  /** The repository this one is a fork of. */
  readonly forkOf: number | null
  readonly collaborators: Collaborator[]
  readonly labels: Label[]
  /** Issues and pull requests, by rising number. */
  readonly issues: Issue[]
  nextNumber: number
  readonly createdAt: number
  updatedAt: number
}

type Collaborator = { readonly accountId: number; role: Role }

export type Label = {
  readonly id: number
  readonly name: string
  readonly color: string
  readonly description: string
}

/** An issue, or a pull request when `pull` is there: GitHub numbers and lists them together. */
export type Issue = {
  readonly id: number
  readonly number: number
  title: string
  body: string | null
  /** null = an account that is gone. */
  readonly authorId: number | null
  state: 'open' | 'closed'
  stateReason: StateReason | null
  readonly createdAt: number
  updatedAt: number
  closedAt: number | null
  closedById: number | null
  labelIds: number[]
  readonly comments: Comment[]
  readonly events: IssueEvent[]
  pull: Pull | null
  /** Where reading it leads instead: it was deleted (410) or transferred (301). */
  departure: Departure | null
  /** Fields laid over its JSON as they are, for answers GitHub should not give. */
  overlay: Readonly<Record<string, unknown>> | null
}

export type StateReason = 'completed' | 'not_planned' | 'duplicate' | 'reopened'

type Departure =
  | Readonly<{ kind: 'deleted' }>
  | Readonly<{ kind: 'transferred'; repositoryId: number; number: number }>

export type Pull = {
  readonly headRepositoryId: number
  readonly headBranch: string
  baseBranch: string
  /** While it is open the branches decide; these are what they last were. */
  headOid: string
  baseOid: string
  readonly isDraft: boolean
  mergedAt: number | null
  mergedById: number | null
  mergeCommitOid: string | null
}

/** An issue that is a pull request. */
export type PullIssue = Issue & { pull: Pull }

export function isPull(issue: Issue): issue is PullIssue {
  return issue.pull !== null
}

export type Comment = {
  readonly id: number
  readonly authorId: number | null
  body: string
  readonly createdAt: number
  updatedAt: number
}

export type IssueEvent = {
  readonly id: number
  readonly kind: EventKind
  readonly actorId: number | null
  readonly createdAt: number
  readonly label: Readonly<{ name: string; color: string }> | null
  readonly rename: Readonly<{ from: string; to: string }> | null
  readonly commitOid: string | null
  readonly stateReason: StateReason | null
  /** Of a cross-reference: where it was written. */
  readonly source: Readonly<{ repositoryId: number; number: number }> | null
}

export type EventKind =
  | 'labeled'
  | 'unlabeled'
  | 'closed'
  | 'reopened'
  | 'renamed'
  | 'merged'
  | 'referenced'
  | 'cross-referenced'
  | 'head_ref_deleted'
  | 'transferred'

/** Who does something, and when. */
export type By = Readonly<{ actorId: number | null; now: number }>

export function emptyState(): GitHubState {
  return {
    format: STATE_FORMAT,
    nextSmallId: 1001,
    nextId: 3_000_000_001,
    accounts: [],
    tokens: [],
    repositories: [],
  }
}
