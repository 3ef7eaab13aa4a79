import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { closureOf, DIST, MODULE, matches, packagesIn, partWith } from './bundles.ts'

describe('how much does each process load', () => {
  test('the supervisor is small: sys and core, and the one package it starts programs with', () => {
    const { kilobytes, modules } = closureOf('supervisor.cjs')
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
    expect(
      modules.filter((path) =>
        /^(?:daemon\/(?:demo|doctor|supervisor|publish)|embedded-github)\//.test(path),
      ),
    ).toEqual([])
  })

  test('no process compiles a schema: the build has put code in its place', () => {
    const bundles = readdirSync(DIST).filter((name) => /\.[cm]js$/.test(name))
    const modules = bundles.flatMap((name) =>
      matches(MODULE, readFileSync(join(DIST, name), 'utf8')),
    )
    expect(modules).toContain('daemon/state/validate-stored.ts')
    // What the code of a schema calls, such as the length of a text in characters.
    expect(modules).toContain('node_modules/ajv/dist/runtime/ucs2length.js')
    const compiling = /^(?:node_modules\/ajv\/(?!dist\/runtime\/)|daemon\/sys\/compile-schema\.ts)/
    expect(modules.filter((path) => compiling.test(path))).toEqual([])
  })

  test('no process but the embedded GitHub holds a server', () => {
    for (const name of readdirSync(DIST).filter((file) => file.endsWith('.mjs'))) {
      if (name !== 'embedded-github.mjs') {
        expect(readFileSync(join(DIST, name), 'utf8')).not.toMatch(/\bcreateServer\b/)
      }
    }
  })
})
