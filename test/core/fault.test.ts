import { createContext, runInContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import {
  asFault,
  describeFault,
  describeThrown,
  type Fault,
  fault,
  isFault,
} from '../../daemon/core/fault.ts'
import { sampleFault } from '../support/faults.ts'

const TOKEN = ['gh', 'p_'].join('') + 'a1B2'.repeat(9)

describe('what a fault carries', () => {
  test('the facts in message and next step, a question mark for an unknown one', () => {
    const known = { path: '/p', found: 'x', wanted: 'w', target: '/q', url: 'u', repo: null }
    const made = fault('clone/wrong-origin', known)
    expect(made.message).toBe('The clone /p has origin x, not ? on w.')
    expect(made.next).toBe('Correct it: git -C /q remote set-url origin u')
    expect(fault('git/failed', { operation: 0, reason: false }).message).toBe('git 0 failed: false')
  })

  test('facts are taken as they are, never as patterns or placeholders', () => {
    const made = fault('git/failed', { operation: '{reason}', reason: '$& $1 {operation}' })
    expect(made.message).toBe('git {reason} failed: $& $1 {operation}')
  })

  test('no secret, whichever fact it came in', () => {
    const made = fault('git/failed', {
      operation: 'push',
      reason: `fatal: https://x:${TOKEN}@github.com GH_TOKEN=abc`,
    })
    expect(`${made.message} ${JSON.stringify(made.details)} ${made.stack}`).not.toMatch(
      new RegExp(`${TOKEN}|abc`),
    )
    expect(made.details['reason']).toContain('<redacted>')
  })

  test('the cause it explains', () => {
    const cause = new RangeError('x')
    expect(sampleFault('git/failed', {}, cause).cause).toBe(cause)
    expect('cause' in sampleFault('git/failed')).toBe(false)
  })
})

describe('how thrown values are read', () => {
  test('a fault is known by its mark, also from another realm', () => {
    expect(isFault(sampleFault('git/failed'))).toBe(true)
    const foreign: unknown = runInContext(
      "({ [Symbol.for('caduceus.fault')]: true })",
      createContext({}),
    )
    expect(isFault(foreign)).toBe(true)
    for (const other of [new RangeError('x'), null, undefined, 'text', 1, {}, () => 1]) {
      expect(isFault(other)).toBe(false)
    }
  })

  test('anything else becomes an unexpected fault with its text, redacted, on one line', () => {
    const made = asFault(new RangeError(`a\n  b ${TOKEN}`))
    expect(made.code).toBe('internal/unexpected')
    expect(made.message).toBe('Something unexpected happened: a b <redacted>.')
    const known: Fault = sampleFault('git/failed')
    expect(asFault(known)).toBe(known)
  })

  test('no thrown value is too odd to be told', () => {
    const odd: readonly unknown[] = [
      undefined,
      null,
      0,
      '',
      Symbol('s'),
      Object.create(null),
      {
        toString() {
          throw new RangeError('no')
        },
      },
    ]
    for (const value of odd) expect(typeof describeThrown(value)).toBe('string')
    for (const value of odd) expect(describeFault(value)).toMatch(/^Something unexpected/)
  })
})
