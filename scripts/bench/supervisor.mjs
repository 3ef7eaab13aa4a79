// The supervisor by itself, without runner and tick: how fast it takes output, starts, and ends processes.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { importTypeScript } from '../import-typescript.mjs'
import { comparePairs } from './benchmarks.mjs'

const REPOSITORY = dirname(dirname(import.meta.dirname))
const OUTPUT_MIB = 1024
const OUTPUT_PAIRS = 5
const DESCENDANTS = 200
/** Where the supervisor expects the environment of its worker. */
const ENVIRONMENT_FD = 4

/** Writes much, and notes how long that took and what the most memory of its parent was before and after. */
const WRITER = `
import { readFileSync, writeFileSync, writeSync } from 'node:fs'
const [mib, note] = process.argv.slice(2)
const most = () => {
  try { return Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/' + process.ppid + '/status', 'utf8'))?.[1]) / 1024 }
  catch { return 0 }
}
const piece = Buffer.alloc(65536, 120)
const before = most()
const started = performance.now()
for (let left = Number(mib) * 1048576; left > 0; ) left -= writeSync(1, piece, 0, Math.min(left, piece.length))
const ms = performance.now() - started
writeFileSync(note, JSON.stringify({ ms, grownMib: most() - before }))
`

/** Many children, each noted; `up` is its last deed. */
const PARENT = `n=0; while [ $n -lt ${DESCENDANTS} ]; do sleep 600 & echo $! >>pids; n=$((n + 1)); done; : >up`

const STARTER = `
import { spawn } from 'node:child_process'
spawn('/bin/sh', ['-c', ': >up'], { cwd: process.argv[2], stdio: 'ignore', detached: true })
`

/** Output, start and end of supervised workers. */
export async function measureSupervisor(stage, pairs) {
  const { formatRunFile } = await importTypeScript(REPOSITORY, 'daemon/core/supervision-files.ts')
  const bench = { ...stage, formatRunFile, root: join(stage.root, 'supervisor') }
  mkdirSync(bench.root)
  for (const [name, text] of Object.entries({ writer: WRITER, starter: STARTER }))
    writeFileSync(join(bench.root, `${name}.mjs`), text)
  return [await measureOutput(bench), await measureStart(bench, pairs), await measureEnd(bench)]
}

async function measureOutput(bench) {
  const note = join(bench.root, 'note.json')
  const writer = [process.execPath, join(bench.root, 'writer.mjs'), String(OUTPUT_MIB), note]
  const noted = () => JSON.parse(readFileSync(note, 'utf8'))
  const grown = []
  const judged = async () => {
    await supervise(bench, writer)
    grown.push(noted().grownMib)
    return noted().ms
  }
  const against = async () => {
    await run(['/bin/sh', '-c', '"$@" | cat >/dev/null', 'sh', ...writer])
    return noted().ms
  }
  const compared = await comparePairs(OUTPUT_PAIRS, judged, against)
  const speed = (ms) => `${Math.round((OUTPUT_MIB / ms) * 1000)} MiB/s`
  return {
    name: `${OUTPUT_MIB} MiB of worker output`,
    against: 'the same through cat >/dev/null',
    goal: 2,
    ...compared,
    facts: `${speed(compared.judgedMs)} to ${speed(compared.againstMs)}; its memory grew by ${Math.max(...grown).toFixed(1)} MiB`,
  }
}

async function measureStart(bench, pairs) {
  const folder = join(bench.root, 'bare')
  mkdirSync(folder)
  const judged = async () => {
    const from = Date.now()
    const { tree } = await supervise(bench, ['/bin/sh', '-c', ': >up'])
    return writtenAt(join(tree, 'up')) - from
  }
  const against = async () => {
    rmSync(join(folder, 'up'), { force: true })
    const from = Date.now()
    await run([process.execPath, join(bench.root, 'starter.mjs'), folder])
    while (!existsSync(join(folder, 'up'))) await sleep(1)
    return writtenAt(join(folder, 'up')) - from
  }
  return {
    name: 'supervisor to the first deed of its worker',
    against: 'bare node that starts the same',
    goal: 1.5,
    ...(await comparePairs(pairs, judged, against)),
  }
}

async function measureEnd(bench) {
  const folder = join(bench.root, 'killed')
  const judged = async () => {
    const { tree, endedAt } = await supervise(bench, ['/bin/sh', '-c', PARENT])
    return endedAt - writtenAt(join(tree, 'up'))
  }
  const against = async () => {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    const parent = spawn('/bin/sh', ['-c', `${PARENT}; wait`], { cwd: folder, stdio: 'ignore' })
    const ended = once(parent, 'exit')
    while (!existsSync(join(folder, 'up'))) await sleep(1)
    const pids = readFileSync(join(folder, 'pids'), 'utf8').trim().split('\n').map(Number)
    const from = performance.now()
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await ended
    return performance.now() - from
  }
  return {
    name: `end of ${DESCENDANTS} descendants, with looking for more, syncing and the report`,
    against: 'a plain kill of known pids',
    goal: null,
    ...(await comparePairs(OUTPUT_PAIRS, judged, against)),
  }
}

/** One run from its folder to the end of the supervisor; fails unless the worker ended with 0. */
async function supervise({ root, dist, formatRunFile }, argv) {
  const directory = join(root, 'run')
  const tree = join(root, 'tree')
  for (const folder of [directory, tree]) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
  }
  const launch = {
    runId: 'bench',
    argv,
    treePath: tree,
    resultPath: join(tree, 'worker-result.json'),
    transcriptPath: join(directory, 'run.log'),
    transcriptMaxBytes: 1_000_000,
    timeoutMs: 600_000,
    completionGraceMs: 0,
    stallMs: 0,
    launchedAt: new Date().toISOString(),
  }
  writeFileSync(join(directory, 'launch.json'), formatRunFile('launch', launch))
  const lock = openSync(join(directory, 'sup.lock'), 'a+', 0o600)
  const stdio = ['ignore', 'ignore', 'inherit', lock, 'pipe']
  const child = spawn(process.execPath, [join(dist, 'supervisor.cjs'), directory], {
    stdio,
    cwd: '/',
    env: environment(),
  })
  closeSync(lock)
  child.stdio[ENVIRONMENT_FD].end(JSON.stringify(environment()))
  await once(child, 'exit')
  const { exitCode, endedAt } = JSON.parse(readFileSync(join(directory, 'exit.json'), 'utf8'))
  if (exitCode !== 0) throw new Error('the supervised worker failed')
  return { tree, endedAt: Date.parse(endedAt) }
}

/** Of everything that is measured; others' variables would slow down one side (see stage.mjs). */
function environment() {
  return { PATH: process.env.PATH }
}

async function run([program, ...args]) {
  const [code] = await once(spawn(program, args, { stdio: 'ignore', env: environment() }), 'exit')
  if (code !== 0) throw new Error(`${program} failed`)
}

/** When a file was last written, to the system's tick; milliseconds since the epoch. */
function writtenAt(path) {
  return statSync(path).mtimeMs
}
