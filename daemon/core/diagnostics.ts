import { LIMITS } from './limits.ts'
import { fromTimestamp, type Timestamp } from './timestamp.ts'

/** Something that people should know and that is no fault. */
export type Diagnostic = Readonly<{
  at: Timestamp
  code: string
  issue: string | null
  message: string
}>

const COALESCE_MS = 3_600_000

/**
 * The newest diagnostics: at most `LIMITS.diagnostics`, each message at most `LIMITS.diagnosticMessageBytes`, and
 * the same code for the same issue at most once an hour. Returns the same list when nothing is new, so that
 * nothing is written.
 */
export function addDiagnostics(
  ring: readonly Diagnostic[],
  found: readonly Diagnostic[],
): readonly Diagnostic[] {
  let all = ring
  for (const diagnostic of found) {
    const isKnown = all.some((known) => isRepeat(known, diagnostic))
    if (!isKnown) all = [...all, shorten(diagnostic)].slice(-LIMITS.diagnostics)
  }
  return all
}

function isRepeat(known: Diagnostic, diagnostic: Diagnostic): boolean {
  return (
    known.code === diagnostic.code &&
    known.issue === diagnostic.issue &&
    Math.abs(fromTimestamp(diagnostic.at) - fromTimestamp(known.at)) < COALESCE_MS
  )
}

function shorten(diagnostic: Diagnostic): Diagnostic {
  const bytes = new TextEncoder().encode(diagnostic.message)
  if (bytes.length <= LIMITS.diagnosticMessageBytes) return diagnostic
  const cut = new TextDecoder().decode(bytes.subarray(0, LIMITS.diagnosticMessageBytes - 3))
  return { ...diagnostic, message: `${cut.replace(/\uFFFD+$/u, '')}…` }
}
