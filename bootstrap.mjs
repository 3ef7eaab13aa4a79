// Builds Caduceus where it is installed and switches to the build: what `hermes caduceus setup` starts.
//   setup [--dry-run] …   builds if needed, switches, hands over to the program's own `setup`
//   doctor …              hands over to the program's `doctor`; a short one while nothing is built
//   digest                the name that a build of the sources as they are would have
//
// Built-ins only, and in this file nothing newer than Node 12 knows: an old Node has to get as far as being
// told so. What needs more is scripts/make-build.mjs, loaded once Node is known to be new enough.

import { execFile, spawn } from 'child_process'
import fs from 'fs'
import path from 'path'
import { fileURLToPath } from 'url'

const OLDEST_NODE = [20, 19]
const ROOT = path.dirname(fileURLToPath(import.meta.url))
const LAUNCHER = path.join(ROOT, 'bin', 'caduceus')
const TOOLS = ['npm', 'git', 'python3']
const LOOK_MS = 15000
const SETUP = 'hermes caduceus setup'
/** What the program's own `setup` takes: a slip must not cost a build, or what a dry run would have spared. */
const OPTIONS = ['--dry-run', '--create-labels', '--json']
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** The program that the rest was handed over to. */
const successor = { child: null }
const [verb, ...args] = process.argv.slice(2)
const VERBS = { setup, doctor, digest }

for (const signal of Object.keys(SIGNALS)) {
  process.on(signal, () => {
    if (successor.child === null) process.exit(SIGNALS[signal])
    successor.child.kill(signal)
  })
}

// An old Node knows no await out here.
void main()

async function main() {
  const run = Object.keys(VERBS).includes(verb) ? VERBS[verb] : usage
  try {
    process.exitCode = await run()
  } catch (error) {
    if (error.shown) process.stderr.write(`${error.shown}\n`)
    process.exitCode = refuse([
      { detail: error.message, next: error.next || `run again: ${SETUP}` },
    ])
  }
}

function usage() {
  process.stderr.write('usage: node bootstrap.mjs setup|doctor|digest [options]\n')
  return 2
}

function explain(word) {
  const line = `usage: ${SETUP} ${OPTIONS.map((option) => `[${option}]`).join(' ')}`
  if (word === '--help' || word === '-h') {
    say(line)
    return 0
  }
  const error = {
    code: 'usage',
    message: `setup does not take ${JSON.stringify(word)}.`,
    next: line,
  }
  if (isJson()) return sayJson({ error }, 2)
  process.stderr.write(`caduceus: ${error.message}\n${line}\n`)
  return 2
}

async function digest() {
  const { readSources, digestOf } = await import('./scripts/make-build.mjs')
  say(digestOf(readSources(ROOT)))
  return 0
}

async function setup() {
  const strange = args.find((word) => !OPTIONS.includes(word))
  if (strange !== undefined) return explain(strange)
  const home = process.env.HERMES_HOME || ''
  const [node, ...tools] = await lookAtTools()
  tools.push({
    ok: path.isAbsolute(home),
    detail: 'HERMES_HOME is not an absolute path',
    next: `start this by: ${SETUP}`,
  })
  // What is there and does not start may only lack a newer Node.
  if (!node.ok) return refuse([node, ...tools.filter(({ ok, isThere }) => !ok && !isThere)])

  const building = await import('./scripts/make-build.mjs')
  const sources = building.readSources(ROOT)
  const target = path.join(home, 'caduceus', 'builds', building.digestOf(sources))
  const isNeeded = ({ name }) => name !== 'npm' || !building.isBuilt(target)
  const missing = tools.filter((tool) => !tool.ok && isNeeded(tool))
  if (missing.length > 0) return refuse(missing)

  if (args.includes('--dry-run')) {
    if (!building.isBuilt(target)) return tellPlan(target)
  } else {
    await building.makeBuild(target, sources, progress)
    building.switchLauncher(LAUNCHER, { target, home, root: ROOT })
    // An old build that becomes the current one again may just have been collected by another setup.
    await building.makeBuild(target, sources, progress)
  }
  return handOver([process.execPath, building.programOf(target), verb, ...args])
}

async function doctor() {
  if (fs.existsSync(LAUNCHER)) return handOver([LAUNCHER, verb, ...args])
  const next = `run: ${SETUP}`
  const build = { name: 'Build', ok: false, detail: 'nothing is built yet', next }
  return tellAll('checks', [...(await lookAtTools()), build], 2)
}

/** Node first, then the tools. All of them, so that everything missing can be told at once. */
async function lookAtTools() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const ok = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  const detail = `Node ${process.versions.node} ${ok ? 'is new enough' : 'is too old'}`
  const next = `install Node ${OLDEST_NODE.join('.')} or newer, or name one with CADUCEUS_NODE`
  return [{ name: 'Node', ok, detail, next }, ...(await Promise.all(TOOLS.map(lookAtTool)))]
}

function lookAtTool(name) {
  const PATH = `${path.dirname(process.execPath)}:${process.env.PATH || ''}`
  const options = {
    timeout: LOOK_MS,
    killSignal: 'SIGKILL',
    env: Object.assign({}, process.env, { PATH }),
  }
  return new Promise((resolve) => {
    execFile(name, ['--version'], options, (error, stdout) => {
      const isThere = !error || error.code !== 'ENOENT'
      const problem = `${name} ${isThere ? 'does not start' : 'was not found'}`
      const detail = error ? problem : stdout.trim().split('\n')[0]
      resolve({ name, ok: !error, isThere, detail, next: `install ${name}` })
    })
  })
}

function tellPlan(target) {
  const later = 'would be looked at by the new build, and made where they are absent'
  const plan = [
    { name: 'build', detail: `would make ${target}` },
    { name: 'launcher', detail: `would write ${LAUNCHER}` },
    { name: 'configuration, state and bridge', detail: later },
  ]
  return tellAll(
    'steps',
    plan.map((step) => Object.assign({ ok: true }, step)),
    0,
  )
}

function tellAll(title, all, exitCode) {
  const rows = all.map(({ name, ok, detail, next }) => {
    return { name, subject: null, status: ok ? 'ok' : 'fail', detail, next: ok ? null : next }
  })
  if (isJson()) return sayJson({ [title]: rows, exitCode }, exitCode)
  for (const row of rows) {
    say(`[${row.status.toUpperCase()}] ${row.name} — ${row.detail}`)
    if (row.next !== null) say(`    next action: ${row.next}`)
  }
  return exitCode
}

/** In one line, every reason with its next step. */
function refuse(reasons) {
  const join = (part) => reasons.map((reason) => reason[part]).join('; ')
  const error = { code: 'setup/refused', message: `${join('detail')}.`, next: `${join('next')}.` }
  if (isJson()) return sayJson({ error }, 1)
  process.stderr.write(`caduceus: ${error.message} Next: ${error.next}\n`)
  return 1
}

function isJson() {
  return args.includes('--json')
}

function sayJson(value, exitCode) {
  say(JSON.stringify(value, null, 2))
  return exitCode
}

function say(line) {
  process.stdout.write(`${line}\n`)
}

/** For somebody who waits at a terminal. */
function progress(line) {
  if (process.stderr.isTTY) process.stderr.write(`caduceus: ${line}\n`)
}

/** The rest is that program's: it takes over the streams, signals are passed on, its end is ours. */
function handOver([program, ...argv]) {
  return new Promise((resolve, reject) => {
    const env = Object.assign({ CADUCEUS_PLUGIN_ROOT: ROOT }, process.env)
    successor.child = spawn(program, argv, { stdio: 'inherit', env })
    successor.child.on('error', reject)
    successor.child.on('close', (code, signal) => resolve(signal ? SIGNALS[signal] || 1 : code))
  })
}
