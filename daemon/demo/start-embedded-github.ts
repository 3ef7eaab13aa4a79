import { type Control, connectControl } from '../../embedded-github/control-client.ts'
import { type Build, bundleOf } from '../app/build.ts'
import { fault } from '../core/fault.ts'
import { startProcess } from '../sys/start-process.ts'

/**
 * Starts the embedded GitHub as a process of its own. It ends when its standard input closes, so at the latest
 * with this process. Faults: demo/refused, sys/spawn-failed.
 */
export async function startGitHub(
  build: Build,
  root: string,
  environment: Readonly<Record<string, string>>,
): Promise<{ control: Control; url: string; close: () => void }> {
  const child = await startProcess({
    argv: [process.execPath, bundleOf(build, 'embedded-github'), '--root', root],
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const line = await firstLine(child.stdout)
  const url = /"url":"([^"]+)"/.exec(line)?.[1]
  if (url === undefined)
    throw fault('demo/refused', { reason: 'the embedded GitHub did not start' })
  return {
    url,
    control: connectControl(url),
    close: () => {
      child.stdin?.destroy()
      child.stdout?.destroy()
      child.unref()
    },
  }
}

async function firstLine(stream: AsyncIterable<unknown> | null): Promise<string> {
  let text = ''
  for await (const piece of stream ?? []) {
    text += String(piece)
    if (text.includes('\n')) break
  }
  return text
}
