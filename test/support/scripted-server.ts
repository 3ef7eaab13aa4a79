import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as it arrived. */
export type SeenRequest = Readonly<{
  method: string
  /** Path and query as sent, still encoded. */
  url: string
  headers: IncomingHttpHeaders
  body: string
}>

export type Script = (request: SeenRequest, response: ServerResponse, count: number) => void

export type ScriptedServer = Readonly<{
  url: string
  seen: SeenRequest[]
  close: () => Promise<void>
}>

/**
 * A loopback server that does to each request whatever the script says, also what no server should.
 * `count` is 1 for the first request.
 */
export async function openScriptedServer(script: Script): Promise<ScriptedServer> {
  const seen: SeenRequest[] = []
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const request = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
      }
      seen.push(request)
      script(request, response, seen.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A listening TCP server has an address of this kind, never a pipe's name.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers with JSON. */
export function replyJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
  response.end(JSON.stringify(body))
}
