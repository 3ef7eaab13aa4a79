import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { CONFIG_KEYS, CONFIG_SCHEMA } from '../../daemon/config/schema.ts'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

describe('which values a key takes', () => {
  type KeySchema = Readonly<{
    type?: unknown
    enum?: readonly unknown[]
    minimum?: number
    maximum?: number
    pattern?: string
    default?: unknown
    description?: string
    properties?: Readonly<Record<string, KeySchema>>
  }>

  /** Every key there is, nested ones under their whole path. */
  function walk(prefix: string, keys: Readonly<Record<string, KeySchema>>): [string, KeySchema][] {
    return Object.entries(keys).flatMap(([key, schema]): [string, KeySchema][] => {
      const path = `${prefix}${key}`
      return [[path, schema], ...walk(`${path}.`, schema.properties ?? {})]
    })
  }

  const ALL_KEYS = walk('', CONFIG_SCHEMA.properties)
  const TOP_KEYS = ALL_KEYS.filter(([path]) => !path.includes('.'))

  function wrongTypeOf(schema: KeySchema): unknown {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type]
    return types.includes('string') || types.includes('array') ? 7 : 'wrong'
  }

  /** A document with one value at a path. */
  function documentWith(path: string, value: unknown): Record<string, unknown> {
    const [first = '', ...rest] = path.split('.')
    return { [first]: rest.length === 0 ? value : documentWith(rest.join('.'), value) }
  }

  let rig: ConfigRig
  beforeEach(() => {
    rig = makeConfigRig()
  })
  afterEach(() => rig.remove())

  test('every key is described and has a default, unless the machine or the operator decides', () => {
    const open = ALL_KEYS.filter(([, schema]) => schema.default === undefined).map(([path]) => path)
    expect(ALL_KEYS.filter(([, schema]) => (schema.description ?? '') === '')).toEqual([])
    expect(open).toEqual([
      'max_issues_per_tick',
      'worker_command',
      'state_dir',
      'log_path',
      'repo_storage_root',
      'sandbox',
      'sandbox.image',
    ])
  })

  test.each(ALL_KEYS)('%s: a value of another type is reported', (path, schema) => {
    const problems = problemsOf(rig.inspect(documentWith(path, wrongTypeOf(schema))))
    const mine = problems.filter((problem) => problem.path === path)
    expect(mine).toHaveLength(1)
    for (const text of Object.values(mine[0] ?? {})) expect(text).not.toBe('')
    expect(mine[0]?.wanted).toMatch(
      /text|number|true or false|list|mapping|one of|label|name|none or/,
    )
  })

  test('wrong values of all keys are reported together, once each', () => {
    const document = Object.fromEntries(TOP_KEYS.map(([key, schema]) => [key, wrongTypeOf(schema)]))
    const inspection = rig.inspect(document)
    const paths = problemsOf(inspection).map(({ path }) => path)
    expect([...paths].sort()).toEqual([...CONFIG_KEYS].sort())
    expect(inspection.kind === 'invalid' && inspection.fault.code).toBe('config/invalid')
    expect(inspection.kind === 'invalid' && inspection.fault.details['count']).toBe(paths.length)
  })

  const bounded = ALL_KEYS.filter(([, schema]) => schema.minimum !== undefined)
  test.each(bounded)(
    '%s: below its least and above its greatest value is reported',
    (path, schema) => {
      for (const value of [(schema.minimum ?? 0) - 1, (schema.maximum ?? 0) + 1]) {
        const problems = problemsOf(rig.inspect(documentWith(path, value)))
        const mine = problems.find((problem) => problem.path === path)
        expect(mine?.found).toBe(String(value))
        expect(mine?.wanted).toMatch(/^at (least|most) /)
      }
    },
  )

  const enumerated = ALL_KEYS.filter(([, schema]) => schema.enum !== undefined)
  test.each(enumerated)('%s: another word is reported', (path) => {
    const problems = problemsOf(rig.inspect(documentWith(path, 'something-else')))
    const mine = problems.find((problem) => problem.path === path)
    expect(mine?.found).toBe('"something-else"')
  })

  test.each(TOP_KEYS)(
    '%s: a line without a value is reported, unless nothing is a value',
    (key) => {
      const problems = problemsOf(rig.inspect({ worker_command: '/bridge', [key]: null }))
      const mine = problems.filter((problem) => problem.path === key)
      if (key === 'github_token') return expect(mine).toEqual([])
      expect(mine).toHaveLength(1)
      expect(mine[0]?.found).toBe('nothing')
    },
  )

  test('a problem says how to get the default back', () => {
    const [problem] = problemsOf(rig.inspect({ worker_command: '/b', poll_interval_seconds: '2m' }))
    expect(problem).toEqual({
      path: 'poll_interval_seconds',
      found: '"2m"',
      wanted: 'a whole number',
      fix: 'Correct it, or remove the line to use the default (120).',
    })
  })

  test('one wrong entry of a list does not hide the others', () => {
    const watched_repos = [5, 'octocat/hello', 'not a repository', 6, 'Octocat/Hello']
    const problems = problemsOf(rig.inspect({ worker_command: '/b', watched_repos }))
    expect(problems.map(({ path }) => path).sort()).toEqual([
      'watched_repos[0]',
      'watched_repos[2]',
      'watched_repos[3]',
      'watched_repos[4]',
    ])
  })
})

describe('are generated files up to date', () => {
  const ROOT = join(import.meta.dirname, '..', '..')

  function generate(...options: string[]): { code: number | null; output: string } {
    const done = spawnSync(process.execPath, ['scripts/generate.mjs', ...options], {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { code: done.status, output: done.stdout + done.stderr }
  }

  test('what is committed is what the sources give', () => {
    expect(generate('--check')).toEqual({ code: 0, output: '' })
  })

  test('a stale or missing file is named, and written on demand, twice the same', () => {
    const root = mkdtempSync(join(tmpdir(), 'generated-'))
    try {
      const before = generate('--check', '--root', root)
      expect(before.code).toBe(1)
      expect(before.output).toContain('docs/configuration.md')
      expect(generate('--root', root).code).toBe(0)
      expect(generate('--check', '--root', root)).toEqual({ code: 0, output: '' })
      const page = 'docs/configuration.md'
      expect(readFileSync(join(root, page), 'utf8')).toBe(readFileSync(join(ROOT, page), 'utf8'))
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  test('the page shows every key', () => {
    const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')
    for (const key of CONFIG_KEYS) expect(page).toMatch(new RegExp(`\\| \`${key}[\`.]`))
  })

  test('the compiled validator stands alone', () => {
    const file = join(ROOT, 'daemon/config/validate-config.generated.js')
    const code = readFileSync(file, 'utf8')
    expect(code).not.toMatch(/^\s*import |= require\(/m)
    expect(code.length).toBeLessThan(1_000_000)
  })
})
