import { join } from 'node:path'
import type { Clock } from '../daemon/core/ports.ts'
import type { Comparison } from './compare-commits.ts'
import type { OneAtATime } from './one-at-a-time.ts'
import type { RateLimits } from './rate-limits.ts'
import type { GitHubState, Repository } from './state.ts'
import type { FaultRules } from './test-faults.ts'
import type { VisibilityLag } from './test-read-lag.ts'
import type { RequestLog } from './test-request-log.ts'

/** Everything that one running embedded GitHub holds; the first argument of most of its functions. */
export type ServerContext = {
  readonly root: string
  /** Of the API, without a slash at the end. */
  readonly url: string
  readonly state: GitHubState
  /** GitHub's clock: the host's, moved by `settings.clockOffsetMs`. */
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Settings
  readonly limits: RateLimits
  readonly lag: VisibilityLag
  readonly faults: FaultRules
  readonly log: RequestLog
  /** By commits, which never change, so an entry is never wrong. */
  readonly comparisons: Map<string, Comparison>
  /** Every change of the state runs through here, so that no two overlap. */
  readonly oneAtATime: OneAtATime
  /** Aborts when the server closes. */
  readonly closing: AbortSignal
}

export type Settings = {
  /** Milliseconds that every API request waits before it is treated. */
  latencyMs: number
  clockOffsetMs: number
}

/** Where the bare repository lies. After a rename the old path is a link to it, so clones go on working. */
export function gitPathOf(context: Pick<ServerContext, 'root'>, repository: Repository): string {
  return join(context.root, 'git', repository.owner, `${repository.name}.git`)
}
