import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { InstallReport } from '../../daemon/app/install-cron.ts'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { environmentOf, identifyProcess, listProcesses } from '../../daemon/sys/process-identity.ts'
import { commandLineOf, waitUntil } from '../support/processes.ts'
import {
  type Finished,
  killQuietly,
  openProgramRig,
  PROGRAM,
  type ProgramRig,
} from '../support/program-rig.ts'
import {
  allSettled,
  fingerprintOf,
  gatedBridge,
  openGate,
  startedWorkers,
} from '../support/program-views.ts'

// The program under the host's scheduler, whose command line is a stand-in that keeps a real jobs.json,
// and as its own scheduler.

const STANDIN = join(import.meta.dirname, '../fixtures/bin/hermes')
const CRASH = new URL('../support/crash-at-call.mjs', import.meta.url).href

type Job = Readonly<Record<string, unknown>> & Readonly<{ id: string }>

let rig: ProgramRig
/** With what shells trip over in its name. */
let home: string
const at = (...names: readonly string[]): string => join(home, ...names)
const wrapper = (): string => at('scripts', 'caduceus-pulse.sh')
const jobsFile = (): string => at('cron', 'jobs.json')
const jobs = (): readonly Job[] =>
  existsSync(jobsFile())
    ? (JSON.parse(readFileSync(jobsFile(), 'utf8')) as { jobs: readonly Job[] }).jobs
    : []

/** The plugin as `setup` leaves it: only the launcher matters here. */
function setUp(): void {
  rmSync(home, { recursive: true, force: true })
  const launcher = at('plugins', 'caduceus', 'bin', 'caduceus')
  mkdirSync(dirname(launcher), { recursive: true })
  const text = `#!/bin/sh\nexec "$CADUCEUS_NODE" '${PROGRAM}' "$@"\n`
  writeFileSync(launcher, text, { mode: 0o755 })
}

function putJobs(...records: readonly Readonly<Record<string, unknown>>[]): void {
  mkdirSync(at('cron'), { recursive: true })
  writeFileSync(jobsFile(), JSON.stringify({ jobs: records, updated_at: 'then' }))
}

const OURS = {
  id: 'aaaaaaaaaaaa',
  name: 'caduceus',
  script: 'caduceus-pulse.sh',
  no_agent: true,
  schedule: { kind: 'interval', minutes: 2, display: 'every 2m' },
  schedule_display: 'every 2m',
  enabled: true,
  state: 'scheduled',
  deliver: 'local',
}
const USERS = { ...OURS, id: 'bbbbbbbbbbbb', name: 'backup', script: 'backup.sh' }

/** Runs `caduceus` with more variables. */
async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  Object.assign(rig.env, { HERMES_STANDIN: '' }, env)
  const finished = await rig.run(...args)
  for (const name of Object.keys(env)) Reflect.deleteProperty(rig.env, name)
  return finished
}

/** What every installation amounts to. */
function expectInstalled(): void {
  expect(jobs().filter(({ script }) => script === 'caduceus-pulse.sh')).toEqual([
    expect.objectContaining({
      name: 'caduceus',
      no_agent: true,
      deliver: 'local',
      schedule: expect.objectContaining({ kind: 'interval', minutes: 2 }),
    }),
  ])
  expect(readFileSync(wrapper(), 'utf8')).toContain('# managed-by: caduceus')
}

beforeAll(async () => {
  rig = await openProgramRig({ bridge: gatedBridge(), config: { poll_interval_seconds: 120 } })
  home = join(rig.dir, `her mes's $HOME`)
  Object.assign(rig.env, { HERMES_HOME: home, CADUCEUS_HERMES_BIN: STANDIN })
})
afterAll(async () => {
  await rig.close()
})

describe('cron-install and cron-remove', () => {
  beforeEach(setUp)

  const install = ['cron-install']
  const remove = ['cron-remove']

  type State = Readonly<{
    name: string
    prepare: () => void
    /** Of cron-install: what it says, and what the jobs are then; null = it is refused. */
    says: RegExp
    installed: readonly object[] | null
    /** Of cron-remove, from the same state. */
    removes: RegExp
    left: readonly object[]
  }>
  const one = [expect.objectContaining({ name: 'caduceus', script: 'caduceus-pulse.sh' })]
  const edited = { ...OURS, schedule: { kind: 'interval', minutes: 9, display: 'every 9m' } }
  const users = {
    name: 'pull requests',
    state: 'paused',
    enabled: false,
    deliver: 'telegram',
    last_status: 'ok',
  }
  const STATES: readonly State[] = [
    {
      name: 'nothing',
      prepare: () => {},
      says: /^\[OK\] cron-install — job "caduceus" \([0-9a-f]{12}\) created, every 2m; script .* written\n/,
      installed: one,
      removes: /^\[OK\] cron-remove — there was nothing to remove\n$/,
      left: [],
    },
    {
      name: 'jobs of others',
      prepare: () => putJobs(USERS),
      says: /created/,
      installed: [USERS, ...one],
      removes: /nothing to remove/,
      left: [USERS],
    },
    {
      name: 'the job alone',
      prepare: () => putJobs(USERS, OURS),
      says: /left as it is, every 2m; script .* written/,
      installed: [USERS, OURS],
      removes: /removed job aaaaaaaaaaaa\n/,
      left: [USERS],
    },
    {
      name: 'a job that was renamed, paused and sent elsewhere, at another interval',
      prepare: () => putJobs({ ...edited, ...users }),
      says: /job "pull requests" \(aaaaaaaaaaaa\) put right[^]*hint: The job is paused[^]*resume aaaaaaaaaaaa/,
      installed: [expect.objectContaining({ ...users, id: OURS.id, schedule: OURS.schedule })],
      removes: /removed job aaaaaaaaaaaa\n/,
      left: [],
    },
    {
      name: 'a job that would run a model',
      prepare: () => putJobs({ ...OURS, no_agent: false }),
      says: /put right/,
      installed: [expect.objectContaining(OURS)],
      removes: /removed/,
      left: [],
    },
    {
      name: 'a job of another that has our name',
      prepare: () => putJobs({ ...USERS, name: 'Caduceus' }),
      says: /^\[FAIL\] cron-install — .*not ours.*bbbbbbbbbbbb.* — .*cron edit bbbbbbbbbbbb --name NAME\n$/,
      installed: null,
      removes: /nothing to remove/,
      left: [{ ...USERS, name: 'Caduceus' }],
    },
    {
      name: 'two jobs of ours',
      prepare: () => putJobs(OURS, USERS, { ...OURS, id: 'cccccccccccc', name: 'x' }),
      says: /^\[FAIL\] cron-install — 2 scheduled jobs .*aaaaaaaaaaaa, cccccccccccc.* — .*\n$/,
      installed: null,
      removes: /removed job aaaaaaaaaaaa, cccccccccccc\n/,
      left: [USERS],
    },
    {
      name: 'a script of another that has our name',
      prepare: () => {
        mkdirSync(at('scripts'))
        writeFileSync(wrapper(), 'echo mine\n')
      },
      says: /^\[FAIL\] cron-install — .*caduceus-pulse\.sh was not made by Caduceus\. — Move it away.*\n$/,
      installed: null,
      removes: /nothing to remove[^]*hint: .*is left/,
      left: [],
    },
  ]

  test.each(STATES)('from $name', async ({ prepare, says, installed, removes, left }) => {
    prepare()
    const before = fingerprintOf(home)
    for (const verb of [install, remove]) {
      const { code } = await run([...verb, '--dry-run'])
      expect(code).toBe(verb === install && installed === null ? 1 : 0)
      expect(fingerprintOf(home)).toEqual(before)
    }
    const { code, stdout, stderr } = await run(install)
    expect([code, code === 0 ? stderr : stdout]).toEqual([installed === null ? 1 : 0, ''])
    expect(stdout + stderr).toMatch(says)
    if (installed === null) expect(fingerprintOf(home)).toEqual(before)
    else {
      expect(jobs()).toEqual(installed)
      const after = fingerprintOf(home)
      expect((await run(install)).stdout).toMatch(/left as it is.* unchanged\n/)
      expect(fingerprintOf(home)).toEqual(after)
    }

    const isForeign = existsSync(wrapper()) && installed === null
    setUp()
    prepare()
    const removal = await run(remove)
    expect(removal).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(removes) })
    expect(jobs()).toEqual(left)
    expect(existsSync(wrapper())).toBe(isForeign)
    expect((await run(remove)).stdout).toMatch(/nothing to remove/)
  })

  test('what was installed is removed whole, and programs get it as JSON', async () => {
    const made = await run([...install, '--json'])
    const report = JSON.parse(made.stdout) as InstallReport
    expect(report).toMatchObject({ action: 'created', dryRun: false, schedule: 'every 2m' })
    expectInstalled()
    const gone = await run([...remove, '--json'])
    expect(JSON.parse(gone.stdout)).toMatchObject({ action: 'removed', jobs: [report.job?.id] })
    expect([jobs(), existsSync(wrapper())]).toEqual([[], false])
    expect(existsSync(at('caduceus', 'cron.lock'))).toBe(false)
  })

  test.each([
    ['refuse', 1, /did not create the job: Failed to create job: no\. GITHUB_TOKEN=<redacted>\./],
    ['lie', 1, /did not create the job: Created job/],
    ['crash-before', 1, /ended with SIGKILL/],
    ['crash-after', 0, /created/],
    ['noise', 0, /created/],
  ])(
    'a host that fails by %s is judged by its jobs, and the next call converges',
    async (mode, code, says) => {
      const first = await run(install, { HERMES_STANDIN: mode })
      expect(first.code).toBe(code)
      expect(first.stdout + first.stderr).toMatch(says)
      expect(await run(install)).toMatchObject({ code: 0, stderr: '' })
      expectInstalled()
      const end = await run(remove, { HERMES_STANDIN: mode })
      expect(end.code).toBe(code)
      // The script stays as long as a job would call it.
      expect(existsSync(wrapper())).toBe(code === 1)
      expect(await run(remove)).toMatchObject({ code: 0, stderr: '' })
      expect([jobs(), existsSync(wrapper())]).toEqual([[], false])
    },
  )

  test.each([
    ['cron-install', () => {}, expectInstalled],
    [
      'cron-remove',
      () => {
        putJobs(OURS, { ...OURS, id: 'cccccccccccc' })
        mkdirSync(at('scripts'))
        writeFileSync(wrapper(), '#!/bin/bash\n# managed-by: caduceus\n')
      },
      () => expect([jobs(), existsSync(wrapper())]).toEqual([[], false]),
    ],
  ])(
    '%s that is killed before any step is finished by another call',
    async (verb, prepare, expectEnd) => {
      const log = join(rig.dir, 'calls')
      const options = { NODE_OPTIONS: `${rig.clock.env.NODE_OPTIONS} --import=${CRASH}` }
      const killed = async (env: Readonly<Record<string, string>>): Promise<Finished> => {
        const finished = await run([verb], { ...options, ...env })
        rig.env['NODE_OPTIONS'] = rig.clock.env.NODE_OPTIONS
        return finished
      }
      setUp()
      prepare()
      expect(await killed({ TEST_CALL_LOG: log })).toMatchObject({ code: 0, stderr: '' })
      const calls = Number(readFileSync(log, 'utf8'))
      expect(calls).toBeGreaterThan(8)
      for (let call = 1; call <= calls; call += 1) {
        setUp()
        prepare()
        const { code, stdout } = await killed({ TEST_CRASH_AT_CALL: String(call) })
        expect([call, code, stdout]).toEqual([call, -1, ''])
        expect(await run([verb])).toMatchObject({ code: 0, stderr: '' })
        expectEnd()
      }
    },
    180_000,
  )

  test('a call of the host that outlives its command is waited for, so that there is one job', async () => {
    rig.env['HERMES_STANDIN'] = 'slow'
    const { pid, finished } = rig.start(...install)
    const lock = at('caduceus', 'cron.lock')
    const host = await waitUntil('the host is called', () => callsOfHost()[0])
    killQuietly(pid)
    await finished
    expect(isLocked(lock)).toBe(true)
    const second = run(install)
    await waitUntil('the second one waits', () => programsAt('cron-install').length === 1)
    writeFileSync(at('go'), '')
    expect(await second).toMatchObject({ code: 0, stderr: '' })
    expect(identifyProcess(host)).toBeNull()
    expectInstalled()
  })

  test('a host whose list is damaged is told, and nothing is changed', async () => {
    mkdirSync(at('cron'))
    writeFileSync(jobsFile(), '{"jobs": [')
    const before = fingerprintOf(home)
    for (const verb of [install, remove]) {
      const { stderr } = await run(verb)
      expect(stderr).toMatch(new RegExp(`^\\[FAIL\\] ${verb[0]} — .*jobs\\.json.* — .*\\n$`))
    }
    expect(fingerprintOf(home)).toEqual(before)
  })

  test('the interval follows the configuration; while that does not load, it is the default', async () => {
    rig.setConfig({ poll_interval_seconds: 400 })
    await run(install)
    expect(jobs()[0]).toMatchObject({ schedule: { minutes: 7 } })
    rig.setConfig({ poll_interval_seconds: 'often' })
    const { code, stdout } = await run(install)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/hint: The configuration does not load/),
    ])
    expect(jobs()[0]).toMatchObject({ schedule: { minutes: 2 } })
    rig.setConfig({ poll_interval_seconds: 120 })
  })

  test('without a beat of the gateway it says that nothing fires; with one it does not', async () => {
    expect((await run(install)).stdout).toMatch(/hint: Nothing fires until the gateway runs/)
    writeFileSync(at('cron', 'ticker_heartbeat'), '')
    expect((await run(install)).stdout).not.toMatch(/hint/)
    const old = Date.now() / 1000 - 300
    utimesSync(at('cron', 'ticker_heartbeat'), old, old)
    expect((await run(install)).stdout).toMatch(/Nothing fires/)
  })

  test('before setup there is nothing to schedule', async () => {
    rmSync(at('plugins'), { recursive: true })
    const { code, stderr } = await run(install)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^\[FAIL\] cron-install — .* — Run: hermes caduceus setup\n$/),
    ])
    expect(existsSync(at('scripts'))).toBe(false)
  })

  test.each([
    ['HERMES_HOME', /HERMES_HOME is not set/],
    ['CADUCEUS_HERMES_BIN', /"hermes" was not found/],
  ])(
    'outside the host (%s is missing) it names the other ways and leaves no trace',
    async (name, reason) => {
      const value = rig.env[name] ?? ''
      Reflect.deleteProperty(rig.env, name)
      const { code, stderr } = await run(install)
      rig.env[name] = value
      expect(code).toBe(1)
      expect(stderr).toMatch(reason)
      expect(stderr).toMatch(/caduceus daemon.*systemd timer.*crontab.*docs\/installation\.md/)
      expect(existsSync(at('scripts'))).toBe(false)
    },
  )
})

/** Processes of the stand-in for this home. */
function callsOfHost(): readonly number[] {
  return listProcesses()
    .map(({ pid }) => pid)
    .filter(
      (pid) => commandLineOf(pid).includes(STANDIN) && environmentOf(pid)?.['HERMES_HOME'] === home,
    )
}

/** Processes of this rig that carry out a command. */
function programsAt(command: string): readonly number[] {
  return listProcesses()
    .filter(({ pid, isZombie }) => {
      const [, program, verb] = commandLineOf(pid)
      const isOurs = environmentOf(pid)?.['HOME'] === rig.env['HOME']
      return !isZombie && program === PROGRAM && verb === command && isOurs
    })
    .map(({ pid }) => pid)
}

describe('a tick of the scheduler', () => {
  test('it is silent, and the run it started holds none of its pipes', async () => {
    setUp()
    await run(['cron-install'])
    await rig.openIssue()
    // As the scheduler does it: its environment, pipes it reads to their end, and a pipe it forgot.
    const child = spawn('bash', [wrapper()], {
      env: { ...rig.env, HERMES_HOME: '/elsewhere' },
      stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe'],
    })
    const said: Buffer[] = []
    const ends = [1, 2, 4].map(async (fd) => {
      const stream = child.stdio[fd] as NodeJS.ReadableStream
      stream.on('data', (chunk: Buffer) => said.push(chunk))
      await once(stream, 'end')
    })
    const [code] = (await once(child, 'exit')) as [number]
    await Promise.all(ends)
    expect([code, Buffer.concat(said).toString()]).toEqual([0, ''])
    await startedWorkers(rig, 1)
    expect(rig.journals().map(({ stage }) => stage)).not.toContain('settled')
    openGate(rig)
    await allSettled(rig)
    child.stdin?.destroy()
    expect(rig.entry(1)).toMatchObject({ phase: 'awaiting_review' })
  })
})

describe('the daemon', () => {
  type Daemon = Readonly<{
    pid: number
    /** Everything it has said so far, from both streams. */
    said: () => string
    lines: (text: string) => number
    ended: Promise<number | null>
  }>
  let daemons: number[] = []

  function start(...args: readonly string[]): Daemon {
    const child = spawn(process.execPath, [PROGRAM, 'daemon', ...args], {
      env: rig.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        said += chunk.toString()
      })
    }
    const pid = child.pid ?? 0
    daemons.push(pid)
    const ended = once(child, 'close').then(([code]) => code as number | null)
    const lines = (text: string): number =>
      said.split('\n').filter((line) => line.includes(text)).length
    return { pid, said: () => said, lines, ended }
  }
  const ticks = (): readonly number[] => programsAt('run')
  const interval = async (daemon: Daemon, seconds: number): Promise<void> => {
    const before = daemon.lines('the interval is')
    rig.setConfig({ poll_interval_seconds: seconds })
    await waitUntil('a beat', () => daemon.lines('the interval is') > before)
  }

  beforeEach(() => {
    rig.setConfig({ poll_interval_seconds: 1, drain_timeout_seconds: 30 })
  })
  afterEach(async () => {
    for (const pid of [...daemons, ...ticks()]) if (identifyProcess(pid)) killQuietly(pid)
    daemons = []
    await waitUntil('all have left', () => ticks().length === 0)
  })

  test('it works at once and again and again, listens to nobody, and leaves in order', async () => {
    const daemon = start()
    await waitUntil('it has polled', () => existsSync(rig.layout.meta) && ticks().length > 0)
    const number = await rig.openIssue()
    await waitUntil('the issue is done', () => rig.entry(number)?.phase === 'awaiting_review')
    expect(listenersOf(daemon.pid)).toEqual([])
    process.kill(daemon.pid, 'SIGTERM')
    expect(await daemon.ended).toBe(0)
    expect(daemon.said().split('\n')).toEqual([
      `caduceus: daemon ${daemon.pid} runs a tick every 1 s (state in ${rig.layout.stateDir})`,
      'caduceus: daemon is stopping; a tick at work may finish, and runs go on',
      'caduceus: daemon stopped',
      '',
    ])
    expect(ticks()).toEqual([])
  })

  test('a second one refuses and names the first; when that was killed, there is room', async () => {
    const first = start()
    await waitUntil('it has started', () => first.lines('runs a tick') === 1)
    const { code, stderr } = await run(['daemon'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`process id ${first.pid} already`)])
    process.kill(first.pid, 'SIGKILL')
    await first.ended
    const second = start()
    await waitUntil('it has started', () => second.lines('runs a tick') === 1)
    process.kill(second.pid, 'SIGINT')
    expect(await second.ended).toBe(0)
  })

  test('a tick that is killed is told, and the next one comes', async () => {
    const daemon = start('--json')
    const tick = await waitUntil('a tick', () => ticks()[0])
    killQuietly(tick)
    await waitUntil('the next tick', () => ticks().some((pid) => pid !== tick))
    await waitUntil('it is told', () => daemon.lines('ended with SIGKILL') === 1)
    process.kill(daemon.pid, 'SIGTERM')
    expect(await daemon.ended).toBe(0)
    const events = daemon.said().trim().split('\n')
    expect(events.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
      'started',
      'problem',
      'stopping',
      'stopped',
    ])
  })

  test('a configuration that breaks is told once, and work goes on when it is mended', async () => {
    const daemon = start()
    await waitUntil('it has started', () => daemon.lines('runs a tick') === 1)
    rig.setConfig({ worker_parallelism: 'many' })
    await waitUntil('it is told', () => daemon.lines('worker_parallelism') === 1)
    const seen = new Set<number>()
    await waitUntil('two more ticks', () => {
      for (const pid of ticks()) seen.add(pid)
      return seen.size > 2
    })
    expect(daemon.lines('worker_parallelism')).toBe(1)
    rig.setConfig({ worker_parallelism: 2 })
    const number = await rig.openIssue()
    await waitUntil('the issue is done', () => rig.entry(number)?.phase === 'awaiting_review')
  })

  test('ticks do not overlap, and a new interval counts from the next beat', async () => {
    const daemon = start()
    const tick = await waitUntil('a tick', () => ticks()[0])
    process.kill(tick, 'SIGSTOP')
    for (const seconds of [2, 1, 2, 1]) await interval(daemon, seconds)
    expect(ticks()).toEqual([tick])
    process.kill(tick, 'SIGCONT')
    await waitUntil('the next tick', () => ticks().some((pid) => pid !== tick))
  })

  test('a tick that does not finish in the drain time is ended', async () => {
    rig.setConfig({ drain_timeout_seconds: 1 })
    const daemon = start()
    const tick = await waitUntil('a tick', () => ticks()[0])
    process.kill(tick, 'SIGSTOP')
    process.kill(daemon.pid, 'SIGTERM')
    expect(await daemon.ended).toBe(0)
    expect(identifyProcess(tick)).toBeNull()
  })

  test('a second signal leaves at once', async () => {
    const daemon = start()
    const tick = await waitUntil('a tick', () => ticks()[0])
    process.kill(tick, 'SIGSTOP')
    process.kill(daemon.pid, 'SIGTERM')
    await waitUntil('it drains', () => daemon.lines('is stopping') === 1)
    process.kill(daemon.pid, 'SIGTERM')
    expect(await daemon.ended).toBe(0)
    expect(daemon.lines('daemon stopped')).toBe(0)
    expect(identifyProcess(tick)).not.toBeNull()
  })

  test('without a configuration it does not start', async () => {
    const { code, stdout, stderr } = await run(['daemon'], { CADUCEUS_CONFIG: '/nowhere.yaml' })
    rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'config.yaml')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^caduceus: The configuration \/nowhere\.yaml [^\n]+\n$/)
  })
})

/** Sockets of a process that wait for a connection (proc(5)). */
function listenersOf(pid: number): readonly string[] {
  const waiting = ['tcp', 'tcp6'].flatMap((name) =>
    readFileSync(`/proc/net/${name}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A')
      .map((fields) => `socket:[${fields[9]}]`),
  )
  const held = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return '' // closed meanwhile
    }
  })
  return held.filter((target) => waiting.includes(target))
}
