import { describe, expect, test } from '@jest/globals'
import { closesIssue, openPullClosing } from '../../daemon/core/closing-reference.ts'

describe('which text closes an issue', () => {
  const home = { owner: 'o', name: 'a' }
  const key = { ...home, number: 12 }

  test.each([
    'Fixes #12',
    'fix: it\n\nCLOSES: #12',
    'resolved o/a#12.',
    'It closed https://github.com/O/A/issues/12 and more',
    'closes GH-12',
    'Fixes #1, fixes #12',
    '`code` Closes #12 `code`',
  ])('%s', (text) => {
    expect(closesIssue(text, home, key)).toBe(true)
  })

  test.each([
    'See #12',
    'Fixes #123',
    'prefixes #12',
    'fixes o/b#12',
    'fixes https://github.com/o/b/issues/12',
    '`fixes #12`',
    '```\nfixes #12\n```',
    '<!-- fixes #12 -->',
    '<!-- a > b, closes #12 -->',
    'fixes the thing in #12',
    '',
  ])('not %j', (text) => {
    expect(closesIssue(text, home, key)).toBe(false)
  })

  test('in another repository a bare number means one of its own', () => {
    expect(closesIssue('fixes #12', { owner: 'o', name: 'b' }, key)).toBe(false)
    expect(closesIssue('fixes o/a#12', { owner: 'o', name: 'b' }, key)).toBe(true)
  })

  test('hostile text takes no time', () => {
    const parts = ['fixes ', '`', '<!--', '#', 'https://github.com/', '~~~', 'closes:']
    for (const part of parts) {
      const startedAt = performance.now()
      closesIssue(part.repeat(60_000 / part.length), home, key)
      // Far above what it takes, far below what anything quadratic does.
      expect(performance.now() - startedAt).toBeLessThan(2000)
    }
  })

  test('the first open pull request of a timeline that closes it', () => {
    const at = (number: number, isOpen: boolean, body: string) => ({
      id: 0,
      kind: 'cross-referenced',
      actor: 'bob',
      actorId: 5,
      createdAt: 0,
      label: null,
      pull: { repository: home, number, isOpen, author: 'bob', title: 't', body },
    })
    const events = [at(1, false, 'fixes #12'), at(2, true, 'see #12'), at(3, true, 'fixes #12')]
    expect(openPullClosing(events, key, 'us')?.number).toBe(3)
    expect(openPullClosing(events.slice(0, 2), key, 'us')).toBe(null)
    // Under `close_issue: never` ours only refers to the issue.
    const refers = [at(4, true, 'Refs #12\n\nDone.'), at(5, true, 'Refs #123')]
    expect(openPullClosing(refers, key, 'us')).toBe(null)
    expect(openPullClosing(refers, key, 'bob')?.number).toBe(4)
    expect(openPullClosing(refers.slice(1), key, 'bob')).toBe(null)
  })
})
