// Which repositories and issues there are, by name, number or id.

import { parseRepositoryName } from '../daemon/core/issue-key.ts'
import { refused } from './refused.ts'
import type { GitHubState, Issue, Repository } from './state.ts'

/** By its present name; GitHub compares names without case. */
export function findRepository(state: GitHubState, owner: string, name: string): Repository | null {
  const lower = `${owner}/${name}`.toLowerCase()
  return state.repositories.find((candidate) => fullName(candidate).toLowerCase() === lower) ?? null
}

/** By a name it had before. */
export function findRenamed(state: GitHubState, owner: string, name: string): Repository | null {
  const lower = `${owner}/${name}`.toLowerCase()
  return state.repositories.find(({ formerNames }) => formerNames.includes(lower)) ?? null
}

export function repositoryById(state: GitHubState, id: number): Repository | null {
  return state.repositories.find((candidate) => candidate.id === id) ?? null
}

/** Numbers rise by one from 1, so that the number gives the index. */
export function findIssue(repository: Repository, number: number): Issue | null {
  return repository.issues[number - 1] ?? null
}

export function fullName(repository: Readonly<{ owner: string; name: string }>): string {
  return `${repository.owner}/${repository.name}`
}

/** Faults: demo/refused for a repository that is not there. */
export function requireRepository(state: GitHubState, repo: string): Repository {
  const { owner, name } = requireName(repo)
  const found = findRepository(state, owner, name)
  if (found === null) throw refused(`there is no repository ${repo}`)
  return found
}

/** Faults: demo/refused for an issue that is not there. */
export function requireIssue(repository: Repository, number: number): Issue {
  const found = findIssue(repository, number)
  if (found === null) throw refused(`${fullName(repository)} has no issue ${number}`)
  return found
}

export function requireName(repo: string) {
  const name = parseRepositoryName(repo)
  if (name === null) throw refused(`"${repo}" is no repository name`)
  return name
}
