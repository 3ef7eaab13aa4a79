import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { closureOf, DIST, packagesIn, partWith } from './bundles.ts'

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
    const { modules } = closureOf(partWith('daemon/app/read-status.ts'))
    expect(modules).toContain('daemon/state/json-store.ts')
    expect(
      modules.filter((path) =>
        /^daemon\/(?:github|git|supervision|worker|demo|doctor)\//.test(path),
      ),
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
