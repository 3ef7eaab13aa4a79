import { join } from 'node:path'
import type { Clock } from '../core/ports.ts'
import { type Comparison, compareCommits } from './commit-facts.ts'
import type { FaultRules } from './fault-rules.ts'
import type { OneAtATime } from './one-at-a-time.ts'
import type { RateLimits } from './rate-limits.ts'
import type { RequestLog } from './request-log.ts'
import type { VisibilityLag } from './visibility-lag.ts'
import type { Repository, World } from './world.ts'

/** Everything one running embedded GitHub has; the first argument of all its functions. */
export type Hub = {
  readonly root: string
  /** Of the API, without a slash at the end. */
  readonly url: string
  readonly world: World
  /** GitHub's clock: the host's, moved by `settings.clockOffsetMs`. */
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Settings
  readonly limits: RateLimits
  readonly lag: VisibilityLag
  readonly faults: FaultRules
  readonly log: RequestLog
  /** By commits, which never change, so an entry is never wrong. */
  readonly comparisons: Map<string, Comparison>
  /** Whatever changes the content runs through here, so that two changes never meet. */
  readonly oneAtATime: OneAtATime
  /** Aborts when the server closes. */
  readonly closing: AbortSignal
}

export type Settings = {
  /** Added to every API request before it is looked at. */
  latencyMs: number
  clockOffsetMs: number
}

const MAX_COMPARISONS = 1000

/** Where the bare repository lies. After a rename the old path is a link to it, so clones go on working. */
export function gitPathOf(hub: Pick<Hub, 'root'>, repository: Repository): string {
  return join(hub.root, 'git', repository.owner, `${repository.name}.git`)
}

/** As `compareCommits`, remembered. Faults: git/failed. */
export async function compareInRepository(
  hub: Hub,
  repository: Repository,
  baseOid: string,
  headOid: string,
): Promise<Comparison> {
  const key = `${repository.id} ${baseOid} ${headOid}`
  const known = hub.comparisons.get(key)
  if (known !== undefined) return known
  const comparison = await compareCommits(gitPathOf(hub, repository), baseOid, headOid)
  if (hub.comparisons.size >= MAX_COMPARISONS) hub.comparisons.clear()
  hub.comparisons.set(key, comparison)
  return comparison
}
