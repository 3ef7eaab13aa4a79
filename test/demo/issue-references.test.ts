import { describe, expect, test } from '@jest/globals'
import { closedIssues, mentionedIssues } from '../../daemon/demo/issue-references.ts'

const here = { owner: 'octo', name: 'app' }

describe('which issues a text closes', () => {
  test.each([
    ['Closes #1', [1]],
    ['closed #1, fixes #2; RESOLVED: #3', [1, 2, 3]],
    ['fix #1\nfixed #1', [1]],
    ['Closes octo/app#4', [4]],
    ['see #1', []],
    ['encloses #1', []],
    ['closes#1', []],
    ['closes #0', []],
    ['closes #1a', []],
    ['`closes #1` and ```\ncloses #2\n```', []],
    ['<!-- closes #1 -->', []],
  ])('%j', (text, numbers) => {
    expect(closedIssues(text, here).map(({ number }) => number)).toEqual(numbers)
  })

  test('one of another repository is not ours', () => {
    expect(closedIssues('Fixes other/thing#5', here)).toEqual([
      { owner: 'other', name: 'thing', number: 5 },
    ])
  })
})

describe('which issues a text mentions', () => {
  test.each([
    ['like #1 and octo/app#2', [1, 2]],
    ['(#3)', [3]],
    ['a#1 http://x/#2 &#3; ##4', []],
  ])('%j', (text, numbers) => {
    expect(mentionedIssues(text, here).map(({ number }) => number)).toEqual(numbers)
  })
})
