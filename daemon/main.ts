#!/usr/bin/env node
// The launcher: what a shell, cron or the host starts. It stays small, because it runs before anything
// can be assumed, and loads the commands only when the ground is firm.

declare const CADUCEUS_VERSION: string

const OLDEST_NODE = [20, 19] as const

const refusal = refuse()
if (refusal !== null) {
  process.stderr.write(`caduceus: ${refusal}\n`)
  process.exitCode = 2
} else if (process.argv[2] === '--version') {
  process.stdout.write(`caduceus ${CADUCEUS_VERSION}\n`)
} else {
  const { runCommandLine } = await import('./cli.ts')
  await runCommandLine(spellOut(process.argv.slice(2)))
}

/** A bare call is a tick, as cron makes it; `help queue` is `queue --help`. */
function spellOut(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv
  if (first === undefined) return ['run']
  return first === 'help' ? [...rest, '--help'] : argv
}

function refuse(): string | null {
  if (process.platform === 'win32') return 'Caduceus runs on Linux and macOS, not on Windows.'
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor)
  if (!isOld) return null
  return `Node ${process.versions.node} is too old; install ${OLDEST_NODE.join('.')} or newer.`
}
