// What operators do with accounts and repositories. Repositories are named `owner/name`, people by their
// login; whoever acts for the first time gets an account then.

import { ensureAccount, grantToken, revokeTokens } from './accounts.ts'
import { git } from './git-commits.ts'
import { gitPathOf, type Hub } from './hub.ts'
import { closeIssue, ensureLabel, recordEvent, touch } from './issues.ts'
import { identityOf, pinOids } from './pulls.ts'
import {
  createRepository as addRepository,
  fullName,
  isBranchName,
  listBranches,
  renameRepository as moveRepository,
  type RepositoryOrder,
  readBranch,
  refused,
  requireRepository,
  setBranch,
  setDefaultBranch,
} from './repositories.ts'
import type { AccountKind, Issue, Repository, Role, TokenPermissions } from './world.ts'

/** Whoever acts when a control verb does not say who. */
const OPERATOR = 'maintainer'

/** The account that acts, and when. */
export function byActor(hub: Hub, login: string = OPERATOR) {
  const now = hub.clock.now()
  const account = ensureAccount(hub.world, login, now)
  return { account, actorId: account.id, now }
}

export function createAccount(
  hub: Hub,
  order: Readonly<{ login: string; kind?: AccountKind }>,
): Readonly<{ id: number }> {
  return { id: ensureAccount(hub.world, order.login, hub.clock.now(), order.kind).id }
}

/** @returns the token given, or a fresh one; it may do everything but what `permissions` takes away */
export function createToken(
  hub: Hub,
  order: Readonly<{ login: string; token?: string; permissions?: Partial<TokenPermissions> }>,
): Readonly<{ token: string }> {
  const { account } = byActor(hub, order.login)
  return { token: grantToken(hub.world, account, order.token ?? null, order.permissions) }
}

export function revokeToken(hub: Hub, order: Readonly<{ login: string }>): void {
  revokeTokens(hub.world, byActor(hub, order.login).account)
}

/**
 * A repository with its first commit, unless `files` is null: then it is empty.
 * @param order `roles` come on top of `automation-bot` (write) and `maintainer` (admin)
 */
export async function createRepository(
  hub: Hub,
  order: RepositoryOrder &
    Readonly<{
      files?: Readonly<Record<string, FileContent>> | null
      roles?: Readonly<Record<string, Role>>
    }>,
): Promise<RepositoryFacts> {
  const repository = await addRepository(hub, order)
  const roles = { 'automation-bot': 'write', [OPERATOR]: 'admin', ...order.roles } as const
  for (const [login, role] of Object.entries<Role>(roles)) grantRole(hub, repository, login, role)
  const isBorn = order.copyOf !== undefined || order.forkOf !== undefined
  const { files = { 'README.md': `# ${repository.name}\n` } } = order
  if (!isBorn && files !== null) {
    const { defaultBranch: branch } = repository
    await pushCommit(hub, { repo: order.repo, branch, files, message: 'Begin' })
  }
  return readRepository(hub, { repo: order.repo })
}

type RepositoryFacts = Readonly<{
  id: number
  repo: string
  /** Path of the bare repository, to clone from and to push to. */
  gitPath: string
  defaultBranch: string
  /** Commits by branch. */
  branches: Readonly<Record<string, string>>
}>

export async function readRepository(
  hub: Hub,
  { repo }: Readonly<{ repo: string }>,
): Promise<RepositoryFacts> {
  const repository = requireRepository(hub.world, repo)
  const gitPath = gitPathOf(hub, repository)
  const branches = await listBranches(gitPath)
  const { id, defaultBranch } = repository
  return { id, repo: fullName(repository), gitPath, defaultBranch, branches }
}

/** Its old name redirects from then on. */
export function renameRepository(hub: Hub, order: Readonly<{ repo: string; to: string }>): void {
  moveRepository(hub, requireRepository(hub.world, order.repo), order.to)
}

export async function editRepository(
  hub: Hub,
  {
    repo,
    ...changes
  }: Readonly<{ repo: string }> &
    Partial<
      Pick<Repository, 'defaultBranch' | 'isPrivate' | 'isArchived' | 'isDisabled' | 'hasIssues'>
    >,
): Promise<void> {
  const repository = requireRepository(hub.world, repo)
  Object.assign(repository, changes, { updatedAt: hub.clock.now() })
  await setDefaultBranch(gitPathOf(hub, repository), repository.defaultBranch)
}

/** Role `none` takes somebody's role away. */
export function setRole(
  hub: Hub,
  order: Readonly<{ repo: string; login: string; role: Role }>,
): void {
  grantRole(hub, requireRepository(hub.world, order.repo), order.login, order.role)
}

function grantRole(hub: Hub, repository: Repository, login: string, role: Role): void {
  const { account } = byActor(hub, login)
  const known = repository.collaborators.find(({ accountId }) => accountId === account.id)
  if (known === undefined) repository.collaborators.push({ accountId: account.id, role })
  else known.role = role
}

export function createLabel(
  hub: Hub,
  order: Readonly<{ repo: string; name: string; color?: string; description?: string }>,
): void {
  ensureLabel(hub.world, requireRepository(hub.world, order.repo), order.name, order)
}

/**
 * Makes a commit on a branch, as somebody's push would. A branch that is not there yet starts from
 * `from`, or from the default branch. With `isForced` an existing one starts there too and loses its commits.
 */
export async function pushCommit(
  hub: Hub,
  order: Readonly<{
    repo: string
    branch: string
    files: Readonly<Record<string, FileContent>>
    message?: string
    author?: string
    from?: string
    isForced?: boolean
  }>,
): Promise<Readonly<{ oid: string }>> {
  const repository = requireRepository(hub.world, order.repo)
  if (!isBranchName(order.branch)) throw refused(`"${order.branch}" is no branch name`)
  const path = gitPathOf(hub, repository)
  const tip = order.isForced === true ? null : readBranch(path, order.branch)
  const { account, now } = byActor(hub, order.author)
  const oid = await commitFiles(path, {
    branch: order.branch,
    parent: tip ?? readBranch(path, order.from ?? repository.defaultBranch),
    message: order.message ?? 'Change files',
    author: identityOf(account),
    dateSeconds: Math.floor(now / 1000),
    files: order.files,
  })
  repository.updatedAt = now
  for (const pull of openPullsFrom(hub, repository, order.branch)) touch(pull.issue, now)
  return { oid }
}

/** Open pull requests from a branch are closed with it. */
export async function deleteBranch(
  hub: Hub,
  order: Readonly<{ repo: string; branch: string; actor?: string }>,
): Promise<void> {
  const repository = requireRepository(hub.world, order.repo)
  const path = gitPathOf(hub, repository)
  if (readBranch(path, order.branch) === null) throw refused(`there is no branch ${order.branch}`)
  const by = byActor(hub, order.actor)
  const pulls = openPullsFrom(hub, repository, order.branch)
  for (const { base, issue } of pulls) pinOids(hub, base, issue)
  await setBranch(path, order.branch, null)
  for (const { issue } of pulls) {
    recordEvent(hub.world, issue, 'head_ref_deleted', by)
    closeIssue(hub.world, issue, by)
  }
}

function openPullsFrom(
  hub: Hub,
  repository: Repository,
  branch: string,
): readonly Readonly<{ base: Repository; issue: Issue }>[] {
  const isFrom = ({ state, pull }: Issue): boolean =>
    state === 'open' && pull?.headRepositoryId === repository.id && pull.headBranch === branch
  return hub.world.repositories.flatMap((base) =>
    base.issues.filter(isFrom).map((issue) => ({ base, issue })),
  )
}

/** What a file becomes; a plain text is a normal file, null removes it. */
type FileContent =
  | string
  | null
  | Readonly<{
      content: string
      encoding?: 'utf8' | 'base64'
      /** git's modes of a normal file, an executable one, a symbolic link. */
      mode?: '100644' | '100755' | '120000'
    }>

type CommitOrder = Readonly<{
  branch: string
  /** The commit it builds on; null makes a root commit. */
  parent: string | null
  message: string
  author: Readonly<{ name: string; email: string }>
  /** Seconds since the epoch. */
  dateSeconds: number
  files: Readonly<Record<string, FileContent>>
}>

/**
 * Makes one commit and moves the branch to it, without a working tree (git-fast-import(1)).
 * Faults: git/failed.
 * @returns the branch's new commit
 */
async function commitFiles(path: string, order: CommitOrder): Promise<string> {
  const ref = `refs/heads/${order.branch}`
  const stream = Buffer.concat([
    text(`commit ${ref}\n`),
    text(`committer ${identity(order)}\n`),
    data(Buffer.from(order.message)),
    text(order.parent === null ? '' : `from ${order.parent}\n`),
    ...Object.entries(order.files).flatMap(([name, content]) => fileCommand(name, content)),
    text('\ndone\n'),
  ])
  await git(path, ['fast-import', '--quiet', '--force', '--done'], { input: stream })
  return readBranch(path, order.branch) ?? order.parent ?? ''
}

const text = (line: string): Buffer => Buffer.from(line)

const data = (content: Buffer): Buffer =>
  Buffer.concat([text(`data ${content.length}\n`), content, text('\n')])

const identity = ({ author, dateSeconds }: CommitOrder): string =>
  `${author.name.replaceAll(/[<>\n]/g, '')} <${author.email}> ${dateSeconds} +0000`

function fileCommand(name: string, content: FileContent): readonly Buffer[] {
  if (content === null) return [text(`D ${quoted(name)}\n`)]
  const file = typeof content === 'string' ? { content } : content
  const bytes = Buffer.from(file.content, file.encoding ?? 'utf8')
  return [text(`M ${file.mode ?? '100644'} inline ${quoted(name)}\n`), data(bytes)]
}

const quoted = (name: string): string =>
  `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
