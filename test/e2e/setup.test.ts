import { execFile } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { bridgePaths } from '../../daemon/app/bridge-state.ts'
import { seedBridge } from '../../daemon/app/seed-bridge.ts'
import type { SetupReport, SetupStep } from '../../daemon/app/setup-report.ts'
import { openGitHub } from '../../daemon/github/open-github.ts'
import { firstSection, planSection } from '../../daemon/host/config-section.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { type Finished, LABELS, openProgramRig, PROGRAM } from '../support/program-rig.ts'

const CRASH = join(import.meta.dirname, '../support/crash-at-effect.mjs')
const TEMPLATE = join(dirname(PROGRAM), '..', 'plugin-assets', 'worker-bridge.py')

let home: string
let hermes: string
let env: Record<string, string>

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'setup '))
  hermes = join(home, 'hermes')
  mkdirSync(hermes)
  env = { PATH: process.env['PATH'] ?? '', HOME: home, HERMES_HOME: hermes }
})

afterEach(() => rmSync(home, { recursive: true, force: true }))

async function caduceus(...args: readonly string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [PROGRAM, ...args], { env }, (_, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr })
    })
  })
}

async function setup(...args: readonly string[]): Promise<SetupReport> {
  const { code, stdout, stderr } = await caduceus('setup', '--json', ...args)
  expect(stderr).toBe('')
  const report = JSON.parse(stdout) as SetupReport
  expect(report.exitCode).toBe(code)
  return report
}

function stepOf({ steps }: SetupReport, name: string): SetupStep | undefined {
  return steps.find((step) => step.name === name)
}

/** Every path below with what tells a change. */
function snapshot(folder = home): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .sort()
    .map((name) => {
      const { ino, mode, mtimeMs, size } = lstatSync(join(folder, name))
      return `${name} ${ino} ${mode.toString(8)} ${mtimeMs} ${size}`
    })
}

const config = (): string => join(hermes, 'config.yaml')

test('the link that the manual makes in PATH starts the program', async () => {
  const manual = readFileSync(join(dirname(PROGRAM), '../docs/installation.md'), 'utf8')
  const [, target] = /^ln -s "\$PWD\/(\S+)" ~\/\.local\/bin\/caduceus$/m.exec(manual) ?? []
  expect(join(dirname(PROGRAM), '..', target ?? '')).toBe(PROGRAM)
  symlinkSync(PROGRAM, join(home, 'caduceus'))
  const ended = await new Promise<string>((resolve) => {
    execFile(join(home, 'caduceus'), ['status'], { env }, (_, stdout, stderr) => {
      resolve(stdout + stderr)
    })
  })
  expect(ended).toContain('No configuration was found')
})

describe('what does setup make where nothing is?', () => {
  test('under Hermes a section that loads, the bridge, and a state for its owner alone', async () => {
    const report = await setup()
    expect(report).toMatchObject({ dryRun: false, exitCode: 0 })
    expect(parse(readFileSync(config(), 'utf8'))).toEqual({
      caduceus: { poll_interval_seconds: 120, watched_repos: [] },
    })
    const bridge = join(hermes, 'caduceus', 'worker-bridge.py')
    expect(readFileSync(bridge)).toEqual(readFileSync(TEMPLATE))
    expect(statSync(bridge).mode & 0o777).toBe(0o755)
    const state = join(hermes, 'caduceus-state')
    for (const folder of [state, ...readdirSync(state).map((name) => join(state, name))]) {
      expect(statSync(folder).mode & 0o777).toBe(0o700)
    }
    expect(statSync(config()).mode & 0o777).toBe(0o600)
    expect((await caduceus('config', 'validate')).code).toBe(0)
  })

  test('without Hermes a configuration of its own, which names the bridge beside it', async () => {
    delete env['HERMES_HOME']
    expect(await setup()).toMatchObject({ exitCode: 0 })
    const folder = join(home, '.config', 'caduceus')
    const bridge = join(folder, 'worker-bridge.py')
    expect(parse(readFileSync(join(folder, 'config.yaml'), 'utf8'))).toEqual({
      poll_interval_seconds: 120,
      watched_repos: [],
      worker_command: bridge,
    })
    expect(readFileSync(bridge)).toEqual(readFileSync(TEMPLATE))
    expect((await caduceus('config', 'validate')).code).toBe(0)
  })

  test('a second call changes nothing at all', async () => {
    await setup()
    const before = snapshot()
    const report = await setup()
    expect(report.exitCode).toBe(0)
    expect(stepOf(report, 'configuration')?.detail).toContain('left as it is')
    expect(snapshot()).toEqual(before)
  })

  test.each(['under Hermes', 'without it'])(
    'a dry run tells it and makes nothing, %s',
    async (where) => {
      if (where === 'without it') delete env['HERMES_HOME']
      const before = snapshot()
      const report = await setup('--dry-run', '--create-labels')
      expect(report).toMatchObject({ dryRun: true, exitCode: 0 })
      expect(stepOf(report, 'configuration')?.detail).toContain('would write')
      expect(stepOf(report, 'bridge')?.detail).toContain('would be made')
      expect(stepOf(report, 'state')?.detail).toContain('would be made')
      expect(snapshot()).toEqual(before)
    },
  )

  test('people read a line for each thing, and what to do next', async () => {
    const { code, stdout } = await caduceus('setup')
    expect(code).toBe(0)
    expect(stdout).toContain(`[OK] bridge — ${join(hermes, 'caduceus', 'worker-bridge.py')}`)
    expect(stdout).toMatch(/\[WARN\] cron wrapper — not installed\n {4}next action: .*cron-install/)
  })
})

describe('which configuration is left alone?', () => {
  test('the one that CADUCEUS_CONFIG names; the rest is made', async () => {
    env['CADUCEUS_CONFIG'] = join(home, 'mine.yaml')
    writeFileSync(env['CADUCEUS_CONFIG'], 'watched_repos: [octo/app]\n')
    const report = await setup()
    expect(report.exitCode).toBe(0)
    expect(stepOf(report, 'configuration')?.detail).toBe(`${env['CADUCEUS_CONFIG']}, left as it is`)
    expect(readdirSync(hermes).sort()).toEqual(['caduceus', 'caduceus-state'])
  })

  test('one that is named and cannot be read is a failure, and the bridge is seeded all the same', async () => {
    env['CADUCEUS_CONFIG'] = join(home, 'absent.yaml')
    const report = await setup()
    expect(report.exitCode).toBe(1)
    expect(stepOf(report, 'configuration')).toMatchObject({ status: 'fail' })
    expect(stepOf(report, 'bridge')).toMatchObject({ status: 'ok' })
    expect(readdirSync(hermes)).toEqual(['caduceus'])
  })

  test('the standalone one, which a section would put out of force', async () => {
    const own = join(home, '.config', 'caduceus', 'config.yaml')
    mkdirSync(dirname(own), { recursive: true })
    writeFileSync(own, 'watched_repos: [octo/app]\n')
    writeFileSync(config(), 'model: small\n')
    expect(stepOf(await setup(), 'configuration')?.detail).toBe(`${own}, left as it is`)
    expect(readFileSync(config(), 'utf8')).toBe('model: small\n')
  })

  test('one that has problems: they are told, and nothing is mended', async () => {
    const text = 'caduceus:\n  poll_interval_seconds: never\n'
    writeFileSync(config(), text)
    const report = await setup()
    expect(report.exitCode).toBe(1)
    expect(stepOf(report, 'configuration')?.detail).toContain('poll_interval_seconds')
    expect(readFileSync(config(), 'utf8')).toBe(text)
  })

  test('state that a newer version wrote is told before anything runs', async () => {
    const state = join(hermes, 'caduceus-state')
    mkdirSync(state)
    const text = JSON.stringify({
      format: 'caduceus-state',
      version: 99,
      entries: {},
      circuits: {},
    })
    writeFileSync(join(state, 'state.json'), text)
    const report = await setup()
    expect(stepOf(report, 'state')).toMatchObject({ status: 'fail' })
    expect(readFileSync(join(state, 'state.json'), 'utf8')).toBe(text)
  })
})

describe('how does the host’s file get a section?', () => {
  const before = '# mine\nmodel: "small"   # why\nagent: &a {x: 1}\nmemory:\n  - *a\n'

  test('at its end; every other byte, the permissions, owner and group stay', async () => {
    writeFileSync(config(), before)
    chmodSync(config(), 0o640)
    const isRoot = process.geteuid?.() === 0
    if (isRoot) chownSync(config(), 1234, 2345)
    expect(await setup()).toMatchObject({ exitCode: 0 })
    const text = readFileSync(config(), 'utf8')
    expect(text.startsWith(before)).toBe(true)
    expect(text.slice(before.length)).toBe(`\n${firstSection().join('\n')}\n`)
    const { mode, uid, gid } = statSync(config())
    expect(mode & 0o777).toBe(0o640)
    if (isRoot) expect([uid, gid]).toEqual([1234, 2345])
    expect(readdirSync(hermes).filter((name) => name.startsWith('.'))).toEqual([])
  })

  test('where a link leads, and the link stays', async () => {
    const real = join(home, 'dotfiles.yaml')
    writeFileSync(real, before)
    symlinkSync('../dotfiles.yaml', config())
    expect(await setup()).toMatchObject({ exitCode: 0 })
    expect(readlinkSync(config())).toBe('../dotfiles.yaml')
    expect(readFileSync(real, 'utf8').startsWith(before)).toBe(true)
  })

  test('not when it has another name elsewhere, which would be parted from it', async () => {
    writeFileSync(config(), before)
    linkSync(config(), join(home, 'other'))
    const report = await setup()
    expect(stepOf(report, 'configuration')).toMatchObject({ status: 'fail' })
    expect(stepOf(report, 'configuration')?.detail).toContain('hard links')
    expect(readFileSync(config(), 'utf8')).toBe(before)
  })

  test('not when that would change what is there: the lines are shown for pasting', async () => {
    writeFileSync(config(), '{model: small}\n')
    const told = await caduceus('setup')
    expect(told.code).toBe(1)
    expect(told.stdout).toContain('    caduceus:\n      poll_interval_seconds: 120\n')
    expect(readFileSync(config(), 'utf8')).toBe('{model: small}\n')
  })

  const lines = firstSection()
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

  test.each([
    ['an empty file', ''],
    ['comments only', '# nothing yet\n'],
    ['only a beginning', '---\n'],
    ['no line end at its end', 'a: 1'],
    ['a comment without a line end', 'a: 1\n# end'],
    ['line ends of Windows', 'a: 1\r\nb: 2\r\n'],
    ['line ends of Windows, none at its end', 'a: 1\r\nb: 2'],
    ['a byte order mark', '\uFEFFa: 1\n'],
    ['nothing but a byte order mark', '\uFEFF'],
    ['a version directive', '%YAML 1.2\n---\na: 1\n'],
    ['a text of lines at its end', 'a: |\n  one\n  two\n'],
    ['a text that keeps its empty lines', 'a: |+\n  one\n\n'],
    ['a key without a value', 'a:\n'],
    ['a list without an indent', 'a:\n- 1\n- 2\n'],
    ['anchors and merged keys', 'a: &x {b: 1}\nc:\n  <<: *x\n'],
    ['a key of another kind', '1: one\n2024-01-01: day\n'],
    ['blanks at the end', 'a: 1\n\n   \n'],
  ])('it can be added to %s', (_, text) => {
    const plan = planSection(bytes(text), lines)
    const whole = plan.kind === 'write' ? plan.text : plan.kind
    expect(whole.startsWith(text)).toBe(true)
    const added = { caduceus: { poll_interval_seconds: 120, watched_repos: [] } }
    expect(parse(whole, { merge: true })).toEqual({
      ...Object(parse(text, { merge: true })),
      ...added,
    })
    if (text.includes('\r\n')) expect(whole.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test.each([
    ['a mapping in braces', '{a: 1}\n', 'nothing can be added'],
    ['an indented mapping', '  a: 1\n  b: 2\n', 'nothing can be added'],
    ['a document that is ended', 'a: 1\n...\n', 'nothing can be added'],
    ['a text whose end would move', 'a: |\n  one', 'no line end'],
    ['several documents', 'a: 1\n---\nb: 2\n', 'more than one document'],
    ['a list', '- a\n', 'not a mapping'],
    ['a text', 'hello\n', 'not a mapping'],
    ['tabs', 'a:\n\tb: 1\n', 'not well-formed'],
    ['a key twice', 'a: 1\na: 2\n', 'not well-formed'],
    ['an unclosed quote', 'a: "b\n', 'not well-formed'],
    ['a bomb of aliases', `a: &a [x]\n${bomb(12)}`, 'cannot be read'],
  ])('it is refused for %s', (_, text, reason) => {
    expect(planSection(bytes(text), lines)).toEqual({
      kind: 'refused',
      reason: expect.stringContaining(reason),
    })
  })

  test('it is refused for what is no text, and not given twice', () => {
    expect(planSection(Uint8Array.of(0x61, 0xff), lines)).toMatchObject({ kind: 'refused' })
    expect(planSection(bytes('caduceus:\n'), lines)).toEqual({ kind: 'present' })
  })

  function bomb(depth: number): string {
    const names = Array.from({ length: depth }, (_, index) => String.fromCharCode(97 + index))
    const line = (name: string, index: number): string =>
      `${String.fromCharCode(98 + index)}: &${String.fromCharCode(98 + index)} [${`*${name}, `.repeat(9)}*${name}]\n`
    return names.map(line).join('')
  }
})

describe('what becomes of a bridge when its template changes?', () => {
  const root = (): string => join(home, 'build')
  const paths = () => bridgePaths(root(), join(hermes, 'caduceus'))
  const template = (text: string): void => {
    mkdirSync(join(root(), 'plugin-assets'), { recursive: true })
    writeFileSync(paths().template, text)
  }
  const own = (text: string): void => {
    mkdirSync(dirname(paths().bridge), { recursive: true })
    writeFileSync(paths().bridge, text)
  }

  test('it is laid beside the user’s, who is asked once; his own is never touched', () => {
    template('one')
    expect(seedBridge(paths(), false)).toBe('seeded')
    expect(seedBridge(paths(), false)).toBe('same')
    own('mine')
    const before = snapshot(dirname(paths().bridge))[1]
    expect(seedBridge(paths(), false)).toBe('own')
    template('two')
    expect(seedBridge(paths(), true)).toBe('offered')
    expect(readdirSync(dirname(paths().bridge))).toHaveLength(2)
    expect(seedBridge(paths(), false)).toBe('offered')
    expect(readFileSync(paths().beside, 'utf8')).toBe('two')
    expect(statSync(paths().beside).mode & 0o777).toBe(0o755)
    expect(seedBridge(paths(), false)).toBe('waiting')
    rmSync(paths().beside)
    expect(seedBridge(paths(), false)).toBe('own')
    expect(snapshot(dirname(paths().bridge))[1]).toBe(before)
  })

  test('one that is not known to be seen is offered, such as that of an earlier installation', () => {
    template('two')
    own('from long ago')
    expect(seedBridge(paths(), false)).toBe('offered')
  })

  test('whoever takes the new one over is not asked again', () => {
    template('two')
    own('one')
    seedBridge(paths(), false)
    own('two')
    expect(seedBridge(paths(), false)).toBe('same')
    own('three')
    rmSync(paths().beside)
    expect(seedBridge(paths(), false)).toBe('own')
  })

  test('a call that died before its record is repeated to the same end', () => {
    template('one')
    seedBridge(paths(), false)
    rmSync(paths().record)
    expect(seedBridge(paths(), false)).toBe('same')
    own('mine')
    template('two')
    seedBridge(paths(), false)
    rmSync(paths().record)
    expect(seedBridge(paths(), false)).toBe('offered')
    expect(seedBridge(paths(), false)).toBe('waiting')
  })

  test('a bridge that is a link is read where it leads; one that leads nowhere is told', () => {
    template('one')
    mkdirSync(dirname(paths().bridge), { recursive: true })
    symlinkSync(join(home, 'mine.py'), paths().bridge)
    expect(() => seedBridge(paths(), false)).toThrow('leads nowhere')
    writeFileSync(join(home, 'mine.py'), 'one')
    expect(seedBridge(paths(), false)).toBe('same')
    expect(lstatSync(paths().bridge).isSymbolicLink()).toBe(true)
  })

  test('setup says how to compare', async () => {
    await setup()
    const bridge = join(hermes, 'caduceus', 'worker-bridge.py')
    writeFileSync(bridge, 'mine')
    rmSync(join(dirname(bridge), '.worker-bridge.template'))
    expect(stepOf(await setup(), 'bridge')).toMatchObject({
      status: 'warn',
      next: expect.stringContaining(`diff -u ${bridge} ${bridge}.new`),
    })
  })
})

test('a setup that is killed at any change of a file is repeated to the same end', async () => {
  const preload = join(home, 'kill.mjs')
  writeFileSync(
    preload,
    `import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
let count = 0
for (const name of ['mkdirSync', 'writeSync', 'writeFileSync', 'fchmodSync', 'fchownSync', 'renameSync', 'unlinkSync']) {
  const real = fs[name]
  fs[name] = (...args) => {
    count += 1
    if (String(count) === process.env.KILL_AT) process.kill(process.pid, 'SIGKILL')
    return real(...args)
  }
}
syncBuiltinESMExports()
`,
  )
  const contents = (): readonly string[] =>
    readdirSync(hermes, { recursive: true, withFileTypes: true })
      .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
      .map(({ entry, path }) => `${path} ${entry.isFile() ? readFileSync(path, 'utf8') : ''}`)
      .sort()
  const begin = (): void => {
    rmSync(hermes, { recursive: true })
    mkdirSync(join(hermes, 'caduceus'), { recursive: true })
    writeFileSync(config(), '# mine\nmodel: small\n')
    writeFileSync(join(hermes, 'caduceus', 'worker-bridge.py'), 'mine')
  }
  begin()
  await setup()
  const wanted = contents()
  let killed = 0
  for (let at = 1; ; at += 1) {
    begin()
    env['NODE_OPTIONS'] = `--import ${pathToFileURL(preload).href}`
    env['KILL_AT'] = String(at)
    const { code } = await caduceus('setup')
    if (code === 0) break
    delete env['KILL_AT']
    expect((await setup()).exitCode).toBe(0)
    expect({ at, contents: contents() }).toEqual({ at, contents: wanted })
    killed += 1
  }
  expect(killed).toBeGreaterThan(10)
}, 120_000)

describe('which labels does setup make?', () => {
  type Label = Readonly<{ name: string; color: string; description: string }>

  const openRig = async () => {
    const rig = await openProgramRig({ clone: false })
    for (const repo of ['octo/bare', 'octo/half']) await rig.control('createRepository', { repo })
    const half = { repo: 'octo/half', name: LABELS.code.toUpperCase(), color: '000000' }
    await rig.control('createLabel', half)
    const labels = async (repo: string): Promise<readonly Label[]> => {
      const headers = { authorization: `Bearer ${rig.token}` }
      const answer = await fetch(`${rig.apiBase}/repos/${repo}/labels`, { headers })
      return ((await answer.json()) as Label[]).toSorted((a, b) => a.name.length - b.name.length)
    }
    return { rig, labels }
  }

  const INVESTIGATION = { name: LABELS.investigation, color: '7C3AED' }

  test('those that are missing, described; one that cannot be reached does not keep others from it', async () => {
    const { rig, labels } = await openRig()
    try {
      rig.setConfig({ watched_repos: ['octo/app', 'octo/gone', 'octo/bare', 'octo/half'] })
      const planned = await rig.run('setup', '--create-labels', '--dry-run')
      expect(planned.stdout).toContain('labels octo/bare — would make')
      expect(await labels('octo/bare')).toEqual([])

      const first = await rig.run('setup', '--create-labels')
      expect(first.code).toBe(1)
      expect(first.stdout).toMatch(/\[FAIL\] labels octo\/gone — .*not found/)
      expect(first.stdout).toContain('[OK] labels octo/app — both are there')
      expect(await labels('octo/bare')).toMatchObject([
        {
          name: LABELS.code,
          color: '7C3AED',
          description: expect.stringContaining('pull request'),
        },
        { ...INVESTIGATION, description: expect.stringContaining('comment') },
      ])
      expect(await labels('octo/half')).toMatchObject([{ color: '000000' }, INVESTIGATION])

      rig.setConfig({ watched_repos: ['octo/bare', 'octo/half'] })
      const again = await rig.run('setup', '--create-labels')
      expect(again.code).toBe(0)
      expect(again.stdout.match(/both are there/g)).toHaveLength(2)
      expect(await labels('octo/half')).toHaveLength(2)
    } finally {
      await rig.close()
    }
  })

  test('also after a death at any of its requests', async () => {
    const { rig, labels } = await openRig()
    try {
      rig.setConfig({ watched_repos: ['octo/bare', 'octo/half'] })
      for (const place of ['createLabel#1:before', 'createLabel#1:after', 'labels#2:after']) {
        rig.env['NODE_OPTIONS'] = `--import ${CRASH}`
        rig.env['TEST_CRASH_AT'] = `github.${place}`
        expect((await rig.run('setup', '--create-labels')).code).toBe(-1)
      }
      delete rig.env['TEST_CRASH_AT']
      expect((await rig.run('setup', '--create-labels')).code).toBe(0)
      expect(await labels('octo/bare')).toHaveLength(2)
      expect(await labels('octo/half')).toMatchObject([{ color: '000000' }, INVESTIGATION])
    } finally {
      await rig.close()
    }
  })

  test('one that somebody else has made in the meantime is there', async () => {
    const { rig } = await openRig()
    const nothing = (): void => {}
    const deps = {
      clock: systemClock,
      random: () => 0,
      gate: () => null,
      onWait: nothing,
      onAnswer: nothing,
    }
    const { token, apiBase } = rig
    const options = {
      apiBase,
      version: '0',
      maxPages: 1,
      timeoutMs: 5000,
      token: async () => token,
    }
    const github = openGitHub(deps, { ...options, cacheDirectory: home })
    const repository = { owner: 'octo', name: 'bare' }
    const label = { name: 'mine', color: '7C3AED', description: '' }
    try {
      expect(await github.createLabel(repository, label)).toBe('created')
      expect(await github.createLabel(repository, { ...label, name: 'Mine' })).toBe('exists')
      await expect(github.createLabel(repository, { ...label, color: 'red' })).rejects.toThrow(
        'refused',
      )
      expect(await github.labels(repository)).toEqual(['mine'])
    } finally {
      await rig.close()
    }
  })

  test('none while nothing is watched, and that is no failure', async () => {
    const report = await setup('--create-labels')
    expect(stepOf(report, 'labels')).toMatchObject({ status: 'warn' })
    expect(report.exitCode).toBe(0)
  })
})
