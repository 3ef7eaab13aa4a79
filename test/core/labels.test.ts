import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import {
  findLabel,
  isSameLabel,
  normalizeLabel,
  spellingsOf,
  ticketOf,
} from '../../daemon/core/labels.ts'

const TRIGGERS = { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' }

describe('when two labels are the same', () => {
  test('case, variation selectors, composition and outer space do not matter', () => {
    const same: readonly (readonly [string, string])[] = [
      ['🤖 auto-fix', '🤖\uFE0F Auto-Fix'],
      ['🤖\uFE0E auto-fix', '🤖\uFE0F auto-fix '],
      ['caf\u00E9', 'cafe\u0301'],
      ['e\uFE0F\u0301', '\u00E9'],
      // The capital has no composed form of its own, the small letter has.
      ['J\u030C', '\u01F0'],
      ['a,b/c%d', 'A,B/C%D'],
    ]
    for (const [a, b] of same)
      expect({ a, b, same: isSameLabel(a, b) }).toEqual({ a, b, same: true })
  })

  test('everything else does', () => {
    for (const other of ['🤖 auto fix', '🤖auto-fix', 'auto-fix', '🤖 auto-fix-investigate', '']) {
      expect(isSameLabel('🤖 auto-fix', other)).toBe(false)
    }
  })

  test('the form that is compared is settled at once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (label) => {
        expect(normalizeLabel(normalizeLabel(label))).toBe(normalizeLabel(label))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('which label is found', () => {
  test('the exact one before one that only compares equal, in the issue’s spelling', () => {
    expect(findLabel(['Auto-Fix', 'auto-fix'], 'auto-fix')).toBe('auto-fix')
    expect(findLabel(['bug', '🤖\uFE0F Auto-Fix'], TRIGGERS.code)).toBe('🤖\uFE0F Auto-Fix')
    expect(findLabel(['bug'], TRIGGERS.code)).toBe(null)
    expect(findLabel([], TRIGGERS.code)).toBe(null)
  })

  test('it says which kind of ticket it is; both at once are ambiguous', () => {
    expect(ticketOf(['bug', '🤖 AUTO-FIX'], TRIGGERS)).toBe('code')
    expect(ticketOf(['🤖\uFE0F auto-fix-investigate'], TRIGGERS)).toBe('investigation')
    expect(ticketOf(['🤖 auto-fix', '🤖 auto-fix-investigate'], TRIGGERS)).toBe('ambiguous')
    expect(ticketOf(['bug'], TRIGGERS)).toBe(null)
  })
})

describe('which spellings of a label GitHub is asked for', () => {
  test('the given one first, then its emoji without and with a variation selector', () => {
    expect(spellingsOf('🤖 auto-fix')).toEqual(['🤖 auto-fix', '🤖\uFE0F auto-fix'])
    expect(spellingsOf('🤖\uFE0F auto-fix')).toEqual(['🤖\uFE0F auto-fix', '🤖 auto-fix'])
    expect(spellingsOf('auto-fix 100%')).toEqual(['auto-fix 100%'])
    for (const spelling of spellingsOf('🤖 a ✏\uFE0E b')) {
      expect(isSameLabel(spelling, '🤖 a ✏ b')).toBe(true)
    }
  })
})
