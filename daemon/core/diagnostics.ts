import { LIMITS } from './limits.ts'
import type { Diagnostic } from './meta.ts'
import { fromTimestamp } from './timestamp.ts'

const COALESCE_MS = 3_600_000

/**
 * The ring of things people should know that are no faults: at most 20, messages at most 256 bytes, and
 * the same code for the same issue at most once an hour (R§3.6). The same list comes back when nothing
 * is new, so that nothing is written.
 */
export function addDiagnostics(
  ring: readonly Diagnostic[],
  found: readonly Diagnostic[],
): readonly Diagnostic[] {
  const fresh = found.filter((diagnostic) => !ring.some((known) => isRepeat(known, diagnostic)))
  if (fresh.length === 0) return ring
  return [...ring, ...fresh.map(shorten)].slice(-LIMITS.diagnostics)
}

function isRepeat(known: Diagnostic, diagnostic: Diagnostic): boolean {
  return (
    known.code === diagnostic.code &&
    known.issue === diagnostic.issue &&
    fromTimestamp(diagnostic.at) - fromTimestamp(known.at) < COALESCE_MS
  )
}

function shorten(diagnostic: Diagnostic): Diagnostic {
  const bytes = new TextEncoder().encode(diagnostic.message)
  if (bytes.length <= LIMITS.diagnosticMessageBytes) return diagnostic
  const cut = new TextDecoder().decode(bytes.subarray(0, LIMITS.diagnosticMessageBytes - 3))
  return { ...diagnostic, message: `${cut.replace(/\uFFFD+$/u, '')}…` }
}
