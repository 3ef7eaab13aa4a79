import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import {
  formatIssue,
  formatRepository,
  issueId,
  parseIssueKey,
  parseRepositoryName,
  repositoryId,
  repositoryOf,
  requireIssueKey,
} from '../../daemon/core/issue-key.ts'
import {
  findLabel,
  isSameLabel,
  normalizeLabel,
  spellingsOf,
  ticketOf,
} from '../../daemon/core/labels.ts'
import { branchOf, isRunId, makeRunId } from '../../daemon/core/run-id.ts'

describe('which texts name a repository or an issue', () => {
  test('names GitHub can have are taken, with the case they have', () => {
    for (const text of ['o/r', 'Owner/Re.po_-1', 'a-b/.github', 'a--b/x', `${'a'.repeat(39)}/r`]) {
      const repository = parseRepositoryName(text)
      expect(repository === null ? null : formatRepository(repository)).toBe(text)
    }
    expect(parseRepositoryName(`o/${'r'.repeat(100)}`)).not.toBe(null)
    expect(parseIssueKey('Owner/Repo#12')).toEqual({ owner: 'Owner', name: 'Repo', number: 12 })
  })

  test('names GitHub cannot have are refused', () => {
    const texts = [
      '',
      '/',
      'o',
      'o/',
      '/r',
      'o/r/x',
      ' o/r',
      'o/r ',
      'o/r\n',
      '-o/r',
      'o-/r',
      'o.p/r',
      `${'a'.repeat(40)}/r`,
      `o/${'r'.repeat(101)}`,
      'o/.',
      'o/..',
      'o/r.git',
      'o/r.GIT',
      'o/r:x',
      'ö/r',
      'o/r\u0000',
    ]
    expect(texts.filter((text) => parseRepositoryName(text) !== null)).toEqual([])
    expect(texts.filter((text) => parseIssueKey(`${text}#1`) !== null)).toEqual([])
  })

  test('a number is a positive decimal without decoration', () => {
    const texts = ['o/r', 'o/r#', 'o/r#0', 'o/r#01', 'o/r#-1', 'o/r#1.5', 'o/r#1e3', 'o/r#0x1']
    const more = ['o/r#1 ', 'o/r# 1', 'o/r##1', 'o/r#1#2', 'o/r#12345678901', '#1', 'o/r#１']
    expect([...texts, ...more].filter((text) => parseIssueKey(text) !== null)).toEqual([])
    expect(parseIssueKey('o/r#9999999999')?.number).toBe(9_999_999_999)
  })

  test('what a person typed wrongly is told with the command to ask', () => {
    expect(requireIssueKey('o/r#1', 'queue show')).toEqual({ owner: 'o', name: 'r', number: 1 })
    expect(() => requireIssueKey('o/r', 'queue show')).toThrow(/"o\/r" does not name an issue/)
  })
})

describe('how issues are compared', () => {
  test('case does not matter, everything else does', () => {
    const key = { owner: 'Owner', name: 'Repo', number: 12 }
    expect(issueId(key)).toBe('owner/repo#12')
    expect(issueId({ ...key, owner: 'OWNER' })).toBe(issueId(key))
    expect(issueId({ ...key, number: 1 })).not.toBe(issueId(key))
    expect(repositoryId(repositoryOf(key))).toBe('owner/repo')
    expect(formatIssue(key)).toBe('Owner/Repo#12')
  })
})

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
