// Bodies of requests from the wire, answers onto it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ApiAnswer, Outgoing } from './http-answer.ts'

/** The whole body of a request; null when it is larger than `maxBytes`, of which no more is then stored. */
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

/** Puts what was decided on the wire. A hanging connection ends with the client or the server. */
export function sendOutgoing(response: ServerResponse, outgoing: Outgoing): void {
  switch (outgoing.kind) {
    case 'answer':
      sendAnswer(response, outgoing.answer, outgoing.cutAfter ?? null)
      return
    case 'reset':
      response.socket?.resetAndDestroy()
      return
    case 'hang':
  }
}

/** @param cutAfter break the connection after so many bytes of the body; null = send all of it */
export function sendAnswer(
  response: ServerResponse,
  answer: ApiAnswer,
  cutAfter: number | null = null,
): void {
  const body = Buffer.from(answer.body)
  const hasBody = answer.status !== 204 && answer.status !== 304
  // The date is GitHub's clock, not the host's.
  response.sendDate = false
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(hasBody ? { 'Content-Length': String(body.length) } : {}),
  })
  if (cutAfter === null) response.end(hasBody ? body : undefined)
  else response.write(body.subarray(0, cutAfter), () => response.destroy())
}
