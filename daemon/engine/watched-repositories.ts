import {
  formatRepository,
  parseRepositoryName,
  type RepositoryName,
  repositoryId,
} from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { Git } from '../core/ports.ts'
import { eachBounded } from './each-bounded.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

export type Watched = Readonly<{
  repositories: readonly RepositoryName[]
  problems: readonly TickProblem[]
}>

/**
 * The configured repositories, and with `discover: true` those the token may reach (R§5.5). GitHub is
 * asked only when a poll is due; in between, and when it cannot tell, those remembered from the last
 * poll stand.
 */
export async function watchedRepositories(ports: TickPorts, pollIsDue: boolean): Promise<Watched> {
  const { repositories, discover } = ports.settings
  if (!discover) return { repositories, problems: [] }
  if (!pollIsDue) return { repositories: withRemembered(ports), problems: [] }
  try {
    const found = await ports.github.accessibleRepositories()
    return { repositories: union(repositories, found), problems: [] }
  } catch (thrown) {
    // The repositories known so far are watched on; the problem is told.
    return { repositories: withRemembered(ports), problems: [{ where: 'discovery', thrown }] }
  }
}

function withRemembered({ store, settings }: TickPorts): readonly RepositoryName[] {
  const remembered = Object.keys(store.readMeta().repositories).map(parseRepositoryName)
  return union(
    settings.repositories,
    remembered.filter((name) => name !== null),
  )
}

/** As configured first; GitHub ignores case. */
function union(
  first: readonly RepositoryName[],
  more: readonly RepositoryName[],
): readonly RepositoryName[] {
  const byId = new Map([...more, ...first].map((name) => [repositoryId(name), name]))
  return [...byId.values()]
}

export type CloneReport = Readonly<{
  usable: readonly RepositoryName[]
  problems: readonly (TickProblem & Readonly<{ repository: RepositoryName }>)[]
}>

/** Which watched repositories have a usable clone. The others are not polled at all (design §8). */
export async function inspectClones(
  git: Pick<Git, 'inspectClone'>,
  repositories: readonly RepositoryName[],
): Promise<CloneReport> {
  const looked = await eachBounded(repositories, LIMITS.gitConcurrency, async (repository) => {
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
