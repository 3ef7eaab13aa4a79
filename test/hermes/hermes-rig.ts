import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { parseDocument } from 'yaml'
import { cwdOf, environmentOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { type Control, connectControl } from '../../embedded-github/control-client.ts'
import { startEmbeddedGitHub } from '../../embedded-github/server.ts'
import { waitUntil } from '../support/processes.ts'
import { BOT, type Finished, killQuietly } from '../support/program-rig.ts'

// A user's account with a real Hermes agent: a home, the host's folder, this tree as a repository that
// stands where the plugin's real address leads to, and an embedded GitHub to work on.

const ROOT = join(import.meta.dirname, '..', '..')
const ADDRESS = 'barkley-assistant/caduceus'
export const REPO = 'octo/app'

/** A build with npm on a machine that is busy otherwise. */
const COMMAND_MS = 300_000
const LEAVE_MS = 20_000

/** One real host, as scripts/hermes-hosts.mjs tells it. */
export type Release = Readonly<{
  version: string
  package: string
  /** false = `plugins install` does not work without more of the network than we ask for. */
  installs: boolean
  scanner: boolean
  checksPlugins: boolean
  /** A folder with `hermes` in it. */
  path: string
  /** The host's own interpreter. */
  python: string
}>

/** Fails when one has not been made. */
export function madeReleases(): readonly Release[] {
  const script = join(ROOT, 'scripts', 'hermes-hosts.mjs')
  const said = execFileSync(process.execPath, [script, '--list'], { encoding: 'utf8' })
  return JSON.parse(said) as Release[]
}

/** What the host keeps of a job, as far as it matters here. */
export type HostJob = Readonly<{
  id: string
  name: string
  script: string | null
  no_agent: boolean
  enabled: boolean
  state: string
  schedule: Readonly<{ kind: string; minutes?: number }>
  deliver: string | null
  next_run_at: string | null
  last_run_at: string | null
  last_status: string | null
  last_error: string | null
}>

export type HermesRig = Readonly<{
  release: Release
  dir: string
  hermesHome: string
  /** Where the host keeps the plugin. */
  plugin: string
  bridge: string
  control: Control
  token: string
  apiBase: string
  /** Runs `hermes …args` to its end, with changes to the environment. */
  hermes: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Finished>
  /** `hermes caduceus …args`. */
  caduceus: (...args: readonly string[]) => Promise<Finished>
  /** A program text in the host's own interpreter. */
  python: (text: string, ...args: readonly string[]) => Promise<Finished>
  git: (...args: readonly string[]) => Promise<string>
  jobs: () => readonly HostJob[]
  /** Adds lines to a file upstream, and publishes that as a new commit. */
  publishChange: (path: string, lines: string) => Promise<void>
  /** A clean checkout of what upstream has. */
  upstream: string
  /** Brings the plugin there by other means than the host's, and has it enabled. */
  layPlugin: () => Promise<void>
  /** Merges keys into the section of ours, as a user does with an editor. */
  configure: (keys: Readonly<Record<string, unknown>>) => void
  /** Has workers wait; resolves in `holds` when one does. */
  hold: () => Readonly<{ holds: () => Promise<void>; release: () => void }>
  /** The host's gateway, which fires the jobs; resolves when it does. */
  startGateway: () => Promise<void>
  stopGateway: () => Promise<void>
  close: () => Promise<void>
}>

/** Workers may have it, yet the host takes it away from its scheduled scripts. */
export const PROVIDER_KEY = 'ANTHROPIC_API_KEY'

/** The harness that the reference bridge calls: given a key, it mends the application, as an agent would. */
const harness = (holding: string): string => `#!/usr/bin/env python3
import json, os, sys, time
while os.path.exists('${holding}'):
    open('${holding}.began', 'w').close()
    time.sleep(0.05)
if os.environ.get('${PROVIDER_KEY}') != 'of the file':
    sys.exit('there is no key')
open('app.txt', 'a').write('mended\\n')
with open('worker-result.json', 'w') as stream:
    json.dump({
        'status': 'success',
        'summary': 'Mended the application.',
        'commit_message': 'fix(app): mend it',
        'pull_request_title': 'fix(app): mend it',
    }, stream)
`

export async function openHermesRig(release: Release): Promise<HermesRig> {
  const dir = realpathSync.native(mkdtempSync(join(tmpdir(), 'hermes-')))
  // A blank, because paths of users have some.
  const home = join(dir, 'a home')
  const hermesHome = join(home, '.hermes')
  const holding = join(dir, 'holding')
  for (const name of ['a home', 'github', 'bin', 'tmp']) mkdirSync(join(dir, name))
  mkdirSync(hermesHome, { mode: 0o700 })
  writeFileSync(join(dir, 'bin', 'opencode'), harness(holding), { mode: 0o755 })

  const env = environmentFor(release, dir, home)
  const git: HermesRig['git'] = async (...args) =>
    (await promisify(execFile)('git', args, { env, cwd: dir, maxBuffer: 2 ** 26 })).stdout
  const upstream = join(dir, 'upstream')
  const mirror = join(dir, 'mirror')
  const bare = join(mirror, `${ADDRESS}.git`)
  writeFileSync(join(home, '.gitconfig'), gitConfiguration(mirror))
  await publishTree(git, upstream, bare)

  const github = await startEmbeddedGitHub({ root: join(dir, 'github') })
  const control = connectControl(github.url)
  const { token } = await control('createToken', { login: BOT })
  const { gitPath } = await control('createRepository', {
    repo: REPO,
    files: { 'app.txt': 'broken\n' },
  })
  const clone = join(home, 'projects', REPO)
  mkdirSync(dirname(clone), { recursive: true })
  await git('clone', '--quiet', gitPath, clone)

  const start = async (
    program: string,
    args: readonly string[],
    changes: Readonly<Record<string, string>> = {},
  ): Promise<Finished> =>
    new Promise((resolve) => {
      const options = {
        env: { ...env, ...changes },
        cwd: dir,
        timeout: COMMAND_MS,
        maxBuffer: 2 ** 26,
      }
      const child = execFile(program, args, options, (_, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, stdout, stderr })
      })
      child.stdin?.end()
    })
  const plugin = join(hermesHome, 'plugins', 'caduceus')
  const configPath = join(hermesHome, 'config.yaml')
  const hermes: HermesRig['hermes'] = async (args, changes) =>
    start(join(release.path, 'hermes'), args, changes)
  let gateway: ChildProcess | null = null
  const stopGateway = async (): Promise<void> => {
    const running = gateway
    gateway = null
    if (running === null) return
    running.kill('SIGTERM')
    const hasEnded = (): boolean => running.exitCode !== null || running.signalCode !== null
    await waitUntil('the gateway has ended', hasEnded, 60_000)
  }
  return {
    release,
    dir,
    hermesHome,
    plugin,
    bridge: join(hermesHome, 'caduceus', 'worker-bridge.py'),
    control,
    token,
    apiBase: github.url,
    hermes,
    caduceus: async (...args) => hermes(['caduceus', ...args]),
    python: async (text, ...args) => start(release.python, ['-c', text, ...args]),
    git,
    jobs: () => readJobs(join(hermesHome, 'cron', 'jobs.json')),
    publishChange: async (path, lines) => {
      const file = join(upstream, path)
      writeFileSync(file, `${readFileSync(file, 'utf8')}${lines}`)
      await git('-C', upstream, 'commit', '--quiet', '--all', '--message', 'a change')
      await git('-C', upstream, 'push', '--quiet', bare, 'main')
    },
    upstream,
    layPlugin: async () => {
      await git('clone', '--quiet', `https://github.com/${ADDRESS}`, plugin)
      writeFileSync(configPath, 'plugins:\n  enabled:\n  - caduceus\n')
    },
    configure: (keys) => {
      const document = parseDocument(readFileSync(configPath, 'utf8'))
      for (const [key, value] of Object.entries(keys)) document.setIn(['caduceus', key], value)
      writeFileSync(configPath, document.toString())
    },
    hold: () => {
      writeFileSync(holding, '')
      const holds = async (): Promise<void> => {
        await waitUntil('a worker has begun', () => existsSync(`${holding}.began`), 90_000)
      }
      return { holds, release: () => rmSync(holding) }
    },
    startGateway: async () => {
      const beat = join(hermesHome, 'cron', 'ticker_heartbeat')
      rmSync(beat, { force: true })
      gateway = spawn(join(release.path, 'hermes'), ['gateway', 'run'], {
        env,
        cwd: dir,
        stdio: 'ignore',
      })
      await waitUntil('the ticker beats', () => existsSync(beat), 60_000)
    },
    stopGateway,
    close: async () => {
      await stopGateway()
      await github.close()
      try {
        const haveLeft = (): boolean => processesFor(dir).length === 0
        await waitUntil('the processes have left', haveLeft, LEAVE_MS)
      } finally {
        for (const pid of processesFor(dir)) killQuietly(pid)
        rmSync(dir, { recursive: true, force: true })
      }
    },
  }
}

/**
 * Of this process only what a machine needs for its network; npm keeps its cache, or each build would load.
 * HERMES_HOME is not set, as with most users: the host knows its folder, and has to be asked.
 */
function environmentFor(release: Release, dir: string, home: string): NodeJS.ProcessEnv {
  const isForeign =
    /^(?:npm_|JEST|NODE_ENV$|NODE_OPTIONS$|HERMES|CADUCEUS|GITHUB_|GH_|XDG_|GIT_(?!SSL))/i
  const kept = Object.entries(process.env).filter(([name]) => !isForeign.test(name))
  const path = [release.path, join(dir, 'bin'), process.env['PATH'] ?? '']
  return {
    ...Object.fromEntries(kept),
    PATH: path.join(':'),
    HOME: home,
    TMPDIR: join(dir, 'tmp'),
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    COLUMNS: '200',
    npm_config_cache: process.env['npm_config_cache'] ?? join(homedir(), '.npm'),
    npm_config_userconfig: process.env['npm_config_userconfig'] ?? join(homedir(), '.npmrc'),
  }
}

/** The plugin's real address leads to the repository made here. */
function gitConfiguration(mirror: string): string {
  return `[user]
	name = A User
	email = user@example.com
[init]
	defaultBranch = main
[url "file://${mirror}/"]
	insteadOf = https://github.com/
`
}

/** What a commit of everything here would ship, as a repository that others clone. */
async function publishTree(git: HermesRig['git'], upstream: string, bare: string): Promise<void> {
  const list = ['-C', ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const paths = (await git(...list)).split('\0').filter((path) => path !== '')
  for (const path of paths.filter((name) => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(upstream, path)), { recursive: true })
    copyFileSync(join(ROOT, path), join(upstream, path))
  }
  await git('init', '--quiet', upstream)
  await git('-C', upstream, 'add', '--all')
  await git('-C', upstream, 'commit', '--quiet', '--message', 'the tree')
  mkdirSync(dirname(bare), { recursive: true })
  await git('clone', '--quiet', '--bare', upstream, bare)
}

function readJobs(path: string): readonly HostJob[] {
  if (!existsSync(path)) return []
  const { jobs } = JSON.parse(readFileSync(path, 'utf8')) as { jobs: readonly HostJob[] }
  return jobs
}

/** Processes that were started for the folder or work in it. */
function processesFor(dir: string): readonly number[] {
  return listProcesses()
    .filter(({ pid, isZombie }) => pid !== process.pid && !isZombie)
    .map(({ pid }) => pid)
    .filter(
      (pid) =>
        Boolean(cwdOf(pid)?.startsWith(dir)) ||
        Object.values(environmentOf(pid) ?? {}).some((value) => value.includes(dir)),
    )
}
