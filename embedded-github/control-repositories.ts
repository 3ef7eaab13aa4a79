// What operators do with repositories, which are named `owner/name`.

import { setDefaultBranch } from './bare-repository.ts'
import { listBranches } from './branches.ts'
import type { FileContent } from './commit-files.ts'
import { byActor, OPERATOR } from './control-accounts.ts'
import { pushCommit } from './control-branches.ts'
import { createRepository as addRepository, type RepositoryOrder } from './create-repository.ts'
import { fullName, requireRepository } from './find-repository.ts'
import { ensureLabel } from './labels.ts'
import { renameRepository as moveRepository } from './rename-repository.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { Repository, Role } from './state.ts'

/**
 * A repository with its first commit, unless `files` is null: then it is empty.
 * @param order `roles` come on top of `automation-bot` (write) and `maintainer` (admin)
 */
export async function createRepository(
  context: ServerContext,
  order: RepositoryOrder &
    Readonly<{
      files?: Readonly<Record<string, FileContent>> | null
      roles?: Readonly<Record<string, Role>>
    }>,
): Promise<RepositoryFacts> {
  const repository = await addRepository(context, order)
  const roles = { 'automation-bot': 'write', [OPERATOR]: 'admin', ...order.roles } as const
  for (const [login, role] of Object.entries<Role>(roles))
    grantRole(context, repository, login, role)
  const isBorn = order.copyOf !== undefined || order.forkOf !== undefined
  const { files = { 'README.md': `# ${repository.name}\n` } } = order
  if (!isBorn && files !== null) {
    const { defaultBranch: branch } = repository
    await pushCommit(context, { repo: order.repo, branch, files, message: 'Begin' })
  }
  return readRepository(context, { repo: order.repo })
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
  context: ServerContext,
  { repo }: Readonly<{ repo: string }>,
): Promise<RepositoryFacts> {
  const repository = requireRepository(context.state, repo)
  const gitPath = gitPathOf(context, repository)
  const branches = await listBranches(gitPath)
  const { id, defaultBranch } = repository
  return { id, repo: fullName(repository), gitPath, defaultBranch, branches }
}

/** Its old name redirects from then on. */
export function renameRepository(
  context: ServerContext,
  order: Readonly<{ repo: string; to: string }>,
): void {
  moveRepository(context, requireRepository(context.state, order.repo), order.to)
}

export async function editRepository(
  context: ServerContext,
  {
    repo,
    ...changes
  }: Readonly<{ repo: string }> &
    Partial<
      Pick<Repository, 'defaultBranch' | 'isPrivate' | 'isArchived' | 'isDisabled' | 'hasIssues'>
    >,
): Promise<void> {
  const repository = requireRepository(context.state, repo)
  Object.assign(repository, changes, { updatedAt: context.clock.now() })
  await setDefaultBranch(gitPathOf(context, repository), repository.defaultBranch)
}

/** Role `none` takes the account's role away. */
export function setRole(
  context: ServerContext,
  order: Readonly<{ repo: string; login: string; role: Role }>,
): void {
  grantRole(context, requireRepository(context.state, order.repo), order.login, order.role)
}

function grantRole(
  context: ServerContext,
  repository: Repository,
  login: string,
  role: Role,
): void {
  const { account } = byActor(context, login)
  const known = repository.collaborators.find(({ accountId }) => accountId === account.id)
  if (known === undefined) repository.collaborators.push({ accountId: account.id, role })
  else known.role = role
}

export function createLabel(
  context: ServerContext,
  order: Readonly<{ repo: string; name: string; color?: string; description?: string }>,
): void {
  ensureLabel(context.state, requireRepository(context.state, order.repo), order.name, order)
}
