import { describe, expect, test } from '@jest/globals'
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

// What the processes of a run agree on: names, files and variables; and how their effects are observed.
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
