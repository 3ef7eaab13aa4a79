// What an account may do in a repository.

import { accountById } from './accounts.ts'
import { type GitHubState, type Repository, ROLES, type Role } from './state.ts'

/** The role of an account in a repository; anybody may read a public one (GitHub docs, "Repository roles"). */
export function roleOf(state: GitHubState, repository: Repository, accountId: number | null): Role {
  const open: Role = repository.isPrivate ? 'none' : 'read'
  if (accountId === null) return open
  if (accountById(state, accountId)?.login.toLowerCase() === repository.owner.toLowerCase()) {
    return 'admin'
  }
  const given = repository.collaborators.find((entry) => entry.accountId === accountId)
  return given === undefined || !hasRole(given.role, open) ? open : given.role
}

/** Whether a role includes another. */
export function hasRole(role: Role, required: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(required)
}

/** How GitHub describes an author's relation to a repository. */
export function associationOf(
  state: GitHubState,
  repository: Repository,
  accountId: number | null,
): 'OWNER' | 'COLLABORATOR' | 'NONE' {
  const account = accountById(state, accountId)
  if (account === null) return 'NONE'
  if (account.login.toLowerCase() === repository.owner.toLowerCase()) return 'OWNER'
  const isCollaborator = repository.collaborators.some(
    (entry) => entry.accountId === account.id && entry.role !== 'none',
  )
  return isCollaborator ? 'COLLABORATOR' : 'NONE'
}
