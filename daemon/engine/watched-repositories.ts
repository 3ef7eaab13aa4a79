import { parseRepositoryName, type RepositoryName, repositoryId } from '../core/issue-key.ts'
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
