import type { Readable } from 'node:stream'

/** The first bytes of a stream, in one buffer that grows by doubling. */
export type CapturedHead = Readonly<{
  /** What has come so far, at most `maxBytes`. */
  bytes(): Buffer
  /** Whether more came than was retained. */
  isTruncated(): boolean
}>

const FIRST_BYTES = 8192

/**
 * Keeps the first `maxBytes` of a stream and goes on reading, so that the writer is never blocked.
 * A stream that fails counts as ended.
 * @param onTruncated called once, when the first byte too many comes
 */
export function captureHead(
  stream: Readable | null | undefined,
  maxBytes: number,
  onTruncated: () => void,
): CapturedHead {
  let retained = Buffer.allocUnsafe(Math.min(FIRST_BYTES, maxBytes))
  let length = 0
  let truncated = false
  stream?.on('error', () => {})
  stream?.on('data', (chunk: Buffer) => {
    const newLength = Math.min(length + chunk.length, maxBytes)
    if (newLength > retained.length) {
      const larger = Buffer.allocUnsafe(
        Math.min(Math.max(newLength, retained.length * 2), maxBytes),
      )
      retained.copy(larger, 0, 0, length)
      retained = larger
    }
    chunk.copy(retained, length, 0, newLength - length)
    const exceeds = length + chunk.length > maxBytes
    length = newLength
    if (!exceeds || truncated) return
    truncated = true
    onTruncated()
  })
  return { bytes: () => retained.subarray(0, length), isTruncated: () => truncated }
}
