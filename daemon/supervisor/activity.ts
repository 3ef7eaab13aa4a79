// Whether a worker still does something: output, its result file, its tree. Reading a tree costs time, so it
// happens only while the answer can matter, and at intervals of its own.

import { isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { claimsSuccess, type Launch } from '../core/supervision-files.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { treeFingerprint } from '../sys/tree-entry.ts'

const SHORTEST_INTERVAL_MS = 250
const LONGEST_INTERVAL_MS = 10_000
/** A wait is noticed as over at most this part of it late. */
const PROBES_PER_WAIT = 8

export type Activity = Readonly<{
  noteOutput(): void
  probe(): Readonly<{ hasResult: boolean; quietMs: number }>
}>

type Watched = Pick<Launch, 'completionGraceMs' | 'stallMs' | 'treePath' | 'resultPath'>

/** Watches for the two waits of a launch; with both off nothing is ever read. */
export function watchActivity(clock: Clock, watched: Watched): Activity {
  const intervalMs = intervalOf(watched)
  let changedAt = clock.now()
  let probedAt = Number.NEGATIVE_INFINITY
  let fingerprint = ''
  let hasResult = false

  const fingerprintTree = (now: number): void => {
    hasResult = watched.completionGraceMs > 0 && resultClaimsSuccess(watched.resultPath)
    if (!hasResult && watched.stallMs === 0) return
    const found = fingerprintOf(watched)
    if (found !== fingerprint) changedAt = now
    fingerprint = found
  }

  return {
    noteOutput: () => {
      changedAt = clock.now()
    },
    probe: () => {
      const now = clock.now()
      if (now - probedAt >= intervalMs) {
        probedAt = now
        fingerprintTree(now)
      }
      return { hasResult, quietMs: now - changedAt }
    },
  }
}

function intervalOf({ completionGraceMs, stallMs }: Watched): number {
  const waits = [completionGraceMs, stallMs].filter((ms) => ms > 0)
  const desiredMs = Math.min(...waits) / PROBES_PER_WAIT
  return Math.min(Math.max(desiredMs, SHORTEST_INTERVAL_MS), LONGEST_INTERVAL_MS)
}

function resultClaimsSuccess(path: string): boolean {
  const bytes = orNull(() => readFileBounded(path, LIMITS.resultBytes))
  return bytes !== null && claimsSuccess(bytes.toString('utf8'))
}

function fingerprintOf({ treePath, resultPath }: Watched): string {
  const result = orNull(() => fileStatus(resultPath))
  return `${treeFingerprint(treePath)} ${result?.ino} ${result?.mtimeMs} ${result?.size}`
}

/** What the worker put there may be unreadable in any way; that is no result, and no fault of ours. */
function orNull<T>(ask: () => T | null): T | null {
  try {
    return ask()
  } catch (thrown) {
    if (isFault(thrown)) return null
    throw thrown
  }
}
