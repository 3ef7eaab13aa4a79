import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { branchOf, isRunId, makeRunId } from '../../daemon/core/run-id.ts'

describe('what a run id is', () => {
  test('a ULID: the published example comes out', () => {
    // The time of the ULID specification's example, 01ARZ3NDEK…, with all random bits set.
    expect(makeRunId(1_469_922_850_259, new Uint8Array(10).fill(255))).toBe(
      '01ARZ3NDEKZZZZZZZZZZZZZZZZ',
    )
    expect(makeRunId(0, new Uint8Array(10))).toBe('0'.repeat(26))
  })

  test('later ids sort behind earlier ones', () => {
    const time = fc.nat({ max: 2 ** 48 - 1 })
    const random = fc.uint8Array({ minLength: 10, maxLength: 10 })
    fc.assert(
      fc.property(time, time, random, random, (a, b, one, other) => {
        fc.pre(a < b)
        expect(makeRunId(a, one) < makeRunId(b, other)).toBe(true)
      }),
    )
  })

  test('every made one is one, and each random bit shows', () => {
    const made = Array.from({ length: 1000 }, () => makeRunId(Date.now(), randomBytes(10)))
    expect(made.filter((id) => !isRunId(id))).toEqual([])
    expect(new Set(made).size).toBe(1000)
    const single = Array.from({ length: 80 }, (_, bit) => {
      const bytes = new Uint8Array(10)
      bytes[bit >> 3] = 1 << (bit & 7)
      return makeRunId(0, bytes)
    })
    expect(new Set(single).size).toBe(80)
  })

  test('nothing else is one', () => {
    const id = makeRunId(Date.now(), randomBytes(10))
    for (const text of ['', id.slice(1), `${id}0`, `8${id.slice(1)}`, `${id}\n`, `../${id}`]) {
      expect(isRunId(text)).toBe(false)
    }
    for (const letter of ['I', 'L', 'O', 'U', 'a', '.', '/']) {
      expect(isRunId(id.slice(0, 25) + letter)).toBe(false)
    }
  })

  test('its branch is lowercase and names the issue', () => {
    expect(branchOf(12, '01ARZ3NDEKZZZZZZZZZZZZZZZZ')).toBe(
      'automation/issue-12-01arz3ndekzzzzzzzzzzzzzzzz',
    )
  })
})
