import { recordEvent } from './timeline.ts'
import { type Issue, type Label, type Repository, takeId, type World } from './world.ts'

/** GitHub's colour for a label made without one. */
const DEFAULT_COLOR = 'ededed'

type By = Readonly<{ actorId: number | null; now: number }>

/** GitHub compares label names without case, and otherwise exactly. */
export function findLabel(repository: Repository, name: string): Label | null {
  const wanted = name.toLowerCase()
  return repository.labels.find((label) => label.name.toLowerCase() === wanted) ?? null
}

/** The repository's label of that name, made when there is none. */
export function ensureLabel(
  world: World,
  repository: Repository,
  name: string,
  look: Readonly<{ color?: string; description?: string }> = {},
): Label {
  const found = findLabel(repository, name)
  if (found !== null) return found
  const { color = DEFAULT_COLOR, description = '' } = look
  const label = { id: takeId(world), name, color, description }
  repository.labels.push(label)
  return label
}

export function labelsOf(repository: Repository, issue: Issue): readonly Label[] {
  return repository.labels.filter((label) => issue.labelIds.includes(label.id))
}

/** Labels an issue, one event per label it did not have yet. */
export function addLabels(
  world: World,
  repository: Repository,
  issue: Issue,
  names: readonly string[],
  by: By,
): void {
  for (const name of names) {
    const label = ensureLabel(world, repository, name)
    if (issue.labelIds.includes(label.id)) continue
    issue.labelIds.push(label.id)
    recordEvent(world, issue, 'labeled', by, { label: shown(label) })
  }
}

/** @returns false when the issue does not have the label */
export function removeLabel(
  world: World,
  repository: Repository,
  issue: Issue,
  name: string,
  by: By,
): boolean {
  const label = findLabel(repository, name)
  if (label === null || !issue.labelIds.includes(label.id)) return false
  issue.labelIds = issue.labelIds.filter((id) => id !== label.id)
  recordEvent(world, issue, 'unlabeled', by, { label: shown(label) })
  return true
}

const shown = ({ name, color }: Label) => ({ name, color })
