import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'

const DIST = join(import.meta.dirname, '..', '..', 'dist')

const STATIC_IMPORT = /^(?:import|export)\b[^'"();]*?["']\.\/([^"']+\.mjs)["']/gm
/** The bundler names every module it puts in. */
const MODULE = /^ *\/\/ ((?:daemon|commands|node_modules)\/\S+)$/gm

const matches = (pattern: RegExp, text: string): readonly string[] =>
  [...text.matchAll(pattern)].flatMap(([, found]) => found ?? [])

/** A bundle and everything that is loaded with it. */
function closureOf(name: string): { kilobytes: number; modules: readonly string[] } {
  const texts = new Map<string, string>()
  const add = (file: string): void => {
    if (texts.has(file)) return
    const text = readFileSync(join(DIST, file), 'utf8')
    texts.set(file, text)
    for (const imported of matches(STATIC_IMPORT, text)) add(imported)
  }
  add(name)
  const all = [...texts.values()]
  return {
    kilobytes: all.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1000,
    modules: all.flatMap((text) => matches(MODULE, text)),
  }
}

/** The part that a source file is the way into. */
function partWith(module: string): string {
  const holds = (name: string): boolean =>
    matches(MODULE, readFileSync(join(DIST, name), 'utf8')).includes(module)
  const found = readdirSync(DIST).filter((name) => name.endsWith('.mjs') && holds(name))
  expect(found).toHaveLength(1)
  return found[0] ?? ''
}

const packagesIn = (modules: readonly string[]): readonly string[] => [
  ...new Set(
    modules.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  ),
]

describe('how much does each process load', () => {
  test('the supervisor is small: sys and core, and the one package it starts programs with', () => {
    const { kilobytes, modules } = closureOf('supervisor.mjs')
    expect(kilobytes).toBeLessThanOrEqual(120)
    expect(modules).toContain('daemon/supervise.ts')
    const foreign = modules.filter(
      (path) => !/^daemon\/(?:supervise\.ts|(?:supervisor|sys|core)\/)/.test(path),
    )
    expect(packagesIn(foreign)).toEqual(expect.arrayContaining(['cross-spawn']))
    expect(foreign.filter((path) => path.startsWith('daemon/'))).toEqual([])
    for (const absent of ['yaml', 'winston', '@oclif/core', '@octokit/endpoint']) {
      expect(packagesIn(foreign)).not.toContain(absent)
    }
  })

  test('the command line loads the code of no command before that command runs', () => {
    const { kilobytes, modules } = closureOf('cli.mjs')
    expect(kilobytes).toBeLessThanOrEqual(600)
    expect(modules).toContain('commands/run.ts')
    expect(
      modules.filter(
        (path) =>
          path.startsWith('daemon/') && !/^daemon\/(?:cli\.ts|app\/build\.ts|core\/)/.test(path),
      ),
    ).toEqual([])
    for (const absent of ['yaml', 'winston', 'semver', 'minimatch', 'tinyglobby', 'debug']) {
      expect(packagesIn(modules)).not.toContain(absent)
    }
  })

  test('a tick carries neither the demo nor what only a runner does', () => {
    const { modules } = closureOf(partWith('daemon/app/run-tick.ts'))
    expect(modules).toContain('daemon/engine/tick.ts')
    expect(modules.filter((path) => /^daemon\/(?:demo|supervisor|publish)\//.test(path))).toEqual(
      [],
    )
  })

  test('no process but the embedded GitHub holds a server', () => {
    for (const name of readdirSync(DIST).filter((file) => file.endsWith('.mjs'))) {
      if (name !== 'github.mjs') {
        expect(readFileSync(join(DIST, name), 'utf8')).not.toMatch(/\bcreateServer\b/)
      }
    }
  })
})

describe('what does status load', () => {
  let dir: string

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'status-'))
    mkdirSync(join(dir, 'state'))
  })
  afterEach(() => {
    rmSync(dir, { recursive: true, force: true })
  })

  test('no log, nothing of GitHub and no tree of git', () => {
    const { modules } = closureOf(partWith('daemon/app/status.ts'))
    expect(modules).toContain('daemon/state/json-store.ts')
    expect(
      modules.filter((path) => /^daemon\/(?:github|git|executor|worker|demo)\//.test(path)),
    ).toEqual([])
    for (const absent of ['winston', '@octokit/endpoint', '@oclif/core']) {
      expect(packagesIn(modules)).not.toContain(absent)
    }
  })

  test('no native code and no network client, when nothing runs', async () => {
    const store = openJsonStore({ clock: systemClock }, join(dir, 'state'))
    await store.changeMeta((meta) => ({ state: meta, value: null }))
    const config = { watched_repos: [], state_dir: join(dir, 'state'), worker_command: '/bin/true' }
    writeFileSync(join(dir, 'config.yaml'), JSON.stringify(config))
    writeFileSync(join(dir, 'list-loaded.mjs'), LIST_LOADED)
    const env = { PATH: process.env['PATH'], HOME: dir, CADUCEUS_CONFIG: join(dir, 'config.yaml') }
    const argv = ['--import', join(dir, 'list-loaded.mjs'), join(DIST, 'caduceus.mjs'), 'status']
    const { stdout, stderr } = await promisify(execFile)(process.execPath, argv, { env })
    expect(stdout).toMatch(/^caduceus status\n/)
    expect(existsSync(join(dir, 'state', 'state_meta.json'))).toBe(true)
    const loaded = stderr.split('\n')
    expect(loaded).toContain('NativeModule fs')
    expect(loaded.filter((name) => /koffi|\.node$|undici|NativeModule https?$/.test(name))).toEqual(
      [],
    )
  })
})

/** Tells at the end which packages and which parts of Node were loaded. */
const LIST_LOADED = `
import { createRequire } from 'node:module'
const { cache } = createRequire(import.meta.url)
process.on('exit', () => {
  process.stderr.write([...process.moduleLoadList, ...Object.keys(cache)].join('\\n'))
})
`
