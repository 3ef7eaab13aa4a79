import type { RepositoryName } from './issue-key.ts'

/** A port beside GitHub's, for `setup`: the engine never makes a label. Faults: as those of GitHub. */
export type RepositoryLabels = {
  /** All names. */
  labels(repository: RepositoryName): Promise<readonly string[]>
  /** `color`: six hexadecimal digits. */
  createLabel(
    repository: RepositoryName,
    label: Readonly<{ name: string; color: string; description: string }>,
  ): Promise<'created' | 'exists'>
}
