import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { DoctorReport } from '../../daemon/doctor/examine.ts'
import { wrapperPartsOf, writeWrapper } from '../../daemon/host/cron-wrapper.ts'
import { requireHost } from '../../daemon/host/hermes-cron.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { prepareDirectories } from '../../daemon/state/prepare-directories.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import {
  BOT,
  GOOD_BRIDGE,
  LABELS,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import { fingerprintOf } from '../support/program-views.ts'

type Row = DoctorReport['checks'][number]

let rig: ProgramRig

const open = async (options: RigOptions = {}): Promise<void> => {
  rig = await openProgramRig(options)
}

afterEach(async () => {
  await rig.close()
})

/** `doctor --json …`, with its exit code where it has to be. */
const examine = async (...args: readonly string[]): Promise<DoctorReport> => {
  const { code, stdout, stderr } = await rig.run('doctor', '--json', ...args)
  expect(stderr).toBe('')
  const report = JSON.parse(stdout) as DoctorReport
  expect(report.exitCode).toBe(code)
  return report
}

const rowsOf = (report: DoctorReport, name: string): readonly Row[] =>
  report.checks.filter((check) => check.name === name)

/** The findings of the verdict, as `name: detail`. */
const told = (report: DoctorReport, status: Row['status']): readonly string[] =>
  report.checks
    .filter((check) => check.status === status)
    .map(({ name, detail }) => `${name}: ${detail}`)

const requests = async () => (await rig.control('readRequests', {})).entries

const executable = (name: string, text: string): void => {
  const path = join(rig.dir, 'bin', name)
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
}

const isRoot = process.geteuid?.() === 0
const bridgePath = (): string => join(rig.dir, 'bridge')
const modeOf = (path: string): number => statSync(path).mode & 0o777

describe('what does doctor say of a standalone installation?', () => {
  test('a healthy one has nothing wrong, is only read, and GitHub is never written to', async () => {
    await open()
    const before = fingerprintOf(rig.dir)
    const { code, stdout, stderr } = await rig.run('doctor')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => /^\[(?:WARN|FAIL)\]/.test(line))).toEqual([])
    expect(lines).toContain(`[OK] Clone octo/app — ${rig.clone}`)
    expect(lines).toContain('[OK] Token — from CADUCEUS_GITHUB_TOKEN')
    expect(lines).toContain('[OK] Push access octo/app — git may push, without a prompt')
    expect(lines.at(-1)).toMatch(/^\d+ ok, 0 to look at, 0 failed, \d+ skipped$/)
    expect(stdout).not.toContain(rig.token)
    expect(fingerprintOf(rig.dir)).toEqual(before)
    const sent = await requests()
    expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['GET']))
    expect(existsSync(rig.layout.stateDir)).toBe(false)
  })

  test('every check has its row in the report, whatever it found', async () => {
    await open()
    rig.setConfig({ poll_interval_seconds: 0 })
    const report = await examine()
    expect(report).toMatchObject({ version: '1.0.0', exitCode: 1, leftOut: [], fixes: null })
    const names = [...new Set(report.checks.map(({ name }) => name))]
    expect(names.join(', ')).toBe(
      [
        'Node, Build, Git, Bridge, Bridge template, Harness, Configuration, Executor, Configuration path',
        'Token, GitHub account, Rate budget, Permissions, Labels',
        'Clone, Default branch, Push access, Content',
        'State directory, State, File system, Free space, Runs, Last tick',
        'Host version, Gateway ticker, Gateway age, Cron job, Cron wrapper, Run scope, Schedule',
      ].join(', '),
    )
    for (const row of report.checks) {
      expect(row.detail).not.toBe('')
      if (row.status === 'fail') expect(row.next).not.toBeNull()
    }
    expect(rowsOf(report, 'Configuration')).toEqual([
      expect.objectContaining({ subject: 'poll_interval_seconds', status: 'fail' }),
    ])
    const { code, stdout } = await rig.run('doctor')
    expect(code).toBe(1)
    expect(stdout).toContain(`
[FAIL] Configuration poll_interval_seconds — found 0; wanted: at least 1
    next action: `)
    // What was not looked at takes no line.
    expect(stdout).not.toContain('SKIP')
    expect(stdout).toMatch(/\n\d+ ok, 0 to look at, 1 failed, \d+ skipped\n$/)
  })

  test('--offline sends nothing, and says what it left out', async () => {
    await open()
    // Git must not reach for it either.
    renameSync(rig.origin, `${rig.origin}.away`)
    const { code, stdout } = await rig.run('doctor', '--offline')
    expect(code).toBe(0)
    expect(stdout).toContain(
      'left out (--offline): GitHub account, Rate budget, Permissions, Labels, Default branch, Push access\n',
    )
    expect(stdout).toContain(`[OK] Clone octo/app — ${rig.clone}`)
    expect(await requests()).toEqual([])
    renameSync(`${rig.origin}.away`, rig.origin)
    const report = await examine('--offline')
    expect(report.leftOut).toContain('Push access')
    expect(rowsOf(report, 'Push access')[0]?.status).toBe('skipped')
  })

  type Trouble = Readonly<{
    check: string
    status: Row['status']
    exitCode: 0 | 1 | 2
    detail: RegExp
    next: RegExp
    options?: RigOptions
    arrange?: () => unknown
  }>

  const git = (...args: readonly string[]) => rig.git('-C', rig.clone, ...args)
  const state = (): void => prepareDirectories(rig.layout.stateDir)

  // biome-ignore format: one trouble after another
  const TROUBLES: Readonly<Record<string, Trouble>> = {
    'an unknown key': { check: 'Configuration', status: 'warn', exitCode: 0, detail: /unknown key/, next: /./, arrange: () => rig.setConfig({ fancy: 1 }) },
    'an executor that this version does not have': { check: 'Executor', status: 'fail', exitCode: 1, detail: /executor_mode oci is not available/, next: /trusted_host/, arrange: () => rig.setConfig({ executor_mode: 'oci', sandbox: { image: `a/b@sha256:${'0'.repeat(64)}` } }) },
    'no configuration': { check: 'Configuration', status: 'fail', exitCode: 1, detail: /no such file/, next: /config validate/, arrange: () => { rig.env['CADUCEUS_CONFIG'] = '/nowhere.yaml' } },
    'a git that is too old': { check: 'Git', status: 'fail', exitCode: 2, detail: /2\.30\.1.*too old/, next: /Install git 2\.32/, arrange: () => executable('git', 'echo git version 2.30.1') },
    'no bridge': { check: 'Bridge', status: 'fail', exitCode: 2, detail: /bridge/, next: /./, arrange: () => rmSync(bridgePath()) },
    'a bridge that may not be executed': { check: 'Bridge', status: 'fail', exitCode: 2, detail: /executable/, next: /chmod u\+x \S+bridge$/, arrange: () => chmodSync(bridgePath(), 0o644) },
    'a newer template of the bridge': { check: 'Bridge template', status: 'warn', exitCode: 0, detail: /bridge\.new/, next: /diff /, arrange: () => writeFileSync(`${bridgePath()}.new`, 'newer') },
    'a harness that is not there': { check: 'Harness', status: 'fail', exitCode: 2, detail: /no-such-harness.*PATH/, next: /Install it/, arrange: () => rig.setBridge('#!/usr/bin/env python3\n    command = ["no-such-harness", "run"]\n') },
    'no token': { check: 'Token', status: 'fail', exitCode: 1, detail: /No GitHub token/, next: /CADUCEUS_GITHUB_TOKEN/, arrange: () => { delete rig.env['CADUCEUS_GITHUB_TOKEN'] } },
    'a token that was revoked': { check: 'GitHub account', status: 'fail', exitCode: 1, detail: /rejected the token/, next: /Replace the token/, arrange: () => rig.control('revokeToken', { login: BOT }) },
    'a classic token without scopes': { check: 'GitHub account', status: 'fail', exitCode: 1, detail: /only the scopes gist/, next: /scope repo/, arrange: () => rig.control('addFault', { route: 'GET /user', action: { kind: 'answer', status: 200, body: { id: 1, login: BOT }, headers: { 'X-OAuth-Scopes': 'gist' } } }) },
    'an account that may only read': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /may not write/, next: /role Write/, arrange: () => rig.control('setRole', { repo: rig.repo, login: BOT, role: 'read' }) },
    'a token without issues': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /may not read issues \(issues=read\)$/, next: /read and write/, arrange: async () => {
      await rig.control('editRepository', { repo: rig.repo, isPrivate: true })
      await rig.control('createToken', { login: BOT, token: rig.token, permissions: { issues: 'none' } })
    } },
    'a renamed repository': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /it is called octo\/newname now/, next: /Watch it under its new name/, arrange: () => rig.control('renameRepository', { repo: rig.repo, to: 'octo/newname' }) },
    'an archived repository': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /archived/, next: /Stop watching/, arrange: () => rig.control('editRepository', { repo: rig.repo, isArchived: true }) },
    'a repository nobody knows': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /not found/, next: /./, arrange: () => rig.setConfig({ watched_repos: ['octo/none'] }) },
    'GitHub out of order': { check: 'Permissions', status: 'fail', exitCode: 1, detail: /502/, next: /Try again/, arrange: () => rig.control('addFault', { route: 'GET /repos/{owner}/{repo}', action: { kind: 'html' } }) },
    'GitHub that does not answer': { check: 'GitHub account', status: 'fail', exitCode: 1, detail: /no answer came in time/, next: /Try again/, options: { config: { http_timeout_seconds: 1 } }, arrange: () => rig.control('addFault', { route: 'GET /user', action: { kind: 'hang' } }) },
    'a repository found by discovery': { check: 'Clone', status: 'fail', exitCode: 1, detail: /octo\/more/, next: /git clone/, options: { config: { discover: true } }, arrange: async () => {
      await rig.control('createRepository', { repo: 'octo/more' })
      await rig.tick()
    } },
    'a limit': { check: 'Permissions', status: 'warn', exitCode: 0, detail: /until|wait/i, next: /./, arrange: () => rig.control('addFault', { route: 'GET /repos/{owner}/{repo}', action: { kind: 'secondary-limit' } }) },
    'little left of the rate budget': { check: 'Rate budget', status: 'warn', exitCode: 0, detail: /^\d+ of 5000 requests left/, next: /account/, arrange: () => rig.control('setRateLimit', { login: BOT, remaining: 100 }) },
    'no label': { check: 'Labels', status: 'warn', exitCode: 0, detail: /no label "only here"$/, next: /setup --create-labels/, arrange: () => rig.setConfig({ ticket_label_code: 'only here' }) },
    'a label that is nearly right': { check: 'Labels', status: 'warn', exitCode: 0, detail: /"🤖 fix-investigation", which does not count/, next: /Rename it/, arrange: async () => {
      rig.setConfig({ ticket_label_investigation: '🤖 fix-investigate' })
      await rig.control('createLabel', { repo: rig.repo, name: '🤖 fix-investigation' })
    } },
    'no watched repository': { check: 'Clone', status: 'warn', exitCode: 0, detail: /no repository is watched/, next: /watched_repos/, arrange: () => rig.setConfig({ watched_repos: [] }) },
    'no clone': { check: 'Clone', status: 'fail', exitCode: 1, detail: /octo\/app/, next: /git clone/, options: { clone: false } },
    'another origin': { check: 'Clone', status: 'fail', exitCode: 1, detail: /origin/, next: /./, arrange: () => git('remote', 'set-url', 'origin', '/srv/octo/other.git') },
    'an origin that cannot be read': { check: 'Default branch', status: 'fail', exitCode: 1, detail: /git/, next: /./, arrange: () => git('remote', 'set-url', 'origin', '/nowhere/octo/app.git') },
    'another default branch': { check: 'Default branch', status: 'warn', exitCode: 0, detail: /GitHub says trunk, .* main/, next: /origin/, arrange: () => rig.control('addFault', { route: 'GET /repos/{owner}/{repo}', action: { kind: 'alter', fields: { default_branch: 'trunk' } } }) },
    'a place to push to that is not there': { check: 'Push access', status: 'fail', exitCode: 1, detail: /git may not push: .*\/nowhere/, next: /without asking/, arrange: () => git('remote', 'set-url', '--push', 'origin', '/nowhere/octo/app.git') },
    'Git LFS': { check: 'Content', status: 'warn', exitCode: 0, detail: /LFS/, next: /./, options: { files: { '.gitattributes': '*.psd filter=lfs diff=lfs merge=lfs -text\n' } } },
    'submodules': { check: 'Content', status: 'warn', exitCode: 0, detail: /submodules/, next: /./, options: { files: { '.gitmodules': '[submodule "x"]\n' } } },
    'a folder of the state that is a link': { check: 'State directory', status: 'fail', exitCode: 1, detail: /symbolic link/, next: /state_dir/, arrange: () => { mkdirSync(rig.layout.stateDir, { mode: 0o700 }); symlinkSync('/nowhere', rig.layout.directories.runs) } },
    'a state directory open to others': { check: 'State directory', status: 'warn', exitCode: 0, detail: /open to others \(0755\)/, next: /doctor --fix/, arrange: () => { state(); chmodSync(rig.layout.stateDir, 0o755) } },
    'a state directory that may not be written': { check: 'State directory', status: 'fail', exitCode: 1, detail: /not readable and writable/, next: /doctor --fix/, arrange: () => { state(); chmodSync(rig.layout.directories.runs, 0o500) } },
    // Only root can leave such a file, so only root can try it.
    ...(isRoot && { 'state that was written as another user': { check: 'State directory', status: 'fail', exitCode: 1, detail: /state\.json belongs to the user with id 1234/, next: /chown/, arrange: () => { state(); writeFileSync(rig.layout.queue, '{}', { mode: 0o600 }); chownSync(rig.layout.queue, 1234, 1234) } } }),
    'state that is corrupt': { check: 'State', status: 'fail', exitCode: 1, detail: /not readable as state/, next: /backup/, arrange: () => { state(); writeFileSync(rig.layout.queue, 'x') } },
    'a run that nobody carries on': { check: 'Runs', status: 'warn', exitCode: 0, detail: /no process carries it on, for 2 h/, next: /caduceus run/, arrange: () => {
      openClaims({ clock: systemClock }, rig.layout.stateDir).take({ owner: 'octo', name: 'app', number: 7 }, '01AAAAAAAAAAAAAAAAAAAAAAAA')?.close()
      rig.clock.advance(7_200_000)
    } },
    'ticks that stopped': { check: 'Last tick', status: 'warn', exitCode: 0, detail: /^3 h ago/, next: /ticks are started/, arrange: async () => {
      await rig.tick()
      rig.clock.advance(10_800_000)
    } },
    'a tick that failed': { check: 'Last tick', status: 'warn', exitCode: 0, detail: /failed: /, next: /caduceus status/, arrange: async () => {
      const { id } = await rig.control('addFault', { action: { kind: 'html' } })
      await rig.tick()
      await rig.control('clearFaults', { id })
    } },
  }

  test.each(Object.entries(TROUBLES))('%s is told with what to do', async (_, trouble) => {
    await open(trouble.options)
    await trouble.arrange?.()
    const report = await examine()
    const row = rowsOf(report, trouble.check).find(({ status }) => status === trouble.status)
    expect(row).toBeDefined()
    expect(row?.detail).toMatch(trouble.detail)
    expect(row?.next).toMatch(trouble.next)
    expect(report.exitCode).toBe(trouble.exitCode)
    expect(JSON.stringify(report)).not.toContain(rig.token)
    expect((await requests()).filter(({ method }) => method !== 'GET')).toEqual([])
  })

  test('what lies in the state directory instead of files does not hold it up', async () => {
    await open()
    state()
    const { queue, meta, log, directories } = rig.layout
    for (const path of [queue, meta, log, join(directories.claims, `${'a'.repeat(64)}.claim`)]) {
      execFileSync('mkfifo', [path])
    }
    for (const path of [bridgePath(), `${bridgePath()}.new`]) {
      writeFileSync(path, '')
      truncateSync(path, 8 * 1024 ** 3)
    }
    const archive = join(rig.dir, 'support.json')
    const report = await examine('--bundle', archive, '--fix')
    expect(report.exitCode).toBe(1)
    expect(told(report, 'fail').join('\n')).toContain('not a regular file')
    expect(lstatSync(queue).isFIFO()).toBe(true)
    expect(readFileSync(archive, 'utf8')).toContain('not a regular file')
  })
})

describe('what does doctor --fix mend?', () => {
  test('permissions, the executable bit and missing folders, and nothing else', async () => {
    await open()
    await rig.tick()
    const { stateDir, queue, meta, directories, log } = rig.layout
    const config = join(rig.dir, 'config.yaml')
    chmodSync(stateDir, 0o755)
    chmodSync(meta, 0o644)
    chmodSync(bridgePath(), 0o640)
    chmodSync(log, 0o666)
    rmSync(directories.cache, { recursive: true })
    const content = [config, bridgePath(), meta].map((path) => readFileSync(path, 'utf8'))
    const clone = fingerprintOf(rig.clone)

    const { code, stdout } = await rig.run('doctor', '--offline', '--fix')
    expect(stdout.split('\n').filter((line) => line.startsWith('[FIXED]'))).toEqual([
      `[FIXED] made the missing folders of the state directory: ${directories.cache}`,
      `[FIXED] set the permissions of ${stateDir} to 0700`,
      `[FIXED] set the permissions of ${meta} to 0600`,
      `[FIXED] set the permissions of ${log} to 0600`,
      `[FIXED] made ${bridgePath()} executable`,
    ])
    // The checks ran after it.
    expect(stdout).not.toContain('[FAIL]')
    expect(code).toBe(0)
    expect([stateDir, directories.cache].map(modeOf)).toEqual([0o700, 0o700])
    expect([meta, log, bridgePath()].map(modeOf)).toEqual([0o600, 0o600, 0o740])
    expect([config, bridgePath(), meta].map((path) => readFileSync(path, 'utf8'))).toEqual(content)
    expect(modeOf(config)).not.toBe(0o600)
    expect(fingerprintOf(rig.clone)).toEqual(clone)
    expect(existsSync(queue)).toBe(false)
    expect((await rig.run('doctor', '--offline', '--fix')).stdout).toContain('Nothing to mend.\n')
  })

  test('what is a link, or corrupt, stays as it is', async () => {
    await open()
    const elsewhere = join(rig.dir, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o755 })
    prepareDirectories(rig.layout.stateDir)
    rmSync(rig.layout.directories.cache, { recursive: true })
    symlinkSync(elsewhere, rig.layout.directories.cache)
    writeFileSync(rig.layout.queue, 'x', { mode: 0o600 })
    const report = await examine('--offline', '--fix')
    expect(report).toMatchObject({ exitCode: 1, fixes: [] })
    expect(modeOf(elsewhere)).toBe(0o755)
    expect(readFileSync(rig.layout.queue, 'utf8')).toBe('x')
  })
})

describe('what is in a support archive?', () => {
  test('what helps, and none of the secrets that lie about', async () => {
    const planted = ['Planted', 'Secret', 'Value'].join('-')
    const shaped = ['gh', 'p_', 'B'.repeat(36)].join('')
    await open({
      config: {
        worker_env_allowlist: ['MY_SETTING'],
        worker_instruction: `Use ${shaped} and MY-${planted}-1.`,
        github_token: `token-${planted}`,
      },
    })
    rig.env['MY_SETTING'] = `MY-${planted}-1`
    rig.env['OPENAI_API_KEY'] = `OPENAI-${planted}-2`
    rig.env['GH_TOKEN'] = `GH-${planted}-3`
    await rig.openIssue({ title: 'A title that stays at home', body: 'A text that stays, too.' })
    rig.setConfig({ github_token: rig.token })
    await rig.tick()
    rig.setConfig({ github_token: `token-${planted}` })
    const lines = [
      `{"event":"x","note":"OPENAI-${planted}-2 GH-${planted}-3 ${shaped} ${rig.token}"}`,
      `{"event":"y","url":"https://user:${planted}@github.com/octo/app"}`,
      `{"event":"z","token":"token-${planted}"}`,
    ]
    writeFileSync(rig.layout.log, `${readFileSync(rig.layout.log, 'utf8')}${lines.join('\n')}\n`)

    const archive = join(rig.dir, 'support.json')
    const { code, stdout } = await rig.run('doctor', '--bundle', archive)
    expect(code).toBe(1)
    expect(stdout).toContain(`support archive: ${archive}`)
    expect(modeOf(archive)).toBe(0o600)
    const text = readFileSync(archive, 'utf8')
    for (const secret of [planted, shaped, rig.token, 'stays at home', 'stays, too']) {
      expect(text).not.toContain(secret)
    }
    const content = JSON.parse(text) as Record<string, unknown>
    expect(content).toMatchObject({
      format: 'caduceus-support',
      version: 1,
      versions: { caduceus: '0.1.0', node: process.versions.node },
      doctor: { exitCode: 1 },
      status: { report: { phases: { awaiting_review: 1 } } },
      journals: [
        { key: { owner: 'octo', name: 'app', number: 1 }, stage: 'settled', plan: 'code' },
      ],
    })
    expect(content['configuration']).toContainEqual({
      key: 'github_token',
      value: '<redacted>',
      origin: 'file',
    })
    expect(JSON.stringify(content['log'])).toContain('<redacted>')
  })

  test.each([
    ['a folder that is not there', 'missing', /missing is no folder/],
    ['a file as its folder', 'config.yaml', /config\.yaml is no folder/],
  ])('%s is told before anything is asked', async (_, folder, reason) => {
    await open()
    const archive = join(rig.dir, folder, 'support.json')
    const { code, stdout, stderr } = await rig.run('doctor', '--bundle', archive)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(reason)
    expect(await requests()).toEqual([])
  })

  test('a file that is there is not overwritten, and nothing is asked before', async () => {
    await open()
    const archive = join(rig.dir, 'support.json')
    writeFileSync(archive, 'mine')
    const { code, stdout, stderr } = await rig.run('doctor', '--bundle', archive)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`${archive} is there already`)
    expect(readFileSync(archive, 'utf8')).toBe('mine')
    expect(await requests()).toEqual([])
  })
})

describe('what does doctor say under Hermes?', () => {
  let home: string

  const inHome = (...parts: readonly string[]): string => join(home, ...parts)
  const write = (path: string, text: string): void => writeFileSync(inHome(path), text)
  const JOB = {
    id: 'abcdef012345',
    name: 'caduceus',
    script: 'caduceus-pulse.sh',
    no_agent: true,
    schedule: { kind: 'interval', minutes: 2, display: 'every 2m' },
    schedule_display: 'every 2m',
    enabled: true,
    state: 'scheduled',
    last_run_at: '2026-01-01T00:00:00+00:00',
    last_status: 'ok',
  }
  const launcher = (digest: string): string =>
    `#!/bin/sh\n# managed by caduceus: launcher of build ${digest}\n`
  const writeJobs = (...jobs: readonly object[]): void =>
    write('cron/jobs.json', JSON.stringify({ jobs }))
  const parts = () => wrapperPartsOf(requireHost(rig.env), process.execPath)
  const wrapper = (): string => inHome('scripts', 'caduceus-pulse.sh')
  const beat = (secondsAgo: number): void => {
    const at = Date.now() / 1000 - secondsAgo
    write('cron/ticker_heartbeat', String(at))
    utimesSync(inHome('cron', 'ticker_heartbeat'), at, at)
  }

  beforeEach(async () => {
    await open()
    home = join(rig.dir, 'hermes')
    mkdirSync(inHome('cron'), { recursive: true })
    const own = JSON.parse(readFileSync(join(rig.dir, 'config.yaml'), 'utf8')) as object
    write('config.yaml', JSON.stringify({ model: 'x', caduceus: own }))
    write('.env', `CADUCEUS_GITHUB_TOKEN=${rig.token}\n`)
    delete rig.env['CADUCEUS_CONFIG']
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.env['HERMES_HOME'] = home
    executable('hermes', 'echo "Hermes Agent v0.19.0"')
    mkdirSync(inHome('plugins', 'caduceus', 'bin'), { recursive: true })
    write('plugins/caduceus/bin/caduceus', launcher('0123456789abcdef'))
    chmodSync(inHome('plugins', 'caduceus', 'bin', 'caduceus'), 0o755)
    write('plugins/caduceus/bootstrap.mjs', "console.log('0123456789abcdef')")
    writeWrapper(parts())
    writeJobs(JOB)
    beat(30)
  })

  test('a healthy one has nothing wrong', async () => {
    const report = await examine()
    // Whether there is a service manager is the machine's affair.
    const warned = told(report, 'warn').filter((line) => !line.startsWith('Run scope'))
    expect({ warned, failed: told(report, 'fail') }).toEqual({ warned: [], failed: [] })
    expect(report.exitCode).toBe(0)
    expect(told(report, 'ok')).toEqual(
      expect.arrayContaining([
        'Token: from CADUCEUS_GITHUB_TOKEN, where a cron job finds it, too',
        expect.stringMatching(/^Host version: Hermes 0\.19\.0 at .*bin.hermes/),
        'Cron job: abcdef012345, every 2m, last run 2026-01-01T00:00:00+00:00',
      ]),
    )
  })

  test('what the host’s own variables say is shown nowhere', async () => {
    const planted = 'postgres-planted-value'
    write(
      '.env',
      `CADUCEUS_GITHUB_TOKEN=${rig.token}\nDATABASE=${planted}\nCADUCEUS_STATE_DIR=${rig.layout.stateDir}\n`,
    )
    writeJobs({ ...JOB, last_status: 'error', last_error: `no answer from ${planted}` })
    const archive = join(rig.dir, 'support.json')
    const { stdout } = await rig.run('doctor', '--bundle', archive)
    expect(stdout).toContain('failed: no answer from <redacted>')
    expect(stdout).toContain(rig.layout.stateDir)
    for (const text of [stdout, readFileSync(archive, 'utf8')]) expect(text).not.toContain(planted)
  })

  type Trouble = Readonly<{
    check: string
    status: Row['status']
    exitCode: 0 | 1 | 2
    detail: RegExp
    next: RegExp
    arrange: () => unknown
  }>

  // biome-ignore format: one trouble after another
  const TROUBLES: Readonly<Record<string, Trouble>> = {
    'no job': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /no job/, next: /cron-install/, arrange: () => writeJobs() },
    'no list of jobs': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /no job/, next: /cron-install/, arrange: () => rmSync(inHome('cron', 'jobs.json')) },
    'a list of jobs that is none': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /jobs\.json/, next: /./, arrange: () => write('cron/jobs.json', '{') },
    'two jobs': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /abcdef012345, fedcba543210/, next: /cron remove/, arrange: () => writeJobs(JOB, { ...JOB, id: 'fedcba543210' }) },
    'a job of the same name': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /starts something else/, next: /Rename/, arrange: () => writeJobs({ ...JOB, script: 'mine.sh' }) },
    'another interval': { check: 'Cron job', status: 'fail', exitCode: 1, detail: /another schedule/, next: /cron-install/, arrange: () => writeJobs({ ...JOB, schedule: { kind: 'interval', minutes: 9 } }) },
    'a paused job': { check: 'Cron job', status: 'warn', exitCode: 0, detail: /paused/, next: /cron resume abcdef012345/, arrange: () => writeJobs({ ...JOB, state: 'paused', enabled: false }) },
    'a job whose last run failed': { check: 'Cron job', status: 'warn', exitCode: 0, detail: /failed: it broke/, next: /caduceus run/, arrange: () => writeJobs({ ...JOB, last_status: 'error', last_error: 'it\nbroke' }) },
    'a job that the host has given up': { check: 'Cron job', status: 'warn', exitCode: 0, detail: /state error, so it does not run/, next: /cron list/, arrange: () => writeJobs({ ...JOB, state: 'error' }) },
    'a job that is overdue': { check: 'Cron job', status: 'warn', exitCode: 0, detail: /overdue by \d+ days/, next: /cron list/, arrange: () => writeJobs({ ...JOB, next_run_at: '2026-01-01T00:05:00+00:00' }) },
    'no wrapper': { check: 'Cron wrapper', status: 'fail', exitCode: 1, detail: /missing/, next: /cron-install/, arrange: () => rmSync(wrapper()) },
    'an old wrapper': { check: 'Cron wrapper', status: 'fail', exitCode: 1, detail: /not as this version/, next: /doctor --fix/, arrange: () => chmodSync(wrapper(), 0o700) },
    'a wrapper whose node has left': { check: 'Cron wrapper', status: 'fail', exitCode: 1, detail: /has left/, next: /doctor --fix/, arrange: () => writeWrapper({ ...parts(), node: '/nowhere/node' }) },
    'a foreign script': { check: 'Cron wrapper', status: 'fail', exitCode: 1, detail: /not ours/, next: /Move it away/, arrange: () => writeFileSync(wrapper(), 'echo mine\n') },
    'a dead ticker': { check: 'Gateway ticker', status: 'fail', exitCode: 2, detail: /last beat was 5 min ago/, next: /gateway/, arrange: () => beat(300) },
    'a ticker that fails at each beat': { check: 'Gateway ticker', status: 'fail', exitCode: 2, detail: /one without a fault was \d+ days ago/, next: /log/, arrange: () => {
      write('cron/ticker_last_success', '1700000000')
      utimesSync(inHome('cron', 'ticker_last_success'), 1_700_000_000, 1_700_000_000)
    } },
    'no gateway, no job': { check: 'Gateway ticker', status: 'fail', exitCode: 2, detail: /never run/, next: /gateway/, arrange: () => { writeJobs(); rmSync(inHome('cron', 'ticker_heartbeat')) } },
    'a gateway older than .env': { check: 'Gateway age', status: 'warn', exitCode: 0, detail: /\.env changed/, next: /Restart/, arrange: () => {
      write('gateway.pid', JSON.stringify({ pid: process.pid, kind: 'hermes-gateway' }))
      utimesSync(inHome('gateway.pid'), 1_700_000_000, 1_700_000_000)
    } },
    'a gateway older than the plugin': { check: 'Gateway age', status: 'warn', exitCode: 0, detail: /plugin\.yaml changed/, next: /Restart/, arrange: () => {
      write('plugins/caduceus/plugin.yaml', 'name: caduceus\n')
      write('gateway.pid', String(process.pid))
      for (const name of ['gateway.pid', '.env']) utimesSync(inHome(name), 1_700_000_000, 1_700_000_000)
    } },
    'a note of a gateway whose number is another process’s now': { check: 'Token', status: 'warn', exitCode: 0, detail: /cannot be seen/, next: /into .*\/\.env/, arrange: () => {
      write('.env', '')
      write('gateway.pid', JSON.stringify({ pid: process.pid, start_time: 1 }))
      rig.env['CADUCEUS_GITHUB_TOKEN'] = rig.token
    } },
    'an old host': { check: 'Host version', status: 'fail', exitCode: 2, detail: /0\.18\.1.*too old/, next: /0\.18\.2/, arrange: () => executable('hermes', 'echo v0.18.1') },
    'a host that is broken': { check: 'Host version', status: 'fail', exitCode: 2, detail: /does not tell/, next: /Mend/, arrange: () => executable('hermes', 'exit 1') },
    'a build of other sources': { check: 'Build', status: 'warn', exitCode: 0, detail: /build 0123456789abcdef is started, but the plugin is fedcba9876543210/, next: /hermes caduceus setup/, arrange: () => write('plugins/caduceus/bootstrap.mjs', "console.log('fedcba9876543210')") },
    'no build': { check: 'Build', status: 'fail', exitCode: 2, detail: /no built program/, next: /hermes caduceus setup/, arrange: () => rmSync(inHome('plugins', 'caduceus', 'bin'), { recursive: true }) },
    'a token that only the shell is known to have': { check: 'Token', status: 'warn', exitCode: 0, detail: /whether a cron job has it cannot be seen/, next: /CADUCEUS_GITHUB_TOKEN into .*\/\.env/, arrange: () => {
      write('.env', '')
      rig.env['CADUCEUS_GITHUB_TOKEN'] = rig.token
    } },
    'a token that the gateway does not have': { check: 'Token', status: 'fail', exitCode: 1, detail: /CADUCEUS_GITHUB_TOKEN is set in this shell, but a cron job will not see it/, next: /CADUCEUS_GITHUB_TOKEN into .*\/\.env/, arrange: () => {
      write('.env', '')
      write('gateway.pid', String(process.pid))
      rig.env['CADUCEUS_GITHUB_TOKEN'] = rig.token
    } },
    'a token that only this shell has': { check: 'Token', status: 'fail', exitCode: 1, detail: /GITHUB_TOKEN and GH_TOKEN is set in this shell, but a cron job will not see it/, next: /CADUCEUS_GITHUB_TOKEN into .*\/\.env/, arrange: () => {
      write('.env', '')
      Object.assign(rig.env, { GITHUB_TOKEN: rig.token, GH_TOKEN: rig.token })
    } },
    'a stripped name in .env': { check: 'Token', status: 'fail', exitCode: 1, detail: /No GitHub token/, next: /CADUCEUS_GITHUB_TOKEN into/, arrange: () => write('.env', `GITHUB_TOKEN=${rig.token}\n`) },
    'a configuration that only this shell names': { check: 'Configuration path', status: 'warn', exitCode: 0, detail: /a cron job reads .*hermes\/config\.yaml, this shell/, next: /Unset CADUCEUS_CONFIG/, arrange: () => { rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'config.yaml') } },
    'a configuration that cron does not find': { check: 'Configuration path', status: 'fail', exitCode: 1, detail: /finds no configuration/, next: /caduceus:/, arrange: () => {
      rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'config.yaml')
      write('config.yaml', 'model: x\n')
    } },
  }

  test.each(Object.entries(TROUBLES))('%s is told with what to do', async (_, trouble) => {
    await trouble.arrange()
    const report = await examine()
    const row = rowsOf(report, trouble.check).find(({ status }) => status === trouble.status)
    expect(row).toBeDefined()
    expect(row?.detail).toMatch(trouble.detail)
    expect(row?.next).toMatch(trouble.next)
    expect(report.exitCode).toBe(trouble.exitCode)
    expect(JSON.stringify(report)).not.toContain(rig.token)
  })

  test('--fix removes builds that nothing uses, and what a dead setup left of one', async () => {
    const builds = inHome('caduceus', 'builds')
    const dead = `.${'a'.repeat(16)}.999999999.abcdef`
    const names = ['0123456789abcdef', 'b'.repeat(16), 'c'.repeat(16), dead]
    for (const name of names) mkdirSync(join(builds, name), { recursive: true })
    // Out of use for more than a day; the other one only since now.
    writeFileSync(join(builds, `.${'b'.repeat(16)}.retired`), '')
    const longAgo = Date.now() / 1000 - 90_000
    utimesSync(join(builds, `.${'b'.repeat(16)}.retired`), longAgo, longAgo)
    const report = await examine('--offline', '--fix')
    expect(report.fixes?.map(({ what, error }) => [what.split(':')[0], error])).toEqual([
      [expect.stringContaining('made the missing folders'), null],
      [`removed the unfinished build ${join(builds, dead)}`, null],
      ['removed the builds that nothing uses', null],
    ])
    expect(names.filter((name) => existsSync(join(builds, name)))).toEqual([
      '0123456789abcdef',
      'c'.repeat(16),
    ])
  })

  test('--fix makes an old wrapper anew, and leaves a foreign one and the jobs alone', async () => {
    chmodSync(wrapper(), 0o700)
    const jobs = readFileSync(inHome('cron', 'jobs.json'), 'utf8')
    const mended = await examine('--offline', '--fix')
    expect(mended.exitCode).toBe(0)
    expect(mended.fixes).toContainEqual({
      what: `made the cron wrapper ${wrapper()} anew`,
      error: null,
    })
    writeFileSync(wrapper(), 'echo mine\n')
    const refused = await examine('--offline', '--fix')
    expect(refused).toMatchObject({ exitCode: 1, fixes: [] })
    expect(readFileSync(wrapper(), 'utf8')).toBe('echo mine\n')
    expect(readFileSync(inHome('cron', 'jobs.json'), 'utf8')).toBe(jobs)
  })

  test('a harness is looked for where the gateway would find it', async () => {
    rig.setBridge(`${GOOD_BRIDGE}\nif False:\n    command = ["my-harness", "run"]\n`)
    executable('my-harness', 'exit 0')
    expect(told(await examine('--offline'), 'ok')).toContain(
      `Harness: my-harness at ${join(rig.dir, 'bin', 'my-harness')}`,
    )
    // This test stands for the gateway: it runs, and its PATH has no such program.
    write('gateway.pid', String(process.pid))
    const report = await examine('--offline')
    expect(report.exitCode).toBe(2)
    expect(rowsOf(report, 'Harness')[0]?.detail).toContain('the PATH that a cron job gets')
  })

  test('labels that differ only in what GitHub ignores are right', async () => {
    write(
      'config.yaml',
      readFileSync(inHome('config.yaml'), 'utf8').replace(
        '"caduceus":{',
        `"caduceus":{"ticket_label_code":${JSON.stringify(LABELS.code.replace('🤖', '🤖\uFE0F').toUpperCase())},`,
      ),
    )
    const [row] = rowsOf(await examine(), 'Labels')
    expect(row).toMatchObject({ status: 'ok', detail: expect.stringContaining('(counts as "') })
  })
})
