import { describeThrown, isFaultOf } from '../core/fault.ts'
import { createOutputFile } from '../sys/output-file.ts'

/** How much is given up at a time when the disk is full and the report of the end needs a place. */
const ROOM_BYTES = 64 * 1024

/** The worker's output in one file, in the order it arrived. */
export type Transcript = Readonly<{
  /** Keeps what fits under the cap and drops the rest. Never throws: see `failure`. */
  write(bytes: Uint8Array): void
  /** Why writing stopped ('ENOSPC'), or null. */
  failure(): string | null
  /** Writes the marker if anything was dropped, and syncs. May be called again after `makeRoom`. */
  finish(): TranscriptSummary
  /** Gives up the last part of what was kept; false when nothing is left to give. */
  makeRoom(): boolean
  close(): void
}>

/** `bytes` is the size of the file, marker included. */
export type TranscriptSummary = Readonly<{ bytes: number; truncated: boolean }>

/**
 * Starts a transcript (0600, no link followed). The cap counts the worker's bytes; the one marker line
 * `...<truncated N bytes>` comes on top, so an output of exactly `maxBytes` stays whole (R§7.5).
 * Memory use does not depend on the amount. Faults: sys/io.
 */
export function startTranscript(path: string, maxBytes: number): Transcript {
  const file = createOutputFile(path)
  let received = 0
  let kept = 0
  let failure: string | null = null

  const attempt = (write: () => void): void => {
    try {
      write()
    } catch (thrown) {
      failure ??= reasonOf(thrown)
    }
  }

  return {
    write(bytes) {
      received += bytes.length
      const room = failure === null ? Math.min(maxBytes - kept, bytes.length) : 0
      if (room <= 0) return
      attempt(() => file.append(bytes.subarray(0, room)))
      kept = failure === null ? kept + room : file.size()
    },
    failure: () => failure,
    finish() {
      attempt(() => file.truncate(kept))
      if (received > kept) attempt(() => file.append(marker(received - kept)))
      attempt(() => file.sync())
      return { bytes: file.size(), truncated: received > kept }
    },
    makeRoom() {
      if (kept === 0) return false
      kept = Math.max(0, kept - ROOM_BYTES)
      attempt(() => file.truncate(kept))
      return true
    },
    close: () => file.close(),
  }
}

function marker(dropped: number): Uint8Array {
  return Buffer.from(`\n...<truncated ${dropped} bytes>\n`)
}

function reasonOf(thrown: unknown): string {
  const code = isFaultOf(thrown, 'sys/io') ? thrown.details.code : null
  return code ?? describeThrown(thrown)
}
