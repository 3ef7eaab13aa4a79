import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { DoctorReport } from '../../daemon/doctor/examine.ts'
import { waitUntil } from '../support/processes.ts'
import { LABELS } from '../support/program-rig.ts'
import {
  type HermesRig,
  type HostJob,
  madeReleases,
  openHermesRig,
  PROVIDER_KEY,
  REPO,
  type Release,
} from './hermes-rig.ts'

// The life of the plugin on real hosts, in the order in which a user goes through it: each step stands on
// the ones before. One rig for each host, and a table of hosts and steps at the end.

const STEP_MS = 400_000
const ROOT = join(import.meta.dirname, '..', '..')

/** What the manual tells a user to type. */
const COMMANDS = [
  'hermes plugins install barkley-assistant/caduceus --enable',
  'hermes caduceus setup',
  'hermes caduceus doctor',
  'hermes caduceus cron-install',
] as const

type Step = Readonly<{
  /** A word or two for the table. */
  name: string
  /** The behaviour, as the test's title. */
  title: string
  /** Hosts that can do it; default: all. */
  on?: (release: Release) => boolean
  act: (rig: HermesRig) => Promise<void>
}>

const STEPS: readonly Step[] = [
  {
    name: 'install',
    title: "the manual's first command installs and enables the plugin from its real address",
    on: ({ installs }) => installs,
    act: async (rig) => {
      const { code, stdout, stderr } = await literally(rig, COMMANDS[0])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain('caduceus enabled')
      // The plugin's own text after an installation.
      expect(stdout).toContain('hermes caduceus setup')
      expect(stdout).toContain('CADUCEUS_GITHUB_TOKEN')
    },
  },
  {
    name: 'lay',
    title: 'a plugin that was put into the folder and enabled in the configuration is taken',
    on: ({ installs }) => !installs,
    act: async (rig) => rig.layPlugin(),
  },
  {
    name: 'list',
    title: 'the host lists the plugin as enabled, from git, in our version',
    act: async (rig) => {
      const { code, stdout } = await rig.hermes(['plugins', 'list', '--json', '--user'])
      expect(code).toBe(0)
      const version = versionOfTree()
      expect(JSON.parse(stdout)).toMatchObject([
        { name: 'caduceus', status: 'enabled', version, source: 'git' },
      ])
    },
  },
  {
    name: 'not built',
    title: 'before any build help, doctor and a dry setup answer, the rest names the next step',
    act: async (rig) => {
      const help = await rig.caduceus('--help')
      expect(help.code).toBe(0)
      expect(help.stdout).toContain('cron-install')
      const status = await rig.caduceus('status')
      expect(status).toMatchObject({ code: 1, stdout: '' })
      expect(status.stderr).toMatch(/^caduceus: .*hermes caduceus setup\.\n$/)
      expect((await rig.caduceus('cron-install')).code).toBe(1)
      const doctor = await rig.caduceus('doctor')
      expect(doctor.code).toBe(2)
      expect(doctor.stdout).toContain('[FAIL] Build — nothing is built yet')

      const before = await traces(rig)
      const dry = await rig.caduceus('setup', '--dry-run')
      expect(dry).toMatchObject({ code: 0, stderr: '' })
      expect(dry.stdout).toContain(join(rig.hermesHome, 'caduceus', 'builds'))
      expect(await traces(rig)).toEqual(before)
      expect(before).toMatchObject({ builds: [], launcher: false, changed: '' })
    },
  },
  {
    name: 'no node',
    title: 'without node every command says so with 127, and doctor with 2',
    act: async (rig) => {
      const env = { CADUCEUS_NODE: join(rig.dir, 'no-node') }
      const status = await rig.hermes(['caduceus', 'status'], env)
      expect(status).toMatchObject({ code: 127, stdout: '' })
      expect(status.stderr).toMatch(/^caduceus: .*CADUCEUS_NODE.*\n$/)
      const doctor = await rig.hermes(['caduceus', 'doctor'], env)
      expect(doctor.code).toBe(2)
      expect(doctor.stdout).toContain('[FAIL] Node — ')
    },
  },
  {
    name: 'scan',
    title: 'the scanner calls the installed tree safe',
    on: ({ scanner }) => scanner,
    act: expectSafe,
  },
  {
    name: 'plugins doctor',
    title: "the host's own check of plugins passes",
    on: ({ checksPlugins }) => checksPlugins,
    act: async (rig) => {
      const { code, stdout } = await rig.hermes(['plugins', 'doctor', rig.upstream, '--ci'])
      expect(stdout).toContain('OK: runtime discovery, manifest parsing, import, and registration')
      expect(code).toBe(0)
    },
  },
  {
    name: 'setup',
    title: 'setup builds, switches and seeds, and leaves the rest of the configuration as it is',
    act: async (rig) => {
      const config = join(rig.hermesHome, 'config.yaml')
      const before = `# mine: keep\ndisplay:\n  personality: "none"   # mine\n${readFileSync(config, 'utf8')}`
      writeFileSync(config, before)
      const { code, stdout, stderr } = await literally(rig, COMMANDS[1])
      expect({ code, fails: /^\[FAIL\].*$/m.exec(`${stdout}${stderr}`) }).toEqual({
        code: 0,
        fails: null,
      })
      expect(stdout).toMatch(/\d MB/)
      const { builds, launcher, changed } = await traces(rig)
      expect(builds).toHaveLength(1)
      expect({ launcher, changed }).toEqual({ launcher: true, changed: '' })
      expect(modeOf(rig.bridge)).toBe('755')
      expect(modeOf(join(rig.hermesHome, 'caduceus-state'))).toBe('700')
      const after = readFileSync(config, 'utf8')
      expect(after).toContain(before.trimEnd())
      expect(after).toContain('\ncaduceus:\n')

      writeFileSync(rig.bridge, `${readFileSync(rig.bridge, 'utf8')}\n# mine\n`)
      const again = await rig.caduceus('setup')
      expect(again.code).toBe(0)
      expect((await traces(rig)).builds).toEqual(builds)
      expect(readFileSync(config, 'utf8')).toBe(after)
      expect(readFileSync(rig.bridge, 'utf8')).toMatch(/\n# mine\n$/)
    },
  },
  {
    name: 'exit codes',
    title: "the program's own exit codes and arguments pass through the host",
    act: async (rig) => {
      const help = await rig.caduceus('--help')
      expect(help.code).toBe(0)
      expect(help.stdout).toContain('cron-install')
      const run = await rig.caduceus('run', '--help')
      expect(run.code).toBe(0)
      expect(run.stdout).toContain('--now')
      expect((await rig.caduceus('status', '--json')).code).toBe(3)
      expect((await rig.caduceus('--no-such-flag')).code).toBe(2)
      expect((await rig.caduceus('status', '--', '--weird')).code).toBe(2)
      expect((await rig.caduceus('no-such-command')).code).toBe(2)
    },
  },
  {
    name: 'cron-install',
    title: 'cron-install twice makes one silent job of an hour, and a dry one nothing',
    act: async (rig) => {
      rig.configure({
        watched_repos: [REPO],
        api_base: rig.apiBase,
        poll_interval_seconds: 3600,
        publish_settle_seconds: 1,
      })
      expect((await rig.caduceus('cron-install', '--dry-run')).code).toBe(0)
      expect(rig.jobs()).toEqual([])
      expect(existsSync(wrapperOf(rig))).toBe(false)

      const first = await literally(rig, COMMANDS[3])
      expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('[OK] cron-install') })
      const job = onlyJob(rig)
      expect(job).toMatchObject({
        name: 'caduceus',
        script: 'caduceus-pulse.sh',
        no_agent: true,
        enabled: true,
        schedule: { kind: 'interval', minutes: 60 },
        deliver: 'local',
      })
      expect(modeOf(wrapperOf(rig))).toBe('755')
      expect((await rig.caduceus('cron-install')).code).toBe(0)
      expect(onlyJob(rig)).toEqual(job)
    },
  },
  {
    name: 'pause',
    title: 'a job that the user paused stays the same and paused',
    act: async (rig) => {
      await rig.hermes(['cron', 'pause', 'caduceus'])
      const paused = onlyJob(rig)
      expect(paused.state).toBe('paused')
      expect((await rig.caduceus('cron-install')).code).toBe(0)
      expect(onlyJob(rig)).toEqual(paused)
    },
  },
  {
    name: 'edit',
    title:
      'a new interval is edited into the job in place: same id, still paused, still delivered there',
    act: async (rig) => {
      const { id } = onlyJob(rig)
      await rig.hermes(['cron', 'edit', 'caduceus', '--deliver', 'origin'])
      rig.configure({ poll_interval_seconds: 120 })
      expect((await rig.caduceus('cron-install')).code).toBe(0)
      const schedule = { kind: 'interval', minutes: 2 }
      const edited = { id, schedule, state: 'paused', no_agent: true, deliver: 'origin' }
      expect(onlyJob(rig)).toMatchObject(edited)
      await rig.hermes(['cron', 'edit', 'caduceus', '--deliver', 'local'])
      await rig.hermes(['cron', 'resume', 'caduceus'])
      expect(onlyJob(rig)).toMatchObject({ id, state: 'scheduled', deliver: 'local' })
    },
  },
  {
    name: 'doctor',
    title: 'doctor ends with 2 without a gateway, 1 without a token and 0 when all is well',
    act: async (rig) => {
      const asleep = await diagnose(rig)
      expect(asleep.code).toBe(2)
      expect(failuresOf(asleep.report)).toContain('Gateway ticker')

      const secrets = join(rig.hermesHome, '.env')
      // The host takes this name away from its scripts, so it does not help.
      writeFileSync(secrets, `GITHUB_TOKEN=${rig.token}\n`, { mode: 0o600 })
      await rig.startGateway()
      const incomplete = await diagnose(rig)
      expect(failuresOf(incomplete.report)).toContain('Token')
      expect(incomplete.code).toBe(1)
      await rig.stopGateway()

      // Of these it takes away the second, which the program therefore reads itself for its workers.
      const values = [`CADUCEUS_GITHUB_TOKEN=${rig.token}`, `${PROVIDER_KEY}=of the file`]
      writeFileSync(secrets, `${values.join('\n')}\n`)
      const labels = await rig.caduceus('setup', '--create-labels')
      expect(labels).toMatchObject({ code: 0, stdout: expect.stringContaining(LABELS.code) })
      await rig.startGateway()
      const well = await diagnose(rig)
      expect(well.report.checks.filter(({ status }) => status === 'fail')).toEqual([])
      const said = await literally(rig, COMMANDS[2])
      expect(said).toMatchObject({ code: 0, stdout: expect.stringContaining('[OK] Token') })
      expect(said.stdout).not.toContain(rig.token)
      await rig.stopGateway()
    },
  },
  {
    name: 'chat',
    title: 'slash commands and the skill answer through the plugin manager of the host',
    act: async (rig) => {
      const { code, stdout, stderr } = await rig.python(ASK_IN_CHAT)
      expect({ code, stderr }).toMatchObject({ code: 0 })
      const answers = JSON.parse(stdout.split('\n').at(-2) ?? '') as Readonly<
        Record<string, string>
      >
      const { status, queue, doctor, other, skill } = answers
      expect(status).toContain('caduceus status')
      expect(queue).not.toContain('could not be asked')
      expect(doctor).toMatch(/\[(?:OK|WARN)\] /)
      expect(other).toContain('/caduceus status')
      expect(skill).toBe(join(rig.plugin, 'plugin-assets', 'skill', 'SKILL.md'))
      expect(`${status}${queue}${doctor}`).not.toContain(rig.token)
    },
  },
  {
    name: 'cron run',
    title: 'a scheduled tick turns a labelled issue into one pull request, and says nothing',
    act: async (rig) => {
      const number = await openIssue(rig)
      await rig.hermes(['cron', 'run', 'caduceus'])
      expect(onlyJob(rig)).toMatchObject({ last_status: 'ok', last_error: null })
      await untilClosed(rig, number)
      await rig.hermes(['cron', 'run', 'caduceus'])
      expect(onlyJob(rig)).toMatchObject({ last_status: 'ok', last_error: null })
      expect(await pullsOf(rig)).toMatchObject([{ title: 'fix(app): mend it', state: 'open' }])
      for (const output of outputsOf(rig)) expect(output).toContain('silent (empty output)')
      const status = await rig.caduceus('status')
      expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining('awaiting_review') })
    },
  },
  {
    name: 'update',
    title: "the host's update and another setup lead to a new build; the user's bridge stays",
    act: async (rig) => {
      const [old] = (await traces(rig)).builds
      await rig.publishChange('plugin-assets/worker-bridge.py', '\n# A newer template.\n')
      if (rig.release.installs) {
        const updated = await rig.hermes(['plugins', 'update', 'caduceus'])
        expect({ ...updated, stdout: '' }).toMatchObject({ code: 0 })
      } else await rig.git('-C', rig.plugin, 'pull', '--quiet', '--ff-only')
      expect(readFileSync(join(rig.plugin, 'plugin-assets', 'worker-bridge.py'), 'utf8')).toContain(
        '# A newer template.',
      )
      // The old build goes on working until setup.
      expect((await rig.caduceus('status')).code).toBe(0)
      const { code } = await rig.caduceus('setup')
      expect(code).toBe(0)
      const { builds, launcher, changed } = await traces(rig)
      expect({ launcher, changed }).toEqual({ launcher: true, changed: '' })
      expect(builds.filter((build) => build !== old)).toHaveLength(1)
      expect(readFileSync(rig.bridge, 'utf8')).toMatch(/\n# mine\n$/)
      expect(readFileSync(`${rig.bridge}.new`, 'utf8')).toContain('# A newer template.')
      const status = await rig.caduceus('status')
      expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining('awaiting_review') })
      await rig.hermes(['cron', 'run', 'caduceus'])
      expect(onlyJob(rig)).toMatchObject({ last_status: 'ok', last_error: null })
    },
  },
  {
    name: 'gateway',
    title: "the gateway's own ticker starts a run, and the run outlives the gateway",
    on: isAtEnd,
    act: async (rig) => {
      const { holds, release } = rig.hold()
      const number = await openIssue(rig)
      rig.configure({ poll_interval_seconds: 60 })
      expect((await rig.caduceus('cron-install')).code).toBe(0)
      const before = onlyJob(rig)
      const isDue = (): boolean => Date.parse(before.next_run_at ?? '') < Date.now()
      await waitUntil('the job is due', isDue, 90_000)
      await rig.startGateway()
      await holds()
      const hasEnded = (): boolean => onlyJob(rig).last_run_at !== before.last_run_at
      await waitUntil('the tick is over', hasEnded, 90_000)
      expect(onlyJob(rig)).toMatchObject({ last_status: 'ok', last_error: null })
      await rig.stopGateway()
      const { stdout } = await rig.caduceus('queue', 'show', `${REPO}#${number}`)
      expect(stdout).toContain('in_progress')
      release()
      await untilClosed(rig, number)
      expect(await pullsOf(rig)).toHaveLength(2)
    },
  },
  {
    name: 'scan again',
    title: 'the scanner calls the tree safe after setup, too',
    on: ({ scanner }) => scanner,
    act: expectSafe,
  },
  {
    name: 'cron-remove',
    title: "cron-remove takes our job and wrapper away, twice without complaint, and nobody else's",
    act: async (rig) => {
      writeFileSync(join(rig.hermesHome, 'scripts', 'other.sh'), 'exit 0\n')
      const job = ['every 60m', '--name', 'other', '--script', 'other.sh', '--no-agent']
      await rig.hermes(['cron', 'create', ...job])
      for (const time of ['first', 'second']) {
        const { code, stdout } = await rig.caduceus('cron-remove')
        expect({ time, code, stdout }).toMatchObject({
          code: 0,
          stdout: expect.stringContaining('[OK] cron-remove'),
        })
        expect(rig.jobs().map(({ name }) => name)).toEqual(['other'])
        expect(existsSync(wrapperOf(rig))).toBe(false)
      }
    },
  },
  {
    name: 'remove',
    title: 'removing the plugin leaves state, bridge and configuration',
    act: async (rig) => {
      const config = readFileSync(join(rig.hermesHome, 'config.yaml'), 'utf8')
      const state = readFileSync(join(rig.hermesHome, 'caduceus-state', 'state.json'), 'utf8')
      const { code } = await rig.hermes(['plugins', 'remove', 'caduceus'])
      expect(code).toBe(0)
      expect(existsSync(rig.plugin)).toBe(false)
      expect(readFileSync(rig.bridge, 'utf8')).toMatch(/\n# mine\n$/)
      expect(readFileSync(join(rig.hermesHome, 'caduceus-state', 'state.json'), 'utf8')).toBe(state)
      const section = config.slice(config.indexOf('caduceus:\n'))
      expect(section).toContain(REPO)
      expect(readFileSync(join(rig.hermesHome, 'config.yaml'), 'utf8')).toContain(REPO)
      expect((await rig.caduceus('status')).code).toBe(2)
    },
  },
]

/** Asks as the gateway does, and prints the answers as the last line. */
const ASK_IN_CHAT = `
import asyncio, json
from hermes_cli.plugins import discover_plugins, get_plugin_command_handler, get_plugin_manager
discover_plugins()
ask = lambda name, words: asyncio.run(get_plugin_command_handler(name)(words))
print(json.dumps({
    'status': ask('caduceus-status', ''),
    'queue': ask('caduceus', 'queue'),
    'doctor': ask('caduceus', 'doctor'),
    'other': ask('caduceus', 'setup'),
    'skill': str(get_plugin_manager().find_plugin_skill('caduceus:caduceus')),
}))
`

const SCAN = `
import json, sys
from pathlib import Path
from tools.plugin_guard import scan_plugin
result = scan_plugin(Path(sys.argv[1]), 'barkley-assistant/caduceus')
serious = [f'{f.severity} {f.file}:{f.line} {f.pattern_id}' for f in result.findings if f.severity in ('high', 'critical')]
print(json.dumps({'verdict': result.verdict, 'serious': serious}))
`

async function openIssue({ control }: HermesRig): Promise<number> {
  const { number } = await control('createIssue', {
    repo: REPO,
    author: 'alice',
    title: 'The application is broken',
    body: 'It says "broken".',
    labels: [LABELS.code],
  })
  return number
}

async function untilClosed({ control }: HermesRig, number: number): Promise<void> {
  const isClosed = async (): Promise<boolean> =>
    (await control('readIssue', { repo: REPO, number })).state === 'closed'
  await waitUntil('the issue is closed', isClosed, 120_000)
}

async function pullsOf({ control }: HermesRig): Promise<readonly object[]> {
  const issues = await control('listIssues', { repo: REPO })
  return issues.filter(({ pull }) => pull !== null)
}

/** The oldest host and the newest, for what takes long. */
function isAtEnd(release: Release): boolean {
  return release.version === releases.at(0)?.version || release.version === releases.at(-1)?.version
}

function versionOfTree(): string {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

async function expectSafe(rig: HermesRig): Promise<void> {
  const { stdout } = await rig.python(SCAN, rig.plugin)
  expect(JSON.parse(stdout)).toEqual({ verdict: 'safe', serious: [] })
}

/** A command as it stands in the manual. */
async function literally(
  rig: HermesRig,
  command: string,
): Promise<Awaited<ReturnType<HermesRig['hermes']>>> {
  const [, ...args] = command.split(' ')
  return rig.hermes(args)
}

async function diagnose(rig: HermesRig): Promise<Readonly<{ code: number; report: DoctorReport }>> {
  const { code, stdout } = await rig.caduceus('doctor', '--json')
  return { code, report: JSON.parse(stdout) as DoctorReport }
}

function failuresOf({ checks }: DoctorReport): readonly string[] {
  return checks.filter(({ status }) => status === 'fail').map(({ name }) => name)
}

/** What setup leaves; `changed` is git's word about tracked and unknown files of the plugin. */
async function traces(
  rig: HermesRig,
): Promise<Readonly<{ builds: readonly string[]; launcher: boolean; changed: string }>> {
  const builds = join(rig.hermesHome, 'caduceus', 'builds')
  return {
    builds: existsSync(builds) ? readdirSync(builds).filter((name) => !name.startsWith('.')) : [],
    launcher: existsSync(join(rig.plugin, 'bin', 'caduceus')),
    changed: await rig.git('-C', rig.plugin, 'status', '--porcelain'),
  }
}

function onlyJob(rig: HermesRig): HostJob {
  const [job, ...others] = rig.jobs()
  if (job === undefined || others.length > 0) {
    throw new Error(`not one job: ${JSON.stringify(rig.jobs())}`)
  }
  return job
}

/** What the host wrote down about each run of the job. */
function outputsOf(rig: HermesRig): readonly string[] {
  const folder = join(rig.hermesHome, 'cron', 'output', onlyJob(rig).id)
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
}

function wrapperOf(rig: HermesRig): string {
  return join(rig.hermesHome, 'scripts', 'caduceus-pulse.sh')
}

function modeOf(path: string): string {
  return (statSync(path).mode % 0o1000).toString(8)
}

const releases = madeReleases()
const results = new Map<string, string>()

test.each(['README.md', 'docs/installation.md'])('%s tells to type what is tried here', (path) => {
  const [schedule, text] = [COMMANDS[3], readFileSync(join(ROOT, path), 'utf8')]
  const first = `\n${COMMANDS.slice(0, 3).join('\n')}\n`
  expect(text).toContain(first)
  // The schedule comes last, after a look.
  expect(text.indexOf(schedule)).toBeGreaterThan(text.indexOf('dry_run: true'))
  expect(text.indexOf('dry_run: true')).toBeGreaterThan(text.indexOf(first))
})

describe.each(releases.map((release) => [release.version, release] as const))(
  'on Hermes %s',
  (version, release) => {
    let rig: HermesRig

    beforeAll(async () => {
      rig = await openHermesRig(release)
    }, STEP_MS)
    afterAll(async () => rig.close(), STEP_MS)

    const steps = STEPS.filter(({ on }) => on?.(release) ?? true)
    test.each(steps.map((step) => [step.title, step] as const))(
      '%s',
      async (_, { name, act }) => {
        const began = performance.now()
        results.set(`${version} ${name}`, 'FAILED')
        await act(rig)
        results.set(`${version} ${name}`, `${Math.ceil((performance.now() - began) / 1000)} s`)
      },
      STEP_MS,
    )
  },
)

/** Hosts by steps, with the time each took. */
function summary(): string {
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(14), ...cells.map((cell) => cell.padStart(8))].join('  ')
  const versions = releases.map(({ version }) => version)
  const lines = STEPS.map(({ name }) =>
    row(
      name,
      versions.map((version) => results.get(`${version} ${name}`) ?? '–'),
    ),
  )
  return [row('real hosts', versions), ...lines].join('\n')
}

afterAll(() => {
  process.stdout.write(`${summary()}\n`)
})
