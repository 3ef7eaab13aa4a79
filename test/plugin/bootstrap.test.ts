import { type ExecFileOptions, execFile, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { transformSync } from 'esbuild'
import Setup from '../../commands/setup.ts'
import { processesShowing, waitUntil } from '../support/processes.ts'
import { killQuietly, openProgramRig } from '../support/program-rig.ts'
import { gatedBridge, newestRun, openGate, processesOfRun } from '../support/program-views.ts'

const ROOT = join(import.meta.dirname, '../..')
const SECRET = ['gh', 'p_', 'x'.repeat(36)].join('')

const SETUP_USAGE = 'usage: hermes caduceus setup [--dry-run] [--create-labels] [--json]'

type Ended = Readonly<{ code: number | null; stdout: string; stderr: string }>

let dir: string
let plugin: string
let home: string
let env: Record<string, string>

beforeEach(() => {
  // Blanks and quotes: paths end up in a shell script.
  dir = mkdtempSync(join(tmpdir(), `it's a "plugin" `))
  plugin = join(dir, 'plugin')
  home = join(dir, 'hermes home')
  for (const name of ['plugin', 'bin', 'hermes home']) mkdirSync(join(dir, name))
  env = {
    PATH: `${join(dir, 'bin')}:${process.env['PATH'] ?? ''}`,
    HOME: dir,
    HERMES_HOME: home,
    NODE_OPTIONS: `--import ${preload()}`,
    FAKE_LOG: join(dir, 'npm.log'),
  }
})

afterEach(async () => {
  // Of a setup that was killed, npm may live on for a moment.
  for (const { pid } of processesShowing(dir)) killQuietly(pid)
  await waitUntil('the processes have ended', () => processesShowing(dir).length === 0)
  rmSync(dir, { recursive: true, force: true })
})

/** For bootstrap.mjs alone: another Node's version, no tools beside it, and a kill at its n-th effect. */
function preload(): string {
  const path = join(dir, 'preload.mjs')
  writeFileSync(
    path,
    `import fs from 'node:fs'
import child from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
const { FAKE_NODE, FAKE_NPM_DIR, KILL_AT, EFFECTS } = process.env
if (/bootstrap[.]mjs$/.test(process.argv[1] ?? '')) {
  if (FAKE_NODE) {
    const value = { ...process.versions, node: FAKE_NODE }
    Object.defineProperty(process, 'versions', { value })
  }
  const { execPath } = process
  process.execPath = FAKE_NPM_DIR + '/node'
  const truth = { ...fs }
  let count = 0
  const watch = (owner, name) => {
    const real = owner[name]
    owner[name] = (...args) => {
      count += 1
      if (EFFECTS) truth.writeFileSync(EFFECTS, name + '\\n', { flag: 'a' })
      if (String(count) === KILL_AT) process.kill(process.pid, 'SIGKILL')
      return real(...args)
    }
  }
  for (const name of ['mkdirSync', 'writeFileSync', 'renameSync', 'cpSync', 'rmSync', 'chmodSync']) watch(fs, name)
  watch(child, 'spawn')
  syncBuiltinESMExports()
}
`,
  )
  return pathToFileURL(path).href
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
}

/** The smallest plugin that can be built: its program tells how it was called. */
function makeSmallPlugin(): void {
  for (const name of ['bootstrap.mjs', 'scripts/make-build.mjs', '.npmrc', '.gitignore']) {
    mkdirSync(dirname(join(plugin, name)), { recursive: true })
    cpSync(join(ROOT, name), join(plugin, name))
  }
  const files = {
    'package.json': '{ "name": "small", "version": "1.2.3", "type": "module" }',
    'package-lock.json': '{}',
    'tsconfig.json': '{}',
    'scripts/compile-schemas.mjs': '',
    'scripts/import-typescript.mjs': '',
    'embedded-github/main.ts': '',
    'commands/one.ts': '',
    'templates/prompt.md': 'prompt',
    'plugin-assets/worker-bridge.py': 'bridge',
    'daemon/program.mjs': `const [verb] = process.argv.slice(2)
if (verb === '--version') console.log('small 1.2.3')
else console.log(JSON.stringify({ argv: process.argv.slice(2), program: import.meta.filename,
  home: process.env.HERMES_HOME, root: process.env.CADUCEUS_PLUGIN_ROOT }))
process.exitCode = process.argv[2] === 'setup' ? Number(process.env.FAKE_EXIT ?? 0) : 0
`,
    'scripts/build.mjs': `import { cpSync, mkdirSync } from 'node:fs'
mkdirSync('dist')
cpSync('daemon/program.mjs', 'dist/caduceus.mjs')
`,
  }
  for (const [name, text] of Object.entries(files)) write(join(plugin, name), text)
  execFileSync('git', ['init', '--quiet', plugin])
}

/** An npm without a network. `fetch` is what `npm ci` does, in sh. */
function makeNpm(fetch: string): void {
  const text = `#!/bin/sh
[ "$1" = --version ] && { echo 11.0.0; exit; }
printf '%s\\n' "$*" >> "$FAKE_LOG"
${fetch}
`
  write(join(dir, 'bin', 'npm'), text, 0o755)
  for (const name of ['node', 'git', 'python3']) {
    const found = execFileSync('sh', ['-c', `command -v ${name}`])
      .toString()
      .trim()
    const link = join(dir, 'bin', name)
    if (!existsSync(link)) symlinkSync(found, link)
  }
  env['FAKE_NPM_DIR'] = join(dir, 'bin')
}

const FETCH = `mkdir -p node_modules/koffi node_modules/@koromix/koffi-x
echo 'module.exports = {}' > node_modules/koffi/index.js
echo 'native' > node_modules/koffi/source.cc
echo 'native' > node_modules/@koromix/koffi-x/koffi.node`

function run(
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  program = [process.execPath, join(plugin, 'bootstrap.mjs')],
): Promise<Ended> {
  const options: ExecFileOptions = { env: { ...env, ...more }, timeout: 60_000 }
  const [file = '', ...rest] = [...program, ...args]
  return new Promise((resolve) => {
    const child = execFile(file, rest, options, (_, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout: String(stdout), stderr: String(stderr) })
    })
  })
}

const setup = async (...args: readonly string[]): Promise<Ended> => run(['setup', ...args])
/** Files only. */
function pathsUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort()
}

const launcher = (): string => join(plugin, 'bin', 'caduceus')
const builds = (): readonly string[] => {
  const folder = join(home, 'caduceus', 'builds')
  return existsSync(folder) ? readdirSync(folder).sort() : []
}
const calls = (): number =>
  existsSync(join(dir, 'npm.log'))
    ? readFileSync(join(dir, 'npm.log'), 'utf8').split('\n').length - 1
    : 0
const digest = async (): Promise<string> => (await run(['digest'])).stdout.trim()

describe('what does setup do with a plugin?', () => {
  beforeEach(() => {
    makeSmallPlugin()
    makeNpm(FETCH)
  })

  test('it builds, switches the launcher, and hands its arguments and its end over', async () => {
    const ended = await run(['setup', '--create-labels'], { FAKE_EXIT: '7' })
    expect(ended).toMatchObject({ code: 7, stderr: '' })
    const name = await digest()
    const build = join(home, 'caduceus', 'builds', name)
    expect(JSON.parse(ended.stdout)).toEqual({
      argv: ['setup', '--create-labels'],
      program: join(build, 'dist', 'caduceus.mjs'),
      home,
      root: plugin,
    })
    expect(builds()).toEqual([name])
    expect(pathsUnder(build)).toEqual([
      'build.json',
      'dist/caduceus.mjs',
      'node_modules/@koromix/koffi-x/koffi.node',
      'node_modules/koffi/index.js',
      'package.json',
      'plugin-assets/worker-bridge.py',
      'templates/prompt.md',
    ])
    const about = JSON.parse(readFileSync(join(build, 'build.json'), 'utf8')) as object
    expect(about).toMatchObject({ digest: name, version: '1.2.3', bytes: expect.any(Number) })
    expect(statSync(launcher()).mode & 0o777).toBe(0o755)
    expect(readFileSync(launcher(), 'utf8')).toContain(`launcher of build ${name}\n`)
  })

  test('in the folder of the plugin git sees no change, and packages run no scripts', async () => {
    const status = (): string =>
      execFileSync('git', ['-C', plugin, 'status', '--porcelain', '-uall']).toString()
    const before = status()
    await setup()
    expect(status()).toBe(before)
    expect(readFileSync(join(dir, 'npm.log'), 'utf8')).toContain('--ignore-scripts')
  })

  test('a second call builds nothing and leaves the launcher untouched', async () => {
    await setup()
    const before = statSync(launcher(), { bigint: true })
    expect((await setup()).code).toBe(0)
    expect(calls()).toBe(1)
    expect(statSync(launcher(), { bigint: true })).toMatchObject({ ino: before.ino })
    // Nothing is fetched, so nothing to fetch with is needed.
    write(join(dir, 'bin', 'npm'), '#!/bin/sh\nexit 1\n', 0o755)
    // What a killed setup left is swept also then; what a living one works in is not.
    const stage = (pid: number): string => `.0123456789abcdef.${pid}.abcdef`
    for (const pid of [999_999_999, process.pid])
      write(join(home, 'caduceus/builds', stage(pid), 'x'), '')
    expect(await setup()).toMatchObject({ code: 0, stderr: '' })
    expect(builds()).toEqual([stage(process.pid), await digest()])
  })

  test('any changed source makes another build, which the launcher then starts', async () => {
    await setup()
    const names = new Set([await digest()])
    const sources = [
      'templates/prompt.md',
      'package-lock.json',
      'scripts/build.mjs',
      'commands/one.ts',
    ]
    for (const source of sources) {
      write(join(plugin, source), `${readFileSync(join(plugin, source), 'utf8')}\n`)
      names.add(await digest())
    }
    write(join(plugin, 'commands/two.ts'), '')
    names.add(await digest())
    expect(names.size).toBe(sources.length + 2)
    await setup()
    expect(readFileSync(launcher(), 'utf8')).toContain(`builds/${await digest()}/dist`)
    expect(builds()).toHaveLength(2)
  })

  test('what is no source does not count: caches, hidden files, copies of editors, tests', async () => {
    const before = await digest()
    const names = ['daemon/.swap', 'daemon/x.ts~', 'daemon/__pycache__/x', 'README.md', 'test/x.ts']
    for (const name of names) write(join(plugin, name), 'x')
    expect(await digest()).toBe(before)
  })

  test('a dry run changes nothing, before and after the build', async () => {
    const before = pathsUnder(dir)
    const plan = await setup('--dry-run')
    expect(plan).toMatchObject({ code: 0, stderr: '' })
    expect(plan.stdout).toContain(`would make ${join(home, 'caduceus', 'builds', await digest())}`)
    const { steps } = JSON.parse((await setup('--dry-run', '--json')).stdout) as { steps: object[] }
    expect(steps).toHaveLength(3)
    expect(pathsUnder(dir)).toEqual(before)
    await setup()
    rmSync(launcher())
    expect(JSON.parse((await setup('--dry-run')).stdout)).toMatchObject({
      argv: ['setup', '--dry-run'],
    })
    expect(existsSync(launcher())).toBe(false)
  })

  test('a slip of the pen builds nothing, and is told with what there is', async () => {
    const before = pathsUnder(dir)
    for (const word of ['--dry-rn', '--', 'now', '--dry-run=yes']) {
      const { code, stdout, stderr } = await setup('--create-labels', word)
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(JSON.stringify(word))])
      expect(stderr).toContain(SETUP_USAGE)
    }
    const { error } = JSON.parse((await setup('--json', '-n')).stdout) as { error: object }
    expect(error).toMatchObject({ code: 'usage', next: SETUP_USAGE })
    expect(await setup('--help')).toEqual({ code: 0, stdout: `${SETUP_USAGE}\n`, stderr: '' })
    expect(pathsUnder(dir)).toEqual(before)
    expect(SETUP_USAGE.match(/(?<=\[--)[a-z-]+/g)).toEqual([...Object.keys(Setup.flags), 'json'])
  })

  test('a build that has lost its program is made again', async () => {
    await setup()
    rmSync(join(home, 'caduceus', 'builds', await digest(), 'dist'), { recursive: true })
    expect(await run(['--version'], {}, [launcher()])).toMatchObject({
      code: 127,
      stderr: expect.stringContaining('hermes caduceus setup'),
    })
    expect((await setup()).code).toBe(0)
    expect((await run(['--version'], {}, [launcher()])).stdout).toBe('small 1.2.3\n')
    expect(builds()).toHaveLength(1)
  })
})

describe('what is said when setup cannot go on?', () => {
  beforeEach(() => {
    makeSmallPlugin()
    makeNpm(FETCH)
  })

  test('everything that is missing, at once, and nothing is written', async () => {
    const [bin, empty] = [join(dir, 'bin'), join(dir, 'empty')]
    for (const name of ['npm', 'git', 'python3']) rmSync(join(bin, name))
    const missing = { PATH: empty, HERMES_HOME: 'relative' }
    const ended = await run(['setup'], missing)
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    for (const what of ['npm was', 'git was', 'python3 was', 'HERMES_HOME is']) {
      expect(ended.stderr).toContain(what)
    }
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
    const { error } = JSON.parse((await run(['setup', '--json'], missing)).stdout) as {
      error: { message: string; next: string }
    }
    expect(error.next).toContain('install npm; install git; install python3')
    expect([existsSync(launcher()), builds()]).toEqual([false, []])
  })

  test('an old Node is told so with what else is missing', async () => {
    rmSync(join(dir, 'bin', 'git'))
    const old = { FAKE_NODE: '18.20.1', PATH: join(dir, 'empty') }
    const ended = await run(['setup'], old)
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain('Node 18.20.1 is too old; git was not found.')
    expect(ended.stderr).toContain('Node 20.19 or newer')
    expect((await run(['doctor'], old)).stdout).toContain('[FAIL] Node — Node 18.20.1 is too old')
  })

  test('an old Node can read bootstrap.mjs', () => {
    const text = readFileSync(join(ROOT, 'bootstrap.mjs'), 'utf8')
    // What a target does not know is written otherwise; here nothing has to be.
    const [old, now] = ['node12.20', 'esnext'].map((target) => transformSync(text, { target }).code)
    expect(old).toBe(now)
    expect(text).not.toMatch(/from 'node:|\.(?:replaceAll|at|flat)\(|rmSync|cpSync/)
  })

  test('without a network the registry is named, and what was built stays in use', async () => {
    await setup()
    const before = readFileSync(launcher(), 'utf8')
    write(join(plugin, 'commands/two.ts'), '')
    makeNpm(
      `echo "npm error code ENOTFOUND token=$NPM_TOKEN https://me:pass-word@registry" >&2; exit 1`,
    )
    const ended = await run(['setup'], { NPM_TOKEN: SECRET })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain('npm error code ENOTFOUND')
    expect(ended.stderr).toMatch(
      /fetching packages failed \(exit code 1\)\..*registry.*earlier build stays in use/,
    )
    expect(ended.stderr).not.toContain(SECRET)
    expect(ended.stderr).not.toContain('pass-word')
    expect(readFileSync(launcher(), 'utf8')).toBe(before)
    expect(builds()).toHaveLength(1)
  })

  test.each([
    ['the build fails', 'scripts/build.mjs', 'throw new Error("no luck")', 'building failed'],
    [
      'the build does not start',
      'daemon/program.mjs',
      'throw new Error("no luck")',
      'trying the build',
    ],
    ['the native part does not load', 'daemon/program.mjs', 'process.exit(3)', 'trying the build'],
  ])('when %s, nothing is switched', async (_, source, text, told) => {
    write(join(plugin, source), text)
    const ended = await setup()
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain(told)
    expect([existsSync(launcher()), builds()]).toEqual([false, []])
  })

  test('doctor says that nothing is built; with a launcher it is the program', async () => {
    const ended = await run(['doctor', '--json'])
    expect(ended.code).toBe(2)
    const { checks } = JSON.parse(ended.stdout) as { checks: { name: string; status: string }[] }
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'Node ok',
      'npm ok',
      'git ok',
      'python3 ok',
      'Build fail',
    ])
    await setup()
    expect(JSON.parse((await run(['doctor', '--x'])).stdout)).toMatchObject({
      argv: ['doctor', '--x'],
    })
    expect((await run(['unknown'])).code).toBe(2)
  })
})

describe('which node does the launcher start?', () => {
  beforeEach(async () => {
    makeSmallPlugin()
    makeNpm(FETCH)
    await setup()
  })

  const start = async (more: Readonly<Record<string, string>>): Promise<Ended> =>
    run(['status'], { NODE_OPTIONS: '', ...more }, [launcher()])

  test('the one named by CADUCEUS_NODE, else the recorded one, else the one in PATH', async () => {
    const named = join(dir, 'named')
    write(named, '#!/bin/sh\necho named\n', 0o755)
    expect((await start({ CADUCEUS_NODE: named })).stdout).toBe('named\n')
    expect((await start({ CADUCEUS_NODE: join(dir, 'gone'), PATH: '' })).code).toBe(0)
    rmSync(join(dir, 'bin', 'node'))
    const inPath = join(dir, 'path')
    write(join(inPath, 'node'), '#!/bin/sh\necho in path\n', 0o755)
    expect((await start({ PATH: inPath })).stdout).toBe('in path\n')
    const none = await start({ PATH: '' })
    expect(none).toMatchObject({ code: 127, stdout: '' })
    expect(none.stderr).toContain('CADUCEUS_NODE')
  })

  test('it fills in what the host did not say, and nothing else', async () => {
    const told = JSON.parse(
      (await start({ HERMES_HOME: '', CADUCEUS_PLUGIN_ROOT: '' })).stdout,
    ) as object
    expect(told).toMatchObject({ home, root: plugin })
    const other = await start({ HERMES_HOME: '/other', CADUCEUS_PLUGIN_ROOT: '/root' })
    expect(JSON.parse(other.stdout)).toMatchObject({ home: '/other', root: '/root' })
  })
})

describe('what is left when setup is killed?', () => {
  beforeEach(() => {
    makeSmallPlugin()
    makeNpm(FETCH)
  })

  test('at every effect: a launcher that works or none, and the next call comes to the same end', async () => {
    const effects = join(dir, 'effects')
    await run(['setup'], { EFFECTS: effects })
    const names = readFileSync(effects, 'utf8').trim().split('\n')
    // Sources are written one like the other: the first and the last of a series stand for it.
    const places = names.flatMap((name, index) =>
      name === names[index - 2] && name === names[index + 2] ? [] : [index + 1],
    )
    expect(places.length).toBeGreaterThan(20)
    const [name] = builds()
    const bin = join(plugin, 'bin')
    for (const at of places) {
      for (const path of [bin, join(home, 'caduceus')])
        rmSync(path, { recursive: true, force: true })
      const killed = await run(['setup'], { KILL_AT: String(at) })
      expect({ at, code: killed.code }).toEqual({ at, code: null })
      if (existsSync(launcher())) {
        expect((await run(['--version'], { NODE_OPTIONS: '' }, [launcher()])).stdout).toBe(
          'small 1.2.3\n',
        )
      }
      const again = await setup()
      expect({ at, ...again }).toMatchObject({ at, code: 0, stderr: '' })
      expect({ at, builds: builds(), bin: readdirSync(bin) }).toEqual({
        at,
        builds: [name],
        bin: ['caduceus'],
      })
    }
  }, 240_000)

  test('a stop ends npm with all it has started', async () => {
    makeNpm('sleep 600 & echo $! > "$HOME/sleeper"; wait')
    const child = spawn(process.execPath, [join(plugin, 'bootstrap.mjs'), 'setup'], {
      env,
      stdio: 'ignore',
    })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const sleeper = await waitUntil('npm is at work', () => {
      const path = join(dir, 'sleeper')
      return existsSync(path) && Number(readFileSync(path, 'utf8'))
    })
    child.kill('SIGTERM')
    expect(await ended).toBe(143)
    await waitUntil('all have ended', () => !existsSync(`/proc/${sleeper}`))
    makeNpm(FETCH)
    expect((await setup()).code).toBe(0)
    expect(builds()).toEqual([await digest()])
  })
})

test('of two setups at once both succeed, and one build is left', async () => {
  makeSmallPlugin()
  // Neither goes on before both fetch.
  makeNpm(`${FETCH}
n=0; while [ "$(wc -l < "$FAKE_LOG")" -lt 2 ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done`)
  const both = await Promise.all([setup(), setup()])
  expect(both.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
    { code: 0, stderr: '' },
    { code: 0, stderr: '' },
  ])
  expect(calls()).toBe(2)
  expect(builds()).toEqual([await digest()])
})

describe('how does this very plugin fare?', () => {
  test('a run finishes from its own build during an upgrade, which is then collected', async () => {
    const list = execFileSync('git', ['-C', ROOT, 'ls-files', '-co', '--exclude-standard', '-z'])
    for (const name of list
      .toString()
      .split('\0')
      .filter((each) => existsSync(join(ROOT, each)))) {
      if (name !== '' && !/^(?:test|docs)\//.test(name))
        cpSync(join(ROOT, name), join(plugin, name))
    }
    makeNpm(`ln -s '${ROOT}/node_modules' node_modules`)
    const rig = await openProgramRig({ bridge: gatedBridge() })
    try {
      Object.assign(env, {
        CADUCEUS_GITHUB_TOKEN: rig.token,
        CADUCEUS_CONFIG: join(rig.dir, 'config.yaml'),
      })
      const first = await setup()
      expect(first).toMatchObject({ code: 0, stderr: '' })
      expect(first.stdout).toMatch(/\[OK\] build — version \S+, [0-9a-f]{16}, \d\.\d MB/)
      const old = join(home, 'caduceus', 'builds', await digest())
      await rig.openIssue()
      const shell = { ...rig.env, HERMES_HOME: home, NODE_OPTIONS: '' }
      expect(await run(['run', '--now'], shell, [launcher()])).toMatchObject({
        code: 0,
        stdout: '',
      })
      const { runner } = await processesOfRun(rig)
      expect(readFileSync(`/proc/${runner}/cmdline`, 'utf8')).toContain(`${old}/dist/`)

      write(
        join(plugin, 'daemon/main.ts'),
        `${readFileSync(join(plugin, 'daemon/main.ts'), 'utf8')}\n`,
      )
      expect((await setup()).code).toBe(0)
      const names = [old.slice(-16), await digest()]
      expect(builds().filter((name) => !name.startsWith('.'))).toEqual(names.toSorted())

      // In use, it is not even marked; out of use it stays for another day.
      const mark = join(dirname(old), `.${old.slice(-16)}.retired`)
      expect(existsSync(mark)).toBe(false)
      openGate(rig)
      await waitUntil('the run has settled', () => newestRun(rig).stage === 'settled')
      await waitUntil('the runner has left', () => !existsSync(`/proc/${runner}`))
      await setup()
      expect([existsSync(mark), existsSync(old)]).toEqual([true, true])
      const dayAgo = Date.now() / 1000 - 86_500
      utimesSync(mark, dayAgo, dayAgo)
      expect((await setup('--dry-run')).stdout).toContain(`would remove ${old.slice(-16)}`)
      expect(existsSync(old)).toBe(true)
      expect((await setup()).stdout).toContain(`removed ${old.slice(-16)}`)
      expect(builds()).toEqual([await digest()])
    } finally {
      await rig.close()
    }
  }, 120_000)
})
