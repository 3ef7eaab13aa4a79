import { join } from 'node:path'
import type { Config } from '../config/make-config.ts'
import { LIMITS } from '../core/limits.ts'
import type { RateLimit } from '../core/meta.ts'
import type { Clock, GitHub, Store } from '../core/ports.ts'
import { fromTimestamp, plausibleWait } from '../core/timestamp.ts'
import { openGitHub } from '../github/open-github.ts'
import type { StateLayout } from '../state/layout.ts'
import type { Build } from './build.ts'
import type { TokenOfProcess } from './credentials.ts'

/** What the metadata retains of GitHub's answers to this process; null = no answer had it yet. */
export type LastAnswer = Readonly<{ status: number | null; rate: RateLimit | null }>

/**
 * GitHub behind the one gate that all processes share: the wait stored in the metadata. A limit that one
 * process meets is stored there, unless a longer wait is already known.
 */
export function openStoredGitHub(
  parts: Readonly<{
    clock: Clock
    store: Store
    layout: StateLayout
    token: TokenOfProcess
    random: () => number
    config: Config
    build: Build
    timeLeftMs: () => number
    onAnswer: (answer: LastAnswer) => void
  }>,
): GitHub {
  const { clock, store, config, random, onAnswer } = parts
  return openGitHub(
    {
      clock,
      random,
      onAnswer,
      gate: () => store.readMeta().wait,
      onWait: (wait) =>
        store.changeMeta((meta) => {
          const now = clock.now()
          const known = plausibleWait(meta.wait?.until ?? null, now, LIMITS.rateLimitCapMs) ?? 0
          const isLonger = fromTimestamp(wait.until) > known
          return { state: isLonger ? { ...meta, wait } : meta, value: undefined }
        }),
    },
    {
      apiBase: config.apiBase.url,
      version: parts.build.version,
      maxPages: config.discoveryMaxPages,
      cacheDirectory: join(parts.layout.directories.cache, 'http'),
      token: parts.token.get,
      timeoutMs: config.httpTimeoutSeconds * 1000,
      timeLeftMs: parts.timeLeftMs,
    },
  )
}
