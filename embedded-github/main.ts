// Entry of dist/embedded-github.mjs, the embedded GitHub as a process of its own:
// `node embedded-github.mjs --root DIR [--port 0]` prints {"url":…,"pid":…} on one line once it listens, and
// ends on SIGTERM or when its standard input closes, so that it never outlives the process that started it.

import { parseArgs } from 'node:util'
import { describeFault, fault } from '../daemon/core/fault.ts'
import { startEmbeddedGitHub } from './server.ts'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { root: { type: 'string' }, port: { type: 'string', default: '0' } },
  })
  if (values.root === undefined) throw fault('demo/refused', { reason: '--root is missing' })
  const log = {
    error: (event: string, fields = {}) => {
      process.stderr.write(`${JSON.stringify({ event, ...fields })}\n`)
    },
  }
  const github = await startEmbeddedGitHub({
    root: values.root,
    port: Number(values.port),
    log,
  })
  const end = (): void => {
    process.stdin.destroy()
    github.close().catch(() => undefined)
  }
  process.once('SIGTERM', end)
  process.stdin.once('close', end).resume()
  process.stdout.write(`${JSON.stringify({ url: github.url, pid: process.pid })}\n`)
}

main().catch((thrown: unknown) => {
  process.stderr.write(`${describeFault(thrown)}\n`)
  process.exitCode = 1
})
