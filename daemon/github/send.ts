import { LIMITS } from '../core/limits.ts'
import type { HttpRequest } from './http-request.ts'
import { networkFault } from './network-fault.ts'

/** A body as far as it could be read. Whether an unreadable one matters depends on what it is for. */
export type Body =
  | Readonly<{ kind: 'text'; text: string }>
  | Readonly<{ kind: 'unreadable'; reason: string }>

export type HttpAnswer = Readonly<{ status: number; headers: Headers; body: Body }>

/**
 * One exchange with the server: sent once, not redirected, at most `LIMITS.httpBodyBytes` read.
 * Faults: github/unreachable when no answer came.
 * @param deadline aborts it, also while the body is being read
 */
export async function send(request: HttpRequest, deadline: AbortSignal): Promise<HttpAnswer> {
  let response: Response
  try {
    response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      body: request.body,
      redirect: 'manual',
      signal: deadline,
    })
  } catch (thrown) {
    throw networkFault(request, thrown)
  }
  const body = await readBody(response, LIMITS.httpBodyBytes, deadline)
  return { status: response.status, headers: response.headers, body }
}

/** Counts while it reads, so a chunked or compressed body is refused before it is held (R§11.3.64). */
async function readBody(
  response: Response,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<Body> {
  if (response.body === null) return { kind: 'text', text: '' }
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  // Cancelling ends a pending read; that fetch does it by itself is not certain once it has resolved.
  const stop = (): void => void reader.cancel().catch(() => undefined)
  deadline.addEventListener('abort', stop, { once: true })
  try {
    const chunks: Uint8Array[] = []
    let size = 0
    for (;;) {
      const step = await reader.read()
      if (deadline.aborted) return { kind: 'unreadable', reason: 'the body did not arrive in time' }
      if (step.done) return { kind: 'text', text: new TextDecoder().decode(Buffer.concat(chunks)) }
      chunks.push(step.value)
      size += step.value.length
      if (size > maxBytes) {
        stop()
        return { kind: 'unreadable', reason: `a body of more than ${maxBytes} bytes` }
      }
    }
  } catch {
    const reason = deadline.aborted ? 'the body did not arrive in time' : 'the body was cut off'
    return { kind: 'unreadable', reason }
  } finally {
    deadline.removeEventListener('abort', stop)
  }
}
