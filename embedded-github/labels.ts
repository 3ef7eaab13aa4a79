// The labels of a repository and of its issues.

import { takeId } from './ids.ts'
import { recordEvent } from './issue-events.ts'
import type { By, GitHubState, Issue, Label, Repository } from './state.ts'

/** GitHub's colour for a label made without one. */
const DEFAULT_COLOR = 'ededed'

/** GitHub compares label names without case, and otherwise exactly. */
export function findLabel(repository: Repository, name: string): Label | null {
  const lower = name.toLowerCase()
  return repository.labels.find((label) => label.name.toLowerCase() === lower) ?? null
}

/** The repository's label of that name, made when there is none. */
export function ensureLabel(
  state: GitHubState,
  repository: Repository,
  name: string,
  style: Readonly<{ color?: string; description?: string }> = {},
): Label {
  const found = findLabel(repository, name)
  if (found !== null) return found
  const { color = DEFAULT_COLOR, description = '' } = style
  const label = { id: takeId(state), name, color, description }
  repository.labels.push(label)
  return label
}

export function labelsOf(repository: Repository, issue: Issue): readonly Label[] {
  return repository.labels.filter((label) => issue.labelIds.includes(label.id))
}

/** Labels an issue, one event per label it did not have yet. */
export function addLabels(
  state: GitHubState,
  repository: Repository,
  issue: Issue,
  names: readonly string[],
  by: By,
): void {
  for (const name of names) {
    const label = ensureLabel(state, repository, name)
    if (issue.labelIds.includes(label.id)) continue
    issue.labelIds.push(label.id)
    recordEvent(state, issue, 'labeled', by, { label: shown(label) })
  }
}

/** @returns false when the issue does not have the label */
export function removeLabel(
  state: GitHubState,
  repository: Repository,
  issue: Issue,
  name: string,
  by: By,
): boolean {
  const label = findLabel(repository, name)
  if (label === null || !issue.labelIds.includes(label.id)) return false
  issue.labelIds = issue.labelIds.filter((id) => id !== label.id)
  recordEvent(state, issue, 'unlabeled', by, { label: shown(label) })
  return true
}

/** Gives an issue exactly these labels. */
export function setLabels(
  state: GitHubState,
  repository: Repository,
  issue: Issue,
  names: readonly string[],
  by: By,
): void {
  const desired = names.map((name) => name.toLowerCase())
  for (const { name } of labelsOf(repository, issue)) {
    if (!desired.includes(name.toLowerCase())) removeLabel(state, repository, issue, name, by)
  }
  addLabels(state, repository, issue, names, by)
}

const shown = ({ name, color }: Label) => ({ name, color })
