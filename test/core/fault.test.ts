import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultSpec } from '../../daemon/core/fault-classes.ts'

const TOKEN = ['gh', 'p_'].join('') + 'a1B2'.repeat(9)
const CATALOGUE: readonly (readonly [string, FaultSpec])[] = Object.entries(FAULTS)

describe('what the catalogue holds', () => {
  test('each code is an area and a name; each class exists and is used', () => {
    expect(CATALOGUE.filter(([code]) => !/^[a-z]+\/[a-z0-9]+(-[a-z0-9]+)*$/.test(code))).toEqual([])
    const used = new Set(CATALOGUE.map(([, spec]) => spec.class))
    expect([...used].sort()).toEqual(Object.keys(FAULT_CLASSES).sort())
  })

  test('each message is one line that begins and ends like a sentence', () => {
    const wrong = CATALOGUE.filter(
      ([, { message }]) =>
        !/^[\p{Lu}{a-z][^\n]*(?:[.}]|\.\})$/u.test(message) || / {2}/.test(message),
    )
    expect(wrong).toEqual([])
  })

  test('each placeholder is a plain name and nothing else is in braces', () => {
    const wrong = CATALOGUE.filter(([, { message, next }]) =>
      /[{}]/.test((message + next).replaceAll(/\{[a-z][A-Za-z]*\}/g, '')),
    )
    expect(wrong).toEqual([])
  })

  test('where nothing goes on by itself there is a next step', () => {
    const wanted: readonly FaultSpec['class'][] = ['config', 'state', 'usage', 'terminal']
    const silent = CATALOGUE.filter(([, spec]) => wanted.includes(spec.class) && spec.next === '')
    expect(silent.map(([code]) => code)).toEqual([])
  })

  test('each code has a section of its own on the troubleshooting page, with what to do', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/troubleshooting.md'), 'utf8')
    const sections = page.split('\n#### ').slice(1)
    const told = sections.map((section) => section.slice(1, section.indexOf('`', 1)))
    expect(told.toSorted()).toEqual(CATALOGUE.map(([code]) => code).toSorted())
    expect(sections.filter((section) => !/\n- What to do: \S/.test(section))).toEqual([])
    expect(page).not.toMatch(/[{}]/)
  })

  test('only the worker’s own failures use up attempts', () => {
    const using = Object.entries(FAULT_CLASSES).filter(([, { attempts }]) => attempts === '+1')
    expect(using.map(([name]) => name)).toEqual(['worker'])
  })

  test('every fault can be made and reads as a whole sentence', () => {
    for (const [code, spec] of CATALOGUE) {
      const names = placeholders(spec.message + spec.next)
      const made = fault(codeOf(code), Object.fromEntries(names.map((name) => [name, 'X'])))
      expect(made.message).not.toMatch(/[{}?]/)
      expect(describeFault(made)).not.toMatch(/\n| $/)
      expect(made).toMatchObject({ code, name: 'Fault' })
    }
  })
})

describe('what a fault carries', () => {
  test('the facts in message and next step, a question mark for a missing one', () => {
    const made = fault('clone/wrong-origin', {
      path: '/p',
      found: 'x',
      wanted: 'w',
      target: '/q',
      url: 'u',
    })
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
    expect(fault('git/failed', {}, cause).cause).toBe(cause)
    expect('cause' in fault('git/failed')).toBe(false)
  })
})

describe('how thrown values are read', () => {
  test('a fault is known by its mark, also from another realm', () => {
    expect(isFault(fault('git/failed'))).toBe(true)
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
    const known: Fault = fault('git/failed')
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

function placeholders(text: string): readonly string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
}

function codeOf(text: string): FaultCode {
  const found = CODES.find((code) => code === text)
  if (found === undefined) throw new RangeError(text)
  return found
}

const CODES: readonly FaultCode[] = Object.keys(FAULTS).filter(
  (code): code is FaultCode => code in FAULTS,
)
