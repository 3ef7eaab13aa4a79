import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { ensureAccount } from './accounts.ts'
import { findRepository, fullName, requireName } from './find-repository.ts'
import { refused } from './refused.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { GitHubState, Repository } from './state.ts'

/** Renames or transfers a repository; API and git paths of its old name lead to the new one. Faults: demo/refused. */
export function renameRepository(context: ServerContext, repository: Repository, to: string): void {
  const { owner, name } = requireName(to)
  if (findRepository(context.state, owner, name) !== null) throw refused(`${to} exists already`)
  const oldPath = gitPathOf(context, repository)
  repository.formerNames.push(fullName(repository).toLowerCase())
  repository.owner = ensureAccount(context.state, owner, context.clock.now()).login
  repository.name = name
  repository.updatedAt = context.clock.now()
  forgetFormerName(context.state, repository)
  const newPath = gitPathOf(context, repository)
  mkdirSync(dirname(newPath), { recursive: true })
  renameSync(oldPath, newPath)
  symlinkSync(newPath, oldPath)
}

/** A name that is taken again no longer redirects. */
export function forgetFormerName(state: GitHubState, repository: Repository): void {
  const taken = fullName(repository).toLowerCase()
  for (const { formerNames } of state.repositories) {
    const at = formerNames.indexOf(taken)
    if (at >= 0) formerNames.splice(at, 1)
  }
}
