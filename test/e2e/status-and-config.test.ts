import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { newMeta } from '../../daemon/core/meta.ts'
import { newEntry, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { waitUntil } from '../support/processes.ts'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  errorsOf,
  fingerprintOf,
  gatedBridge,
  killNow,
  newestRun,
  openGate,
  processesOfRun,
  QUIET,
  reportOf,
  startedWorkers,
} from '../support/program-views.ts'

describe('what does status tell of stored state?', () => {
  let rig: ProgramRig

  const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
  const inMinutes = (minutes: number): string =>
    new Date(Date.now() + minutes * 60_000).toISOString()
  const error = (message: string, minute: number) => ({ code: 'x', message, at: at(minute) })

  const entry = (number: number, fields: Partial<QueueEntry>): QueueEntry => ({
    ...newEntry({ owner: 'Octo', name: 'App', number }, 'code', at(number), at(number)),
    ...fields,
  })

  /** What ticks and runs of the past have left. */
  const ENTRIES: readonly QueueEntry[] = [
    entry(10, {}),
    entry(2, { queuedAt: at(11) }),
    entry(3, { nextAttemptAt: inMinutes(5), attempts: 1, lastError: error('It failed.', 30) }),
    entry(4, {
      phase: 'in_progress',
      runId: '01AAAAAAAAAAAAAAAAAAAAAAAA',
      lastError: error('Old.', 40),
    }),
    entry(5, { phase: 'previewed' }),
    entry(6, { phase: 'awaiting_review', pull: { number: 60, url: 'u' } }),
    entry(7, { phase: 'done', lastError: error('Over.', 41) }),
    entry(8, { phase: 'skipped', lastError: error('Over too.', 42) }),
    entry(9, { phase: 'failed', lastError: error('It failed for good.', 20) }),
    entry(1, {
      phase: 'needs_attention',
      lastError: error('A rule was broken.', 25),
      blocked: { source: 'publish/policy', hint: 'Look at it.' },
    }),
  ]

  const openUntil = inMinutes(20)
  const CIRCUIT = {
    failures: 3,
    until: openUntil,
    lastError: error('git fetch failed.', 40),
  }

  const seed = async (entries: readonly QueueEntry[], limitedUntil: string): Promise<void> => {
    const store = openJsonStore({ clock: systemClock }, rig.layout.stateDir)
    await store.changeQueue(() => ({
      state: {
        circuits: { 'repository:octo/other': CIRCUIT },
        entries: Object.fromEntries(entries.map((one) => [`octo/app#${one.key.number}`, one])),
      },
      value: undefined,
    }))
    await store.changeMeta(() => ({
      state: {
        ...newMeta('4f8b3c4e-8a53-4b7e-9d3a-0c2a5b9e1f00'),
        lastTickStarted: at(50),
        lastTickFinished: at(51),
        lastPollStarted: at(50),
        lastOutcome: 'idle304',
        lastHttpStatus: 304,
        lastError: error('The tick failed.', 45),
        rateLimit: { limit: 5000, remaining: 17, resetAt: at(59), observedAt: at(51) },
        wait: { kind: 'secondary', until: limitedUntil },
        repositories: {
          'octo/app': { sweptAt: at(50), problem: error('It has no clone.', 15) },
          'octo/unwatched': { sweptAt: null, problem: error('Nobody asks.', 55) },
        },
        diagnostics: [
          { at: at(33), code: 'ambiguous-labels', issue: 'Octo/App#11', message: 'Both labels.' },
        ],
      },
      value: undefined,
    }))
  }

  const limitedUntil = inMinutes(10)

  beforeAll(async () => {
    rig = await openProgramRig({ config: { worker_parallelism: 3, fancy: 1 } })
    // Neither is needed to look.
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.setConfig({ api_base: 'http://127.0.0.1:1' })
  })
  afterAll(async () => {
    await rig.close()
  })

  test('before the first run there is nothing to tell, which is an exit code of its own', async () => {
    expect(await rig.run('status')).toEqual({
      code: 3,
      stdout: `caduceus status\n  state dir: ${rig.layout.stateDir}\n  no_state: Nothing has run yet. Run one tick: caduceus run\n`,
      stderr: '',
    })
    const { code, stdout } = await rig.run('status', '--json')
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ diagnostic: 'no_state', report: null })
    expect(existsSync(rig.layout.stateDir)).toBe(false)
  })

  test('the text has a fixed order, all eight phases, and errors with their dates, newest first', async () => {
    await seed(ENTRIES, limitedUntil)
    const { code, stdout, stderr } = await rig.run('status')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(`caduceus status
  state dir: ${rig.layout.stateDir}
  last tick started: 2026-01-01T00:50:00.000Z
  last tick finished: 2026-01-01T00:51:00.000Z
  last outcome: Idle304
  last http status: 304
  next allowed poll: ${limitedUntil}
  GitHub limits requests until: ${limitedUntil}
  pool state: 1 of 3 running
  phases:
    awaiting_review: 1
    done: 1
    failed: 1
    in_progress: 1
    needs_attention: 1
    previewed: 1
    queued: 3
    skipped: 1
  next head: Octo/App#10
  live workers: (none)
  circuits:
    repository:octo/other: open until ${openUntil} after 3 failures (git fetch failed.)
  blocked issues:
    octo/app#1: publish/policy
      reason: A rule was broken.
      next: Look at it. To try again: caduceus queue reset Octo/App#1
  notes:
    2026-01-01T00:33:00.000Z Octo/App#11: Both labels.
  configuration warnings:
    fancy: found an unknown key; wanted: a key that docs/configuration.md lists. Remove it. It is ignored.
  recent errors:
    2026-01-01T00:45:00.000Z daemon: The tick failed.
    2026-01-01T00:30:00.000Z Octo/App#3: It failed.
    2026-01-01T00:25:00.000Z Octo/App#1: A rule was broken.
    2026-01-01T00:20:00.000Z Octo/App#9: It failed for good.
    2026-01-01T00:15:00.000Z octo/app: It has no clone.
`)
  })

  test('the same as JSON', async () => {
    const { report, ...head } = await rig.status()
    expect(head).toEqual({
      app_version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      version: '1.0.0',
      state_dir: rig.layout.stateDir,
      diagnostic: null,
      message: null,
    })
    expect(report).toEqual({
      version: '1.0.0',
      state_dir: rig.layout.stateDir,
      last_tick_started: at(50),
      last_tick_finished: at(51),
      last_outcome: 'idle304',
      last_http_status: 304,
      next_allowed_poll_at: limitedUntil,
      rate_limited_until: limitedUntil,
      phases: {
        queued: 3,
        in_progress: 1,
        previewed: 1,
        done: 1,
        failed: 1,
        skipped: 1,
        needs_attention: 1,
        awaiting_review: 1,
      },
      next_head: 'Octo/App#10',
      next_head_earliest_eligibility: null,
      recent_errors: expect.any(Array),
      blocked_issues: [
        {
          issue_key: 'octo/app#1',
          blocked_source: 'publish/policy',
          blocked_recovery_hint: 'Look at it. To try again: caduceus queue reset Octo/App#1',
          last_error: 'A rule was broken.',
        },
      ],
      rate_limit: { limit: 5000, remaining: 17, reset_at: at(59), observed_at: at(51) },
      live_workers: [],
      diagnostics: [
        { at: at(33), code: 'ambiguous-labels', issue: 'Octo/App#11', message: 'Both labels.' },
      ],
      configuration_warnings: [expect.stringMatching(/^fancy: /)],
      circuits: [
        {
          name: 'repository:octo/other',
          state: 'open',
          failures: 3,
          until: openUntil,
          last_error: 'git fetch failed.',
        },
      ],
      state_corrupt: false,
      readiness: {
        bridge: 'present',
        harness: 'not-applicable',
        provider: 'not-applicable',
      },
      pool_state: { running: 1, parallelism: 3 },
    })
  })

  test('with all queued issues backed off it tells when the first one is due', async () => {
    const [first, second] = [inMinutes(7), inMinutes(3)]
    const waits = [entry(1, { nextAttemptAt: first }), entry(2, { nextAttemptAt: second })]
    await seed(waits, limitedUntil)
    const line = `  next head: (all backed off) earliest eligibility = ${second}\n`
    expect((await rig.run('status')).stdout).toContain(line)
  })

  test('it has at most ten errors', async () => {
    const many = Array.from({ length: 30 }, (_, index) =>
      entry(index + 1, { phase: 'failed', lastError: error(`Error ${index}.`, index) }),
    )
    await seed(many, limitedUntil)
    const errors = await errorsOf(rig)
    expect(errors).toHaveLength(10)
    expect(errors.slice(0, 2)).toEqual(['daemon: The tick failed.', 'Octo/App#30: Error 29.'])
  })
})

describe('what does status tell while the program works?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('every --json that is promised carries the version of its shape', async () => {
    rig.setBridge('#!/bin/sh\nexit 1\n')
    await rig.tick()
    for (const args of [
      ['status'],
      ['doctor', '--offline'],
      ['config', 'show'],
      ['config', 'validate'],
      ['queue', 'list'],
      ['queue', 'show', 'octo/app#1'],
    ]) {
      const { stdout } = await rig.run(...args, '--json')
      const { version } = JSON.parse(stdout) as { version?: string }
      expect({ args, version }).toEqual({ args, version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
    }
  })

  test('a run is live as long as its claim is held, and is not any more when its processes are gone', async () => {
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await startedWorkers(rig, 1)
    const { runner, supervisor, worker } = await processesOfRun(rig)
    const { heartbeat } = rig.layout.run(newestRun(rig).runId)
    await waitUntil('the heartbeat is there', () => existsSync(heartbeat))
    const before = fingerprintOf(rig.dir)
    const { live_workers: live, pool_state, phases } = await reportOf(rig)
    const { stdout } = await rig.run('status')
    expect(fingerprintOf(rig.dir)).toEqual(before)

    const [journal] = rig.journals()
    expect(live).toEqual([
      {
        run_id: journal?.runId,
        issue: 'octo/app#1',
        pid: runner,
        stage: 'launching',
        started_at: journal?.createdAt,
        updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
        transcript_path: rig.layout.run(journal?.runId ?? '').transcript,
        freshness: 'fresh',
      },
    ])
    expect({ pool_state, running: phases.in_progress }).toEqual({
      pool_state: { running: 1, parallelism: 1 },
      running: 1,
    })
    expect(stdout).toContain(
      `  live workers: 1\n    ${journal?.runId} octo/app#1 pid ${runner} launching fresh`,
    )

    await killNow(runner, supervisor, worker)
    expect(await reportOf(rig)).toMatchObject({ live_workers: [], phases: { in_progress: 1 } })
    expect(existsSync(heartbeat)).toBe(true)
    openGate(rig)
    await rig.tick()
  })

  test('a limit of GitHub is told with its end and is no error; afterwards it is gone', async () => {
    openGate(rig)
    const route = 'GET /repos/{owner}/{repo}/issues'
    const action = { kind: 'primary-limit', resetInSeconds: 600 } as const
    await rig.control('addFault', { route, occurrence: 1, action })
    expect(await rig.tick()).toEqual(QUIET)
    const { rate_limited_until: until, last_outcome, recent_errors } = await reportOf(rig)
    expect({ last_outcome, recent_errors }).toEqual({
      last_outcome: 'rate_limited',
      recent_errors: [],
    })
    const inSeconds = (Date.parse(until ?? '') - rig.clock.now()) / 1000
    expect(inSeconds).toBeGreaterThan(570)
    expect(inSeconds).toBeLessThan(620)
    expect((await rig.run('status')).stdout).toContain(`GitHub limits requests until: ${until}\n`)

    await rig.control('clearRequests')
    expect(await rig.tick()).toEqual(QUIET)
    expect((await rig.control('readRequests', {})).total).toBe(0)

    rig.clock.advance(620_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(await reportOf(rig)).toMatchObject({
      rate_limited_until: null,
      last_outcome: 'processed',
    })
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('an error is dated, and a later success clears it', async () => {
    openGate(rig)
    const route = 'GET /repos/{owner}/{repo}/issues'
    const action = { kind: 'html', status: 502 } as const
    await rig.control('addFault', { route, occurrence: 1, action })
    expect((await rig.tick()).code).toBe(1)
    const [told] = (await reportOf(rig)).recent_errors
    expect(told).toMatch(
      /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z octo\/app: GitHub answered 502 to /,
    )
    expect(await rig.tick()).toEqual(QUIET)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })
})

const TOKEN = ['gh', 'p_', 'c'.repeat(36)].join('')
const PASTED = ['sk', 'p'.repeat(30)].join('-')

type Shown = Readonly<{
  path: string
  section: string | null
  values: readonly Readonly<{ key: string; value: unknown; origin: string }>[]
}>

describe('what do the config commands show and check?', () => {
  let rig: ProgramRig
  let given: Readonly<{ env: Record<string, string>; config: object }>

  const path = (): string => join(rig.dir, 'config.yaml')
  const configure = (keys: object): void =>
    writeFileSync(path(), JSON.stringify({ ...given.config, ...keys }))
  const jsonOf = async <T>(...args: readonly string[]): Promise<T> => {
    const { stdout, stderr } = await rig.run(...args, '--json')
    expect(stderr).toBe('')
    return JSON.parse(stdout) as T
  }

  beforeAll(async () => {
    rig = await openProgramRig({ clone: false })
    const config = JSON.parse(readFileSync(path(), 'utf8')) as object
    given = { env: { ...rig.env }, config }
  })
  beforeEach(() => {
    for (const name of Object.keys(rig.env)) delete rig.env[name]
    Object.assign(rig.env, given.env)
    configure({})
  })
  afterAll(async () => {
    // None of them needs or makes any state.
    expect(existsSync(rig.layout.stateDir)).toBe(false)
    await rig.close()
  })

  test('config show has every key with its value in force and where it comes from', async () => {
    configure({ poll_interval_seconds: 60, workdir_base: '~/code', dry_run: false })
    rig.env['CADUCEUS_DRY_RUN'] = 'yes'
    const { code, stdout } = await rig.run('config', 'show')
    expect(code).toBe(0)
    const [head, ...lines] = stdout.trimEnd().split('\n')
    expect(head).toBe(`# ${path()}`)
    expect(lines).toEqual(
      expect.arrayContaining([
        'watched_repos: ["octo/app"]',
        'poll_interval_seconds: 60',
        `workdir_base: "${join(rig.dir, 'home', 'code')}"`,
        'dry_run: true  # environment',
        'close_issue: "finalize"  # default',
        'worker_timeout_seconds: 3600  # default',
        'max_issues_per_tick: 4  # default',
        `log_path: "${rig.layout.log}"  # default`,
        'github_token: null  # default',
      ]),
    )
    const { path: file, section, values } = await jsonOf<Shown>('config', 'show')
    expect({ file, section }).toEqual({ file: path(), section: null })
    const { properties } = await jsonOf<{ properties: object }>('config', 'schema')
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(values.map(({ key }) => key)))
    expect(values).toContainEqual({ key: 'dry_run', value: true, origin: 'environment' })
    expect(lines).toHaveLength(values.length)
  })

  test('config show never shows a token, wherever it was put', async () => {
    configure({
      github_token: TOKEN,
      worker_command: [join(rig.dir, 'bridge'), `--key=${PASTED}`],
      worker_instruction: `Use ${TOKEN}.`,
    })
    for (const args of [
      ['config', 'show'],
      ['config', 'show', '--json'],
    ]) {
      const { code, stdout, stderr } = await rig.run(...args)
      expect(code).toBe(0)
      for (const secret of [TOKEN, PASTED, rig.token]) expect(stdout + stderr).not.toContain(secret)
      expect(stdout).toContain('<redacted>')
    }
  })

  test('config show names the section of a configuration inside another', async () => {
    const home = join(rig.dir, 'hermes')
    mkdirSync(home)
    const file = join(home, 'config.yaml')
    writeFileSync(file, 'model: x\ncaduceus:\n  watched_repos: [octo/app]\n')
    delete rig.env['CADUCEUS_CONFIG']
    rig.env['HERMES_HOME'] = home
    const { code, stdout } = await rig.run('config', 'show')
    expect(code).toBe(0)
    expect(stdout).toContain(`# ${file} (section caduceus)\n`)
    expect(stdout).toContain(`worker_command: "${home}/caduceus/worker-bridge.py"  # default\n`)
    expect(stdout).toContain(`state_dir: "${home}/`)
  })

  test('config validate accepts, with warnings and the exit code 0', async () => {
    configure({ watched_repos: [], fancy: 1 })
    const { code, stdout } = await rig.run('config', 'validate')
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      path(),
      expect.stringMatching(/^ {2}warning: fancy: found an unknown key; wanted: /),
      expect.stringMatching(/^ {2}warning: watched_repos: found an empty list; wanted: /),
      'The configuration is valid.',
      '',
    ])
    expect(await jsonOf('config', 'validate')).toMatchObject({
      valid: true,
      path: path(),
      error: null,
      problems: [],
      warnings: [{ path: 'fancy' }, { path: 'watched_repos' }],
    })
  })

  test('config validate refuses with all problems and the exit code 1, and shows no token', async () => {
    configure({
      poll_interval_seconds: 0,
      api_base: 'http://example.com',
      github_token: `${TOKEN} x`,
    })
    const { code, stdout } = await rig.run('config', 'validate')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ {2}problem: poll_interval_seconds: found 0; wanted: at least 1\./m)
    expect(stdout).toMatch(/^ {2}problem: api_base: /m)
    expect(stdout).toMatch(/^ {2}problem: github_token: found a value that is not shown; /m)
    expect(stdout).toMatch(/The configuration would not load\.\n$/)
    expect(stdout).not.toContain(TOKEN)

    const json = await rig.run('config', 'validate', '--json')
    expect(json.code).toBe(1)
    const { valid, problems } = JSON.parse(json.stdout) as {
      valid: boolean
      problems: readonly { path: string }[]
    }
    expect(valid).toBe(false)
    expect(problems.map((problem) => problem.path).sort()).toEqual([
      'api_base',
      'github_token',
      'poll_interval_seconds',
    ])
  })

  test('config validate says why when there is nothing to check', async () => {
    writeFileSync(path(), 'a: [')
    const malformed = await rig.run('config', 'validate')
    expect(malformed.code).toBe(1)
    expect(malformed.stdout).toContain(`${path()} cannot be read: line 1, column`)
    rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'none.yaml')
    const missing = await rig.run('config', 'validate', '--json')
    expect(missing.code).toBe(1)
    expect(JSON.parse(missing.stdout)).toMatchObject({
      valid: false,
      path: null,
      error: expect.stringContaining('there is no such file'),
      problems: [],
    })
  })

  test('config schema is the JSON schema of the configuration and needs none', async () => {
    rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'none.yaml')
    const { code, stdout } = await rig.run('config', 'schema')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: 'http://json-schema.org/draft-07/schema#',
      properties: { watched_repos: { type: 'array' }, executor_mode: { default: 'trusted_host' } },
    })
    expect(await jsonOf('config', 'schema')).toEqual(JSON.parse(stdout))
  })

  test.each([
    ['config nothing', 'config nothing'],
    ['nothing', 'nothing'],
    ['help nothing', 'nothing'],
  ])('%s: there is no such command, which is a usage error', async (line, name) => {
    expect(await rig.run(...line.split(' '))).toEqual({
      code: 2,
      stdout: '',
      stderr: `caduceus: There is no command "${name}". See: caduceus --help\n`,
    })
  })

  test('an option that does not exist is one, too', async () => {
    const { code, stdout, stderr } = await rig.run('config', 'show', '--nothing')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('--nothing')
  })

  test('help may be asked for by a word, and tells what a bare call does', async () => {
    const { code, stdout } = await rig.run('help')
    expect({ code, stdout }).toEqual({ code: 0, stdout: (await rig.run('--help')).stdout })
    expect(stdout).toContain('Without a command it does what run does')
    expect((await rig.run('help', 'queue')).stdout).toContain('caduceus queue COMMAND')
  })
})
