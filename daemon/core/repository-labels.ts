import type { RepositoryName } from './issue-key.ts'

/** Labels of a repository: a port for `setup` alone, because the engine never makes a label. Faults: github/*. */
export type RepositoryLabels = {
  /** The names of all labels. */
  labels(repository: RepositoryName): Promise<readonly string[]>
  /** `color`: six hexadecimal digits. */
  createLabel(
    repository: RepositoryName,
    label: Readonly<{ name: string; color: string; description: string }>,
  ): Promise<'created' | 'exists'>
}
