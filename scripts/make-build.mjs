// How bootstrap.mjs makes an immutable build of the shipped sources, and switches the launcher to it.
//
// A build is made in a folder of its own (`.<digest>.<pid>.<random>`) and gets its name with one rename; the
// launcher is replaced with one more. So whichever line is the last one executed, the launcher leads to a whole
// build or is absent, and the next call goes on. There is no lock: of two setups at once the slower one throws
// its build away. In the plugin's folder nothing is written but bin/, which git ignores.

import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'

/** What a build is made of; folders with all that is in them. */
const SOURCES = words(
  'package.json package-lock.json .npmrc tsconfig.json bootstrap.mjs' +
    ' scripts/build.mjs scripts/compile-schemas.mjs scripts/import-typescript.mjs scripts/make-build.mjs' +
    ' daemon embedded-github commands templates plugin-assets',
)
const NO_SOURCE = /^\.|^__pycache__$|~$/
/** What of it the program needs when it runs, besides the native package. */
const SHIPPED = words('dist templates plugin-assets package.json')
const NATIVE = ['koffi', '@koromix']
const NATIVE_FILE = /\.(?:c?js|json|node)$|^LICENSE/

/** The native package comes built, and no other needs to run a script of its own. */
const FETCH = words('npm ci --omit=dev --include=optional --ignore-scripts --no-audit --no-fund')
const BUILD = [process.execPath, 'scripts/build.mjs']
const TRY = "require('koffi'); import('./dist/caduceus.mjs')"

const BUILD_MS = 600_000
const TELL_MS = 10_000
const DAY_MS = 86_400_000
const KEPT_OUTPUT = 32 * 1024
const SHOWN_LINES = 15

function words(text) {
  return text.split(' ')
}

/** Reads every source once, so that what is built is what was named. */
export function readSources(root) {
  const files = []
  const visit = (name) => {
    const at = join(root, name)
    const status = fs.lstatSync(at)
    if (status.isFile()) {
      const mode = status.mode & 0o100 ? 0o755 : 0o644
      files.push({ name, mode, bytes: fs.readFileSync(at) })
    }
    if (!status.isDirectory()) return
    const entries = fs.readdirSync(at).filter((entry) => !NO_SOURCE.test(entry))
    for (const entry of entries) visit(`${name}/${entry}`)
  }
  SOURCES.forEach(visit)
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The name of a build of these sources on such a machine. */
export function digestOf(sources) {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`)
  for (const { name, bytes } of sources) hash.update(`\0${name}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex').slice(0, 16)
}

/** What the launcher starts. */
export function programOf(build) {
  return join(build, 'dist', 'caduceus.mjs')
}

/** Whether a whole build is there; its folder has the name of its digest. */
export function isBuilt(build) {
  try {
    const { digest } = JSON.parse(fs.readFileSync(join(build, 'build.json'), 'utf8'))
    return digest === basename(build) && fs.existsSync(programOf(build))
  } catch {
    return false
  }
}

/** Makes the build, unless it is there. Throws an error with its `next` step, and `shown`: what was printed. */
export async function makeBuild(target, sources, progress) {
  const builds = dirname(target)
  fs.mkdirSync(builds, { recursive: true, mode: 0o700 })
  removeDeadDrafts(builds)
  if (isBuilt(target)) return
  const draft = draftBeside(target)
  try {
    fs.mkdirSync(draft, { mode: 0o700 })
    const made = await buildIn(draft, basename(target), sources, progress)
    // Only what is broken gives way; what another setup made in the meantime is as good as ours.
    if (fs.existsSync(target) && !isBuilt(target)) fs.renameSync(target, join(draft, 'broken'))
    if (!isBuilt(target)) fs.renameSync(made, target)
    syncPath(builds)
  } catch (error) {
    if (!isBuilt(target)) throw error
  } finally {
    removeTree(draft)
  }
}

/** Fetches, builds and tries; returns the folder that becomes the build. */
async function buildIn(draft, digest, sources, progress) {
  const [from, to] = [join(draft, 'sources'), join(draft, 'build')]
  for (const { name, mode, bytes } of sources) {
    fs.mkdirSync(dirname(join(from, name)), { recursive: true })
    fs.writeFileSync(join(from, name), bytes, { mode })
  }
  const registry = 'see that the npm registry can be reached (npm ping)'
  await work({ what: 'fetching packages', argv: FETCH, cwd: from, hint: registry, progress })
  await work({ what: 'building', argv: BUILD, cwd: from, progress })

  fs.mkdirSync(to)
  for (const name of SHIPPED) fs.renameSync(join(from, name), join(to, name))
  for (const name of NATIVE) {
    const [fetched, shipped] = [from, to].map((folder) => join(folder, 'node_modules', name))
    const filter = (at) => fs.statSync(at).isDirectory() || NATIVE_FILE.test(basename(at))
    fs.cpSync(fetched, shipped, { recursive: true, dereference: true, filter })
  }
  const attempt = [process.execPath, '-e', TRY, 'caduceus', '--version']
  await work({ what: 'trying the build', argv: attempt, cwd: to, progress })

  const { version } = JSON.parse(fs.readFileSync(join(to, 'package.json'), 'utf8'))
  const bytes = pathsUnder(to).reduce((sum, at) => sum + fs.lstatSync(at).size, 0)
  const builtAt = new Date().toISOString()
  const about = { digest, version, node: process.versions.node, builtAt, bytes }
  fs.writeFileSync(join(to, 'build.json'), `${JSON.stringify(about, null, 2)}\n`)
  pathsUnder(to).forEach(syncPath)
  progress(`built ${digest}, ${(bytes / 1e6).toFixed(1)} MB`)
  return to
}

/** A folder and all that is in it, what is inside first. */
function pathsUnder(folder) {
  const inside = fs.readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const at = join(folder, entry.name)
    return entry.isDirectory() ? pathsUnder(at) : [at]
  })
  return [...inside.flat(), folder]
}

function syncPath(at) {
  const fd = fs.openSync(at, 'r')
  fs.fsyncSync(fd)
  fs.closeSync(fd)
}

/** A name that says which process works there. */
function draftBeside(target) {
  const random = randomBytes(6).toString('hex')
  return join(dirname(target), `.${basename(target)}.${process.pid}.${random}`)
}

const DRAFT_NAME = /^\.\w+\.(\d+)\.[0-9a-f]+$/

/** Those of setups that were killed. A process id may be in use again; after a day that is no excuse. */
function removeDeadDrafts(folder) {
  for (const name of fs.readdirSync(folder)) {
    const pid = DRAFT_NAME.exec(name)?.[1]
    if (pid === undefined) continue
    const changed = fs.lstatSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (!isAlive(Number(pid)) || Date.now() - changed > DAY_MS) removeTree(join(folder, name))
  }
}

/** What cannot be removed now, as a killed setup's npm still writes there, is for the next setup. */
function removeTree(at) {
  try {
    fs.rmSync(at, { recursive: true, force: true, maxRetries: 3 })
  } catch {}
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Points the launcher to a build, in one step; one that points there already is not touched. */
export function switchLauncher(launcher, { target, home, root }) {
  const text = launcherText({ target, home, root })
  const folder = dirname(launcher)
  fs.mkdirSync(folder, { recursive: true })
  removeDeadDrafts(folder)
  if (fs.existsSync(launcher) && fs.readFileSync(launcher, 'utf8') === text) return
  const draft = draftBeside(launcher)
  fs.writeFileSync(draft, text)
  fs.chmodSync(draft, 0o755)
  syncPath(draft)
  fs.renameSync(draft, launcher)
  syncPath(folder)
}

function launcherText({ target, home, root }) {
  const quote = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`
  // A name that the operator chose outlives an upgrade of Node; the path of this very program may not.
  const chosen = process.env.CADUCEUS_NODE ?? ''
  const node = isAbsolute(chosen) ? chosen : process.execPath
  return `#!/bin/sh
# managed by caduceus: launcher of build ${basename(target)}
program=${quote(programOf(target))}
: "\${HERMES_HOME:=}" "\${CADUCEUS_PLUGIN_ROOT:=}" "\${CADUCEUS_NODE:=}"
[ -n "$HERMES_HOME" ] || HERMES_HOME=${quote(home)}
[ -n "$CADUCEUS_PLUGIN_ROOT" ] || CADUCEUS_PLUGIN_ROOT=${quote(root)}
export HERMES_HOME CADUCEUS_PLUGIN_ROOT
[ -f "$program" ] || {
  echo 'caduceus: The build is gone. Make it again with: hermes caduceus setup' >&2
  exit 127
}
for node in "$CADUCEUS_NODE" ${quote(node)} "$(command -v node)"; do
  [ -f "$node" ] && [ -x "$node" ] && exec "$node" "$program" "$@"
done
echo 'caduceus: Node was not found. Install it, or name it with CADUCEUS_NODE.' >&2
exit 127
`
}

/** One step of a build. What it printed is shown only when it fails. */
async function work({ what, argv, cwd, hint = 'see what it printed', progress }) {
  const started = Date.now()
  const seconds = () => Math.round((Date.now() - started) / 1000)
  progress(what)
  const timer = setInterval(() => progress(`${what}: ${seconds()} s`), TELL_MS)
  const { code, output } = await runTool(argv, cwd)
  clearInterval(timer)
  if (code === 0) return
  const next = `${hint}; an earlier build stays in use; then run again: hermes caduceus setup`
  const shown = redact(output).trim().split('\n').slice(-SHOWN_LINES).join('\n')
  const ending = typeof code === 'number' ? `exit code ${code}` : code
  throw Object.assign(new Error(`${what} failed (${ending})`), { next, shown })
}

/** Never rejects. `code` is the exit code, or says why there is none. */
function runTool([program, ...argv], cwd) {
  return new Promise((resolve) => {
    let output = ''
    const PATH = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`
    const env = { ...process.env, PATH }
    // In a group of its own, so that it can be ended with all that it started.
    const child = spawn(program, argv, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const endGroup = () => killGroup(child.pid)
    const end = (code) => {
      clearTimeout(timer)
      process.off('exit', endGroup)
      resolve({ code, output })
    }
    const timer = setTimeout(() => {
      endGroup()
      end(`it took more than ${BUILD_MS / 1000} s`)
    }, BUILD_MS)
    process.on('exit', endGroup)
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output = `${output}${chunk}`.slice(-KEPT_OUTPUT)
      })
    }
    child.on('error', (error) => end(error.message))
    child.on('close', (code, signal) => end(signal ?? code))
  })
}

function killGroup(pid) {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {} // nothing of it remains
}

/** No credential of the environment or of an address, and nothing shaped like one. */
function redact(text) {
  const isSecret = ([name, value]) =>
    /TOKEN|SECRET|PASSW|AUTH|_KEY$/i.test(name) && value.length > 7
  const secrets = Object.entries(process.env).filter(isSecret)
  return secrets
    .reduce((rest, [, secret]) => rest.replaceAll(secret, '<redacted>'), text)
    .replaceAll(/\b(?:gh[a-z]|github_pat|npm)_\w{10,}/g, '<redacted>')
    .replaceAll(/(:\/\/)[^\s/@]+@/g, '$1<redacted>@')
    .replaceAll(/((?:_auth\w*|authorization|bearer)["']?\s*[=: ]\s*)\S+/gi, '$1<redacted>')
}
