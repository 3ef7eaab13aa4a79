import { closeSync, readSync } from 'node:fs'
import { ioFault } from './io-fault.ts'
import { waitReadable } from './pipe.ts'

const PIECE_BYTES = 64 * 1024

/**
 * Everything that comes through a pipe or socket until its writers close it, as UTF-8 text; nothing else
 * happens here meanwhile. null = more than `maxBytes`, or no end within `waitMs`. Closes the descriptor.
 * Faults: sys/io, sys/native-unavailable.
 */
export function readDescriptor(fd: number, maxBytes: number, waitMs: number): string | null {
  const until = performance.now() + waitMs
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    for (
      let restMs = waitMs;
      restMs > 0 && length <= maxBytes;
      restMs = until - performance.now()
    ) {
      if (!waitReadable(fd, Math.ceil(restMs))) continue
      const piece = readAvailable(fd)
      if (piece.length === 0) return Buffer.concat(pieces).toString('utf8')
      pieces.push(piece)
      length += piece.length
    }
    return null
  } finally {
    closeSync(fd)
  }
}

function readAvailable(fd: number): Uint8Array {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES)
  try {
    return buffer.subarray(0, readSync(fd, buffer))
  } catch (error) {
    throw ioFault('Reading', `descriptor ${fd}`, error)
  }
}
