import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { scheduleOf } from '../../daemon/app/fire-ticks.ts'
import {
  type CronJob,
  createArguments,
  desiredJob,
  editArguments,
  planInstall,
  scheduleText,
} from '../../daemon/core/cron-job.ts'
import { isFault } from '../../daemon/core/fault.ts'
import { readCronJobs } from '../../daemon/host/cron-jobs.ts'
import {
  inspectWrapper,
  refreshWrapper,
  removeWrapper,
  type WrapperParts,
  wrapperPartsOf,
  wrapperText,
  writeWrapper,
} from '../../daemon/host/cron-wrapper.ts'
import {
  callHermes,
  findHermes,
  type HermesHost,
  lockJobs,
  requireHost,
} from '../../daemon/host/hermes-cron.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { describeScope, openRunScope, type ScopePaths } from '../../daemon/sys/run-scope.ts'
import { spawnDetached } from '../../daemon/sys/spawn-detached.ts'
import { waitUntil } from '../support/processes.ts'

const STANDIN = join(import.meta.dirname, '../fixtures/bin/hermes')
const PATH = process.env['PATH'] ?? ''

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'cron-'))
})
afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
})

const WANTED = desiredJob(120)

function job(fields: Partial<CronJob> = {}): CronJob {
  return {
    id: 'aaaaaaaaaaaa',
    name: 'caduceus',
    script: 'caduceus-pulse.sh',
    noAgent: true,
    everyMinutes: 2,
    schedule: 'every 2m',
    state: 'scheduled',
    enabled: true,
    deliver: 'local',
    nextRunAt: null,
    lastRunAt: null,
    lastStatus: null,
    lastError: null,
    ...fields,
  }
}

/** The code of the fault that a call throws. */
function codeOf(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    if (isFault(error)) return error.code
    throw error
  }
  return 'none'
}

describe('what has to be done about the jobs', () => {
  const user = job({ id: 'bbbbbbbbbbbb', name: 'backup', script: 'backup.sh' })
  const namesake = job({ id: 'cccccccccccc', script: 'other.sh' })

  const TABLE: readonly (readonly [string, readonly CronJob[], string, readonly string[]])[] = [
    ['no job at all', [], 'create', []],
    ['only jobs of others', [user], 'create', []],
    ['ours as it should be', [user, job()], 'nothing', []],
    ['ours, paused', [job({ state: 'paused', enabled: false })], 'nothing', []],
    ['ours with another target', [job({ deliver: 'telegram' })], 'nothing', []],
    ['ours under another name', [job({ name: 'pull requests' })], 'nothing', []],
    ['ours at another interval', [job({ everyMinutes: 5 })], 'edit', ['schedule']],
    ['ours with no interval', [job({ everyMinutes: null })], 'edit', ['schedule']],
    ['ours with a model', [job({ noAgent: false })], 'edit', ['no_agent']],
    [
      'ours, the script spelled oddly',
      [job({ script: './caduceus-pulse.sh' })],
      'edit',
      ['script'],
    ],
    ['our name, another script', [namesake], 'refuse-namesake', []],
    ['our name in capitals', [job({ name: 'Caduceus', script: null })], 'refuse-namesake', []],
    ['ours renamed beside a namesake', [job({ name: 'x' }), namesake], 'nothing', []],
    ['two of ours', [job(), job({ id: 'dddddddddddd', name: 'x' })], 'refuse-duplicates', []],
  ]

  test.each(TABLE)('%s', (_, jobs, kind, differences) => {
    const plan = planInstall(WANTED, jobs)
    expect([plan.kind, plan.differences]).toEqual([kind, differences])
    expect(plan.jobs).not.toContain(user)
  })

  test.each([
    [1, 1],
    [60, 1],
    [61, 2],
    [90, 2],
    [120, 2],
    [3600, 60],
  ])('%i seconds are every %i minutes for the host, never more often', (seconds, minutes) => {
    expect(scheduleText(desiredJob(seconds))).toBe(`every ${minutes}m`)
  })

  test('only creating names a target; an edit leaves name and target as they are', () => {
    expect(createArguments(WANTED)).toEqual(
      expect.arrayContaining(['--deliver', 'local', '--name', 'caduceus', '--no-agent']),
    )
    expect(editArguments('aaaaaaaaaaaa', WANTED)).not.toEqual(expect.arrayContaining(['--deliver']))
    expect(editArguments('aaaaaaaaaaaa', WANTED)).not.toEqual(expect.arrayContaining(['--name']))
  })

  test.each([
    [1, '*/1 * * * * *'],
    [90, '*/6 * * * * *'],
    [120, '*/12 * * * * *'],
    [420, '*/30 * * * * *'],
    [3600, '0 * * * * *'],
  ])('the daemon looks several times in %i seconds whether a tick is due', (seconds, beat) => {
    expect(scheduleOf(seconds)).toBe(beat)
  })
})

describe("the host's list of jobs", () => {
  const write = (text: string): void => {
    mkdirSync(join(dir, 'cron'), { recursive: true })
    writeFileSync(join(dir, 'cron', 'jobs.json'), text)
  }

  test('there is none before the first job', () => {
    expect(readCronJobs(dir).jobs).toEqual([])
  })

  test('fields that nobody knows and odd values are passed over', () => {
    const record = {
      id: 'aaaaaaaaaaaa',
      name: 7,
      script: ['x'],
      no_agent: 'true',
      schedule: 'every 2m',
      shiny: { new: true },
    }
    write(JSON.stringify({ jobs: [null, 3, [], record], updated_at: 0, more: 1 }))
    expect(readCronJobs(dir).jobs).toEqual([
      job({
        name: '',
        script: null,
        noAgent: false,
        everyMinutes: null,
        schedule: null,
        state: null,
        deliver: null,
      }),
    ])
  })

  test('a list that is linked into place is read', () => {
    write('{}')
    rmSync(join(dir, 'cron', 'jobs.json'))
    writeFileSync(join(dir, 'real.json'), '{"jobs":[]}')
    symlinkSync(join(dir, 'real.json'), join(dir, 'cron', 'jobs.json'))
    expect(readCronJobs(dir).jobs).toEqual([])
  })

  test.each([
    ['half a file', '{"jobs": [{"id": "a'],
    ['nothing', ''],
    ['another document', '[]'],
    ['no list', '{"jobs": {}}'],
    ['nests without end', '['.repeat(200_000)],
    [
      'a job of ours with an option for an id',
      '{"jobs":[{"id":"--all","script":"caduceus-pulse.sh"}]}',
    ],
    ['a job of our name without an id', '{"jobs":[{"name":"caduceus","script":"x.sh"}]}'],
  ])('%s is malformed, and the text is not repeated', (_, text) => {
    write(text)
    expect(codeOf(() => readCronJobs(dir))).toBe('host/jobs-malformed')
    if (text.length > 3) expect(() => readCronJobs(dir)).not.toThrow(text.slice(0, 40))
  })

  test('a job of others without an id is none of our business', () => {
    write('{"jobs":[{"name":"backup","id":"-rf"}]}')
    expect(readCronJobs(dir).jobs).toEqual([])
  })

  test('what is no file cannot be read', () => {
    mkdirSync(join(dir, 'cron', 'jobs.json'), { recursive: true })
    expect(codeOf(() => readCronJobs(dir))).toBe('host/jobs-unreadable')
  })
})

describe('the wrapper', () => {
  /** An installation whose paths hold what shells trip over, and a launcher that tells what it got. */
  function install(folder = `it's a "home" $(touch x) \`id\` #1`): WrapperParts {
    const hermesHome = join(dir, folder)
    const pluginRoot = join(hermesHome, 'plugins', 'caduceus')
    const launcher = join(pluginRoot, 'bin', 'caduceus')
    mkdirSync(dirname(launcher), { recursive: true })
    writeFileSync(
      launcher,
      `#!/bin/sh
printf '%s\\n' "$HERMES_HOME" "$CADUCEUS_PLUGIN_ROOT" "$CADUCEUS_NODE" "$CADUCEUS_SCHEDULED" "$#" "$@"
cat
ls -l /proc/$$/fd >"$HERMES_HOME/descriptors"
exit 7
`,
      { mode: 0o755 },
    )
    return { hermesHome, pluginRoot, launcher, node: process.execPath }
  }

  const run = (
    parts: WrapperParts,
    options: { args?: readonly string[]; path?: string; fds?: readonly number[] } = {},
  ) =>
    spawnSync('/bin/bash', [inspectWrapper(parts).path, ...(options.args ?? [])], {
      env: { PATH: options.path ?? PATH },
      cwd: dir,
      input: 'what the host left on standard input',
      stdio: ['pipe', 'pipe', 'pipe', ...(options.fds ?? [])],
      encoding: 'utf8',
    })

  test('bash hands blanks, quotes and dollars on, and the exit code back', () => {
    const parts = install()
    expect(writeWrapper(parts)).toBe(true)
    const { stdout, stderr, status } = run(parts, { args: ['--now', 'a b'] })
    const { hermesHome, pluginRoot, node } = parts
    expect(stdout.split('\n')).toEqual([
      hermesHome,
      pluginRoot,
      node,
      '1',
      '3',
      'run',
      '--now',
      'a b',
      '',
    ])
    expect([stderr, status]).toEqual(['', 7])
    expect(existsSync(join(dir, 'x'))).toBe(false)
    expect(statSync(inspectWrapper(parts).path).mode & 0o777).toBe(0o755)
  })

  test('no descriptor of the scheduler gets through, wherever bash itself reads from', () => {
    const parts = install('home')
    writeWrapper(parts)
    const fd = openSync(join(dir, 'leak'), 'w')
    // 255 is where bash keeps the script.
    const fds = Array.from({ length: 253 }, () => fd)
    const { status } = run(parts, { fds })
    closeSync(fd)
    expect(status).toBe(7)
    const open = readFileSync(join(parts.hermesHome, 'descriptors'), 'utf8')
    expect(open).toContain(parts.launcher)
    expect(open).not.toContain(join(dir, 'leak'))
    expect(open).not.toContain('caduceus-pulse.sh')
  })

  test('a node that has moved is looked for in PATH', () => {
    const parts = { ...install('home'), node: join(dir, 'gone', 'node') }
    writeWrapper(parts)
    expect(inspectWrapper(parts).state).toBe('node-gone')
    const found = execFileSync('/bin/bash', ['-c', 'command -v node'], { encoding: 'utf8' }).trim()
    expect(run(parts).stdout.split('\n')[2]).toBe(found)
  })

  test('without any node it says so in one line and ends with 127', () => {
    const parts = { ...install('home'), node: join(dir, 'gone', 'node') }
    writeWrapper(parts)
    const { stdout, stderr, status } = run(parts, { path: join(dir, 'empty') })
    expect([stdout, status]).toEqual(['', 127])
    expect(stderr).toMatch(/^caduceus: node was moved [^\n]*hermes caduceus setup\n$/)
  })

  test('without a built program it says so in one line and ends with 127', () => {
    const parts = install('home')
    writeWrapper(parts)
    rmSync(parts.launcher)
    const { stdout, stderr, status } = run(parts)
    expect([stdout, status]).toEqual(['', 127])
    expect(stderr).toMatch(/^caduceus: [^\n]*hermes caduceus setup\n$/)
  })

  test('nothing in it looks like the end of the gateway to the host', () => {
    expect(wrapperText(install('home'))).not.toMatch(/gateway|systemctl|launchctl|kill/i)
  })

  test('a path with a line break is refused before anything is written', () => {
    const parts = install('two\nlines')
    expect(codeOf(() => writeWrapper(parts))).toBe('cron/unquotable-path')
    expect(existsSync(join(parts.hermesHome, 'scripts'))).toBe(false)
  })

  test.each([
    ['no file', 'absent', () => {}],
    [
      'made just now',
      'current',
      (path: string, text: string) => writeFileSync(path, text, { mode: 0o755 }),
    ],
    [
      'edited by hand',
      'outdated',
      (path: string, text: string) => writeFileSync(path, `${text}# mine\n`, { mode: 0o755 }),
    ],
    [
      'not executable',
      'outdated',
      (path: string, text: string) => writeFileSync(path, text, { mode: 0o644 }),
    ],
    [
      'made by the original implementation',
      'outdated',
      (path: string) =>
        writeFileSync(
          path,
          '#!/usr/bin/env bash\nset -euo pipefail\nexec /x/bin/caduceus run "$@"\n',
        ),
    ],
    [
      "somebody else's",
      'foreign',
      (path: string) => writeFileSync(path, '#!/bin/sh\necho hello\n'),
    ],
    ['a folder', 'foreign', (path: string) => mkdirSync(path)],
    ['a link', 'foreign', (path: string) => symlinkSync('/nowhere', path)],
    [
      'without end',
      'foreign',
      (path: string, text: string) => writeFileSync(path, text.repeat(100)),
    ],
  ])('%s is %s; only what is ours is replaced or removed', (_, state, make) => {
    const parts = install('home')
    mkdirSync(join(parts.hermesHome, 'scripts'))
    make(inspectWrapper(parts).path, wrapperText(parts))
    expect(inspectWrapper(parts).state).toBe(state)
    const isForeign = state === 'foreign'
    expect(refreshWrapper(parts)).toMatchObject({
      state: isForeign || state === 'absent' ? state : 'current',
      written: state === 'outdated',
    })
    expect(codeOf(() => writeWrapper(parts))).toBe(isForeign ? 'cron/foreign-wrapper' : 'none')
    expect(removeWrapper(parts)).toBe(!isForeign)
    expect(inspectWrapper(parts).state).toBe(isForeign ? 'foreign' : 'absent')
  })

  test("the node of now replaces one that is still there; the operator's own path is preferred", () => {
    const parts = install('home')
    const other = join(dir, 'node')
    symlinkSync(process.execPath, other)
    writeWrapper({ ...parts, node: other })
    expect(inspectWrapper(parts)).toMatchObject({ state: 'current', node: other })
    expect(writeWrapper(parts)).toBe(true)
    const host = requireHost({ HERMES_HOME: parts.hermesHome, CADUCEUS_NODE: other })
    expect(wrapperPartsOf(host, process.execPath)).toEqual({ ...parts, node: other })
    const gone = requireHost({ HERMES_HOME: parts.hermesHome, CADUCEUS_NODE: join(dir, 'gone') })
    expect(wrapperPartsOf(gone, process.execPath)).toEqual(parts)
  })
})

describe('calls of the host', () => {
  const hostWith = (more: Readonly<Record<string, string>> = {}): HermesHost =>
    requireHost({ PATH, HERMES_HOME: dir, CADUCEUS_HERMES_BIN: STANDIN, ...more })
  const call = async (
    host: HermesHost,
    args: readonly string[],
    timeoutMs?: number,
  ): Promise<string> => {
    const lock = await lockJobs(host)
    try {
      return await callHermes(host, lock, args, timeoutMs)
    } finally {
      lock.remove()
    }
  }

  test('it sees no chat of an agent, no colours and no input, and makes the job we want', async () => {
    const log = join(dir, 'log')
    const host = hostWith({ HERMES_SESSION_CHAT_ID: '7', HERMES_STANDIN_LOG: log })
    expect(await call(host, createArguments(WANTED))).toMatch(/^Created job: [0-9a-f]{12}$/)
    const said = JSON.parse(readFileSync(log, 'utf8')) as Readonly<{
      input: string
      environment: Record<string, string>
    }>
    expect(said.input).toBe('')
    expect(said.environment).toMatchObject({ NO_COLOR: '1', HERMES_HOME: dir })
    expect(Object.keys(said.environment).filter((name) => name.includes('SESSION'))).toEqual([])
    expect(readCronJobs(dir).jobs).toEqual([
      job({ id: expect.any(String) as never, nextRunAt: expect.any(String) as never }),
    ])
  })

  test.each([
    ['refuse', /^Failed to create job: no\. GITHUB_TOKEN=<redacted>$/, 0],
    ['lie', /^Created job: 0123456789ab$/, 0],
    ['crash-before', /^\(ended with SIGKILL\)$/, 0],
    ['crash-after', /^\(ended with SIGKILL\)$/, 1],
    ['hang-before', /did not finish within/, 0],
    ['hang-after', /did not finish within/, 1],
    ['noise', /table/, 1],
  ])('%s: what it says is a reason, never evidence', async (mode, said, jobs) => {
    const timeoutMs = mode.startsWith('hang') ? 1500 : undefined
    const host = hostWith({ HERMES_STANDIN: mode })
    expect(await call(host, createArguments(WANTED), timeoutMs)).toMatch(said)
    expect(readCronJobs(dir).jobs).toHaveLength(jobs)
  })

  test('a program that cannot be started is told the same way', async () => {
    const broken = join(dir, 'hermes')
    writeFileSync(broken, '#!/nowhere/python\n', { mode: 0o755 })
    expect(await call(hostWith({ CADUCEUS_HERMES_BIN: broken }), ['cron', 'list'])).toMatch(
      /interpreter is missing/,
    )
  })

  test('the program named is taken while it is there, else the one in PATH, else none', () => {
    mkdirSync(join(dir, 'bin'))
    const inPath = join(dir, 'bin', 'hermes')
    writeFileSync(inPath, '#!/bin/sh\n', { mode: 0o755 })
    const environment = { PATH: join(dir, 'bin') }
    expect(findHermes({ ...environment, CADUCEUS_HERMES_BIN: STANDIN })).toBe(STANDIN)
    expect(findHermes({ ...environment, CADUCEUS_HERMES_BIN: join(dir, 'gone') })).toBe(inPath)
    chmodSync(inPath, 0o644)
    expect(findHermes(environment)).toBeNull()
  })

  test.each([
    ['is not set', {}],
    ['is not an absolute path', { HERMES_HOME: 'here' }],
  ])('there is no host where HERMES_HOME %s, and the ways without one are named', (reason, env) => {
    expect(codeOf(() => requireHost(env))).toBe('host/absent')
    expect(() => requireHost(env)).toThrow(reason)
  })
})

describe('scopes for runs', () => {
  /** A stand-in for busctl that does what the test says with the process it is asked to move. */
  function systemd(script: string): { places: ScopePaths; environment: Record<string, string> } {
    for (const name of ['booted', 'bin', 'run', 'processes']) mkdirSync(join(dir, name))
    writeFileSync(join(dir, 'run', 'bus'), '')
    writeFileSync(
      join(dir, 'bin', 'busctl'),
      `#!/bin/sh\nprintf '%s\\n' "$@" >>'${dir}/asked'\nunit=$8 pid=\${14}\n${script}\n`,
      { mode: 0o755 },
    )
    return {
      places: {
        booted: join(dir, 'booted'),
        processes: join(dir, 'processes'),
        runtime: '/nowhere',
        uid: 1000,
      },
      environment: { PATH: `${join(dir, 'bin')}:${PATH}`, XDG_RUNTIME_DIR: join(dir, 'run') },
    }
  }
  const MOVES =
    'place="${0%/bin/busctl}/processes/$pid"; mkdir -p "$place"; echo "0::/user.slice/$unit" >"$place/cgroup"'
  const asked = (): readonly string[] => {
    const path = join(dir, 'asked')
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  }

  test("the user's own service manager is asked for a scope that holds the process", async () => {
    const { places, environment } = systemd(MOVES)
    expect(await openRunScope(systemClock, environment, places).enter(4711, 'run-X')).toBe(true)
    expect(asked()).toEqual([
      '--user',
      'call',
      'org.freedesktop.systemd1',
      '/org/freedesktop/systemd1',
      'org.freedesktop.systemd1.Manager',
      'StartTransientUnit',
      'ssa(sv)a(sa(sv))',
      'caduceus-run-X-4711.scope',
      'fail',
      '3',
      'PIDs',
      'au',
      '1',
      '4711',
      'Description',
      's',
      'A run of Caduceus',
      'CollectMode',
      's',
      'inactive-or-failed',
      '0',
    ])
  })

  test('root asks the manager of the system', async () => {
    const { places, environment } = systemd(MOVES)
    await openRunScope(systemClock, environment, { ...places, uid: 0 }).enter(4711, 'run-X')
    expect(asked()[0]).toBe('--system')
  })

  test.each([
    ['refuses', 'exit 1'],
    ['says yes and does nothing', 'exit 0'],
    ['hangs', 'exec sleep 60'],
  ])('a manager that %s holds up one start and is not asked again', async (_, script) => {
    const { places, environment } = systemd(script)
    const scope = openRunScope(systemClock, environment, places)
    expect(await scope.enter(4711, 'run-X')).toBe(false)
    const words = asked().length
    expect(await scope.enter(4712, 'run-Y')).toBe(false)
    expect(asked()).toHaveLength(words)
  })

  test('a start waits for the move before it hands its input over, and survives a refusal', async () => {
    const { places, environment } = systemd('exit 1')
    const scope = openRunScope(systemClock, environment, places)
    const out = join(dir, 'out')
    const fd = openSync(out, 'w')
    writeFileSync(join(dir, 'claim'), 'claimed')
    const claim = openSync(join(dir, 'claim'), 'r')
    await spawnDetached({
      argv: ['/bin/sh', '-c', 'cat <&3; cat <&4'],
      env: { PATH },
      stdio: ['ignore', fd, fd, claim],
      input: { fd: 4, text: ' with a token', before: (pid) => scope.enter(pid, 'run-X') },
    })
    for (const open of [fd, claim]) closeSync(open)
    await waitUntil('it has said all', () => readFileSync(out, 'utf8') === 'claimed with a token')
    expect(asked()).toContain('caduceus-run-X-' + asked()[13] + '.scope')
  })

  test('a program that ends while it is moved is no fault of the start', async () => {
    const { places, environment } = systemd('sleep 0.3; exit 1')
    const scope = openRunScope(systemClock, environment, places)
    const { pid } = await spawnDetached({
      argv: ['/bin/true'],
      env: { PATH },
      stdio: ['ignore', 'ignore', 'ignore', 'ignore'],
      input: { fd: 4, text: 'token', before: (child) => scope.enter(child, 'run-X') },
    })
    expect(pid).toBeGreaterThan(1)
  })

  test.each([
    ['systemd does not run here', { booted: '/nowhere' }, {}],
    ['the user has no service manager of its own', {}, { XDG_RUNTIME_DIR: '/nowhere' }],
  ])('where %s, that is told and nothing is started', async (reason, place, variable) => {
    const { places, environment } = systemd(MOVES)
    const all = { places: { ...places, ...place }, environment: { ...environment, ...variable } }
    expect(describeScope(all.environment, all.places)).toEqual({ kind: 'none', reason })
    expect(await openRunScope(systemClock, all.environment, all.places).enter(4711, 'x')).toBe(
      false,
    )
    expect(asked()).toEqual([])
  })

  test('the runtime folder of the user is found without its variable', () => {
    const { places, environment } = systemd(MOVES)
    mkdirSync(join(dir, '1000'))
    writeFileSync(join(dir, '1000', 'bus'), '')
    const { XDG_RUNTIME_DIR: _, ...bare } = environment
    expect(describeScope(bare, { ...places, runtime: dir })).toMatchObject({
      kind: 'user',
      environment: { DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(dir, '1000', 'bus')}` },
    })
  })
})
