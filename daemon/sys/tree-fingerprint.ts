import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Entries looked at; a larger tree is judged by as many of them. */
const MAX_ENTRIES = 100_000

/**
 * A value that differs whenever something below `root` was written, made, removed or renamed since the
 * last look: the newest change time and the number of entries. Change times cannot be set by programs.
 * Links are not followed; what cannot be looked at is left out. About 5 µs per entry.
 */
export function treeFingerprint(root: string): string {
  const waiting = [root]
  let newestMs = changeTime(root)
  let entries = 1
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const entry of entriesOf(folder)) {
      if (entries >= MAX_ENTRIES) return `${newestMs} ${entries}`
      entries += 1
      const path = join(folder, entry.name)
      newestMs = Math.max(newestMs, changeTime(path))
      if (entry.isDirectory()) waiting.push(path)
    }
  }
  return `${newestMs} ${entries}`
}

function changeTime(path: string): number {
  // The tree is being worked on: what vanishes meanwhile shows in the count and its folder's time.
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    // Removed meanwhile, or closed to us; its own times still count.
    return []
  }
}
