import type { ServerResponse } from 'node:http'
import type { Outgoing } from './fault-actions.ts'
import type { Answer } from './http-answer.ts'

/** Puts what was decided on the wire. A connection left hanging ends with the client or the server. */
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
  answer: Answer,
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
