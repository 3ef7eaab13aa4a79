import { describe, expect, test } from '@jest/globals'
import { isFault } from '../../daemon/core/fault.ts'
import type { TreeChange } from '../../daemon/core/ports.ts'
import type { PublishPolicy } from '../../daemon/core/publish-policy.ts'
import { judgeTree } from '../../daemon/publish/judge-tree.ts'
import { POLICY } from './publish-scene.ts'

const file = (path: string, change: Partial<TreeChange> = {}): TreeChange => ({
  path,
  status: 'added',
  oldMode: '000000',
  newMode: '100644',
  newOid: 'o',
  size: 10,
  linkTarget: null,
  ...change,
})
const link = (path: string, linkTarget: string): TreeChange =>
  file(path, { newMode: '120000', linkTarget })
const removed = (path: string): TreeChange =>
  file(path, { status: 'deleted', newMode: '000000', size: 0 })

/** 'fine', or the code and the first words of what is wrong. */
function verdict(
  changes: readonly TreeChange[],
  change: Partial<PublishPolicy> = {},
  linksOut: readonly string[] = [],
): string {
  const captured = { treeOid: 't', changes, submodulesKept: [], linksOut }
  try {
    judgeTree(captured, { ...POLICY, ...change }, '/the tree')
    return 'fine'
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    expect(thrown.details['tree']).toBe('/the tree')
    return `${thrown.code}: ${String(thrown.details['reason'])}`
  }
}

describe('what a worker must not leave', () => {
  test.each([
    '.git/config',
    'a/.git/hooks/pre-commit',
    '.GIT/config',
    'sub/.Git',
    '.git./x',
    '.git /x',
    '.git .:stream',
    '.git:alternate/x',
    'git~1/config',
    '.g\u200Cit/config',
    '\uFF0Egit/config',
  ])('a path that is a git directory to some file system: %j', (path) => {
    expect(verdict([file('fine'), file(path)])).toMatch(/^worker\/tree-unusable: .* git directory$/)
  })

  test.each(['.gitignore', '.github/x', 'a.git/x', 'git/x', '.git-blame-ignore-revs', 'x.git:y'])(
    '%s is none',
    (path) => {
      expect(verdict([file(path)])).toBe('fine')
    },
  )

  test('a link out of the tree', () => {
    expect(verdict([link('l', 'a/../x')])).toBe('fine')
    expect(verdict([link('l', 'a/../x')], {}, ['l', 'm'])).toBe(
      'worker/tree-unusable: "l" links to outside the tree',
    )
  })

  test('a repository of its own', () => {
    expect(verdict([file('sub', { newMode: '160000' })])).toMatch(/^worker\/tree-unusable: "sub"/)
  })
})

describe('what a human has to decide', () => {
  const protectedPaths = ['.github/workflows/**', '*.pem', 'Makefile', 'keys/']
  test.each([
    [file('.github/workflows/ci.yml'), true],
    [file('.github/workflows/deep/er/ci.yml'), true],
    [removed('.github/workflows/ci.yml'), true],
    [file('.GitHub/Workflows/CI.yml'), true],
    [file('.github/workflows/a\nb.yml'), true],
    [file('a.pem'), true],
    [file('.hidden.pem'), true],
    [file('makefile'), true],
    [file('keys/a/b'), true],
    [file('keys.txt'), false],
    [file('.github/other.yml'), false],
    [file('x/.github/workflows/ci.yml'), false],
    [file('x/a.pem'), false],
    [file('Makefile.am'), false],
  ])('a protected path: %j', (change, isProtected) => {
    const found = verdict([file('fine'), change], { protectedPaths })
    if (isProtected) expect(found).toMatch(/^publish\/policy: .* is protected \(protected_paths\)$/)
    else expect(found).toBe('fine')
    expect(verdict([change], { protectedPaths: [] })).toBe('fine')
  })

  test('one file too many', () => {
    const changes = [file('a'), removed('b'), file('c')]
    expect(verdict(changes, { maxChangedFiles: 3 })).toBe('fine')
    expect(verdict(changes, { maxChangedFiles: 2 })).toMatch(
      /^publish\/policy: 3 files changed, more than 2 \(max_changed_files\)/,
    )
  })

  test('a file or a whole that is a byte too large', () => {
    const changes = [file('a', { size: 60 }), file('b', { size: 40 })]
    expect(verdict(changes, { maxFileBytes: 60, maxDiffBytes: 100 })).toBe('fine')
    expect(verdict(changes, { maxFileBytes: 59 })).toMatch(/^publish\/policy: "a" has 60 bytes/)
    expect(verdict(changes, { maxDiffBytes: 99 })).toMatch(/^publish\/policy: 100 bytes changed/)
  })

  test('what the worker did wrong comes before what a human has to decide', () => {
    const changes = [file('Makefile'), link('l', '/x')]
    const found = verdict(changes, { protectedPaths, maxChangedFiles: 1 }, ['l'])
    expect(found).toMatch(/^worker\//)
  })

  test('nothing is always fine', () => {
    expect(verdict([], { maxChangedFiles: 0, maxDiffBytes: 0, maxFileBytes: 0 })).toBe('fine')
  })
})
