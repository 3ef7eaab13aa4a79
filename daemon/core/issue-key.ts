import { fault } from './fault.ts'

/** A repository on GitHub; case as the operator or GitHub wrote it. */
export type RepositoryName = Readonly<{ owner: string; name: string }>

/** One issue of one repository. */
export type IssueKey = Readonly<{ owner: string; name: string; number: number }>

// GitHub: an owner is 1–39 letters, digits and inner hyphens (several in a row only in old accounts);
// a name is 1–100 of [A-Za-z0-9._-], never "." or "..", never ending in ".git".
const OWNER = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?$/
const NAME = /^[A-Za-z0-9._-]{1,100}$/
const NUMBER = /^[1-9][0-9]{0,9}$/

/** Parses `owner/name`; null = GitHub allows no such name. */
export function parseRepositoryName(text: string): RepositoryName | null {
  const [owner, name, ...rest] = text.split('/')
  if (owner === undefined || name === undefined || rest.length > 0) return null
  if (!OWNER.test(owner) || !NAME.test(name)) return null
  if (name === '.' || name === '..' || name.toLowerCase().endsWith('.git')) return null
  return { owner, name }
}

/** Parses `owner/name#number`; null = the text does not name an issue. */
export function parseIssueKey(text: string): IssueKey | null {
  const at = text.lastIndexOf('#')
  if (at < 0) return null
  const repository = parseRepositoryName(text.slice(0, at))
  const number = text.slice(at + 1)
  if (repository === null || !NUMBER.test(number)) return null
  return { ...repository, number: Number(number) }
}

/** Parses what a person typed. Faults: usage/invalid. */
export function requireIssueKey(text: string, command: string): IssueKey {
  const key = parseIssueKey(text)
  if (key !== null) return key
  throw fault('usage/invalid', {
    reason: `"${text}" does not name an issue; write owner/repo#number.`,
    command,
  })
}

/** `owner/name` with the case it was given in. */
export function formatRepository(repository: RepositoryName): string {
  return `${repository.owner}/${repository.name}`
}

/** `owner/name#number` with the case it was given in. */
export function formatIssue(key: IssueKey): string {
  return `${key.owner}/${key.name}#${key.number}`
}

/** The form in which an issue is stored and compared: lower case, because GitHub ignores case. */
export function issueId(key: IssueKey): string {
  return formatIssue(key).toLowerCase()
}

/** The form in which a repository is stored and compared: lower case. */
export function repositoryId(repository: RepositoryName): string {
  return formatRepository(repository).toLowerCase()
}

export function repositoryOf(key: IssueKey): RepositoryName {
  return { owner: key.owner, name: key.name }
}
