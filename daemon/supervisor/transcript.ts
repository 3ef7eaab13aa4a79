import { describeThrown, isFaultOf } from '../core/fault.ts'
import { createOutputFile } from '../sys/output-file.ts'

/** How much is given up at a time when the disk is full and the report of the end needs room. */
const ROOM_BYTES = 64 * 1024

/** The worker's output in one file, in the order it arrived. */
export type Transcript = Readonly<{
  /** Retains what fits under the cap and drops the rest. Never throws: see `failure`. */
  write(bytes: Uint8Array): void
  /** Why writing stopped ('ENOSPC'), or null. */
  failure(): string | null
  /** Writes the marker if anything was dropped, and syncs. May be called again after `makeRoom`. */
  finish(): TranscriptSummary
  /** Gives up the last part of what was retained; false when there is none. */
  makeRoom(): boolean
  close(): void
}>

/** `bytes` is the size of the file, marker included. */
export type TranscriptSummary = Readonly<{ bytes: number; truncated: boolean }>

/**
 * Starts a transcript (0600, no link followed). The cap counts the worker's bytes; the one marker line
 * `...<truncated N bytes>` comes on top, so an output of exactly `maxBytes` stays whole.
 * Memory use does not depend on the amount. Faults: sys/io.
 */
export function startTranscript(path: string, maxBytes: number): Transcript {
  const file = createOutputFile(path)
  let received = 0
  let retained = 0
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
      const room = failure === null ? Math.min(maxBytes - retained, bytes.length) : 0
      if (room <= 0) return
      attempt(() => file.append(bytes.subarray(0, room)))
      retained = failure === null ? retained + room : file.size()
    },
    failure: () => failure,
    finish() {
      attempt(() => file.truncate(retained))
      if (received > retained) attempt(() => file.append(marker(received - retained)))
      attempt(() => file.sync())
      return { bytes: file.size(), truncated: received > retained }
    },
    makeRoom() {
      if (retained === 0) return false
      retained = Math.max(0, retained - ROOM_BYTES)
      attempt(() => file.truncate(retained))
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
