import type { components } from '@octokit/openapi-types'
import { permissions } from './rest-repository.ts'
import { simpleUser, type View } from './rest-user.ts'
import { roleOf } from './roles.ts'
import type { Account, Repository, Role } from './state.ts'

type Permission = components['schemas']['repository-collaborator-permission']

/** The older, coarser names that GitHub gives roles beside their own. */
const PERMISSION_OF = {
  none: 'none',
  read: 'read',
  triage: 'read',
  write: 'write',
  maintain: 'write',
  admin: 'admin',
} as const satisfies Record<Role, string>

export function restPermission(view: View, repository: Repository, account: Account): Permission {
  const role = roleOf(view.state, repository, account.id)
  const user = { ...simpleUser(view, account), role_name: role, permissions: permissions(role) }
  return { permission: PERMISSION_OF[role], role_name: role, user }
}
