import {
  formatRepository,
  parseRepositoryName,
  type RepositoryName,
  repositoryId,
} from '../core/issue-key.ts'
import { spellingsOf } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'
import type { RepositoryState } from '../core/meta.ts'
import type { Git, GitHub, IssueSummary } from '../core/ports.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import type { TickPorts, TickProblem, TickSettings } from './tick-ports.ts'

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
  const probed = await eachBounded(repositories, LIMITS.gitConcurrency, async (repository) => {
    try {
      await git.inspectClone(repository)
      return { repository, thrown: null }
    } catch (thrown) {
      return { repository, thrown } // reported for this repository; the others go on
    }
  })
  return {
    usable: probed.flatMap(({ repository, thrown }) => (thrown === null ? [repository] : [])),
    problems: probed.flatMap(({ repository, thrown }) =>
      thrown === null ? [] : [{ repository, where: formatRepository(repository), thrown }],
    ),
  }
}

/** What a poll of one repository brought. */
export type RepositoryPoll = Readonly<{
  issues: readonly IssueSummary[]
  /** Everything came from the cache. */
  unchanged: boolean
  /** Both labels were asked for, so nothing can have been missed. */
  isFullPoll: boolean
  sweptAt: RepositoryState['sweptAt']
  malformed: readonly string[]
}>

/**
 * One repository's news. The first time, once an hour and on demand both labels are listed in each
 * spelling (a sweep); in between one request asks for everything changed since the sweep. Its address
 * stays the same, so an idle tick costs one 304 per repository (design §10), and a change that one
 * answer did not show yet (read-after-write lag) shows in the next.
 * Faults: github/*.
 */
export async function pollRepository(
  github: GitHub,
  settings: TickSettings,
  repository: RepositoryName,
  state: RepositoryState | undefined,
  now: number,
  forced: boolean,
): Promise<RepositoryPoll> {
  const sweptAt = state?.sweptAt ?? null
  if (!forced && sweptAt !== null && isRecent(fromTimestamp(sweptAt), now)) {
    const poll = await github.pollChanges(repository, fromTimestamp(sweptAt) - LIMITS.pollOverlapMs)
    return { ...poll, isFullPoll: false, sweptAt }
  }
  const labels = [settings.triggers.code, settings.triggers.investigation].flatMap(spellingsOf)
  const polls = await Promise.all(labels.map((label) => github.pollLabel(repository, label)))
  const issues = polls.flatMap((poll) => poll.issues)
  return {
    issues: [...new Map(issues.map((issue) => [issue.number, issue])).values()],
    unchanged: polls.every((poll) => poll.unchanged),
    isFullPoll: true,
    sweptAt: toTimestamp(Math.min(...polls.map((poll) => poll.serverTime))),
    malformed: polls.flatMap((poll) => poll.malformed),
  }
}

/** The stored time is GitHub's and `now` is ours: either clock may be ahead of the other. */
function isRecent(sweptAt: number, now: number): boolean {
  return Math.abs(now - sweptAt) < LIMITS.fullPollMs
}
