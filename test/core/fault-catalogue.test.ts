import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { describeFault } from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultSpec } from '../../daemon/core/fault-classes.ts'
import { sampleFault } from '../support/faults.ts'

const CATALOGUE: readonly (readonly [string, FaultSpec])[] = Object.entries(FAULTS)

function codeOf(text: string): FaultCode {
  const found = CODES.find((code) => code === text)
  if (found === undefined) throw new RangeError(text)
  return found
}

const CODES: readonly FaultCode[] = Object.keys(FAULTS).filter(
  (code): code is FaultCode => code in FAULTS,
)

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
    for (const [code] of CATALOGUE) {
      const made = sampleFault(codeOf(code))
      expect(made.message).not.toMatch(/[{}?]/)
      expect(describeFault(made)).not.toMatch(/\n| $/)
      expect(made).toMatchObject({ code, name: 'Fault' })
    }
  })
})
