import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { describeProblem } from '../../daemon/config/problem.ts'
import { CONFIG_KEYS } from '../../daemon/config/schema.ts'
import { makeConfigRig, problemsOf, warningsOf } from '../support/config-rig.ts'

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

describe('what any document ends in', () => {
  test('a configuration, or problems that can be read, each place once; never a crash', () => {
    const rig = makeConfigRig()
    try {
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
        { numRuns: 500, seed: 20 },
      )
    } finally {
      rig.remove()
    }
  })
})
