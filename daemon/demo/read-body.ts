import type { IncomingMessage } from 'node:http'

/** The whole body of a request; null when it is larger than `maxBytes`, of which no more is then kept. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let size = 0
  // Without an encoding set, node:http gives bytes.
  const bodyChunks: AsyncIterable<Buffer> = request
  for await (const bytes of bodyChunks) {
    size += bytes.length
    if (size <= maxBytes) chunks.push(bytes)
  }
  return size <= maxBytes ? Buffer.concat(chunks) : null
}
