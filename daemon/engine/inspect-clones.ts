import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { Git } from '../core/ports.ts'
import { eachBounded } from './each-bounded.ts'
import type { TickProblem } from './tick-ports.ts'

export type CloneReport = Readonly<{
  usable: readonly RepositoryName[]
  problems: readonly (TickProblem & Readonly<{ repository: RepositoryName }>)[]
}>

/** Which watched repositories have a usable clone. The others are not polled at all (design §8). */
export async function inspectClones(
  git: Pick<Git, 'inspectClone'>,
  repositories: readonly RepositoryName[],
): Promise<CloneReport> {
  const looked = await eachBounded(repositories, LIMITS.httpConcurrency, async (repository) => {
    try {
      await git.inspectClone(repository)
      return { repository, thrown: null }
    } catch (thrown) {
      return { repository, thrown } // reported for this repository; the others go on
    }
  })
  return {
    usable: looked.flatMap(({ repository, thrown }) => (thrown === null ? [repository] : [])),
    problems: looked.flatMap(({ repository, thrown }) =>
      thrown === null ? [] : [{ repository, where: formatRepository(repository), thrown }],
    ),
  }
}
