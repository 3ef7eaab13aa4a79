import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { describeProblem } from '../../daemon/config/problem.ts'
import { CONFIG_KEYS, CONFIG_SCHEMA } from '../../daemon/config/schema.ts'
import { type ConfigRig, makeConfigRig, problemsOf, warningsOf } from '../support/config-rig.ts'
import { detailsOf } from '../support/faults.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

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
    expect(inspection.kind === 'invalid' && detailsOf(inspection.fault)['count']).toBe(paths.length)
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

describe('what any document ends in', () => {
  const SANDBOX = fc.dictionary(
    fc.constantFrom('image', 'resources', 'pass_env', 'network', 'other', '__proto__'),
    fc.jsonValue({ maxDepth: 2 }),
  )
  const VALUE = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.oneof(fc.string(), fc.integer())),
    fc.integer(),
    fc.string({ unit: 'binary' }),
  )
  const DOCUMENT = fc
    .tuple(fc.dictionary(fc.constantFrom(...CONFIG_KEYS, 'odd', 'oci_x'), VALUE), SANDBOX)
    .map(([keys, sandbox]) => ({ ...keys, sandbox }))

  test('a configuration, or problems that can be read, each place once; never a crash', () => {
    fc.assert(
      fc.property(DOCUMENT, (document) => {
        const inspection = rig.inspect(document)
        const problems = problemsOf(inspection)
        if (inspection.kind === 'invalid') {
          expect(inspection.fault.code).toBe('config/invalid')
          expect(problems).not.toEqual([])
        }
        expect(new Set(problems.map(({ path }) => path)).size).toBe(problems.length)
        for (const problem of [...problems, ...warningsOf(inspection)]) {
          expect(describeProblem(problem)).toMatch(/^[^\0]+: found .+; wanted: .+\. .+\.$/)
        }
      }),
      { numRuns: 500 },
    )
  })
})
