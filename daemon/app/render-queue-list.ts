import type { QueueList } from './list-queue.ts'
import { oneLine } from './one-line.ts'
import type { ShownEntry } from './show-entry.ts'

const NONE = '-'
/** Characters of an error that are always shown; a narrower terminal wraps. */
const LEAST_ERROR_WIDTH = 20

/**
 * `queue list` for people: a line for each entry under a head.
 * @param width characters of the terminal, to which errors are cut; null = they are not cut
 */
export function renderList({ phase, entries }: QueueList, width: number | null): readonly string[] {
  if (entries.length === 0) {
    return [phase === null ? 'The queue is empty.' : `No issue is in the phase ${phase}.`]
  }
  const rows = [
    ['ISSUE', 'PHASE', 'ATTEMPTS', 'UPDATED', 'NEXT', 'LAST ERROR'],
    ...entries.map((entry) => [
      entry.issue,
      entry.phase,
      String(entry.attempts),
      entry.updated_at,
      nextOf(entry),
      oneLine(entry.last_error?.message ?? NONE),
    ]),
  ]
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows.map((row) => {
    const head = row.slice(0, -1).map((cell, column) => cell.padEnd(widths[column] ?? 0))
    const before = `${head.join('  ')}  `
    return before + cut(row.at(-1) ?? '', width === null ? null : width - before.length)
  })
}

/** The pull request of an entry, or when it may start and why not earlier. */
function nextOf({ phase, next_attempt: next, pull }: ShownEntry): string {
  if (phase === 'queued') return next === null ? 'next tick' : `${next.until} (${next.why})`
  return pull === null ? NONE : `#${pull.number}`
}

function cut(text: string, width: number | null): string {
  if (width === null || text.length <= Math.max(width, LEAST_ERROR_WIDTH)) return text
  return `${text.slice(0, Math.max(width, LEAST_ERROR_WIDTH) - 1)}…`
}
