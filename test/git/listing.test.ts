import { describe, expect, test } from '@jest/globals'
import { isGitDirectoryName } from '../../daemon/core/git-directory-name.ts'
import { hasStoredForm } from '../../daemon/git/describe-changes.ts'
import {
  bytePathOf,
  displayPath,
  nulTerminated,
  parseAttribute,
  parseBatch,
  parsePaths,
  parseRawChanges,
  parseSizes,
  parseStaged,
  quotePath,
  toBytes,
} from '../../daemon/git/listing.ts'
import { classifyPushFailure, describeRejection } from '../../daemon/git/push-branch.ts'
import { isRecentEnough, parseGitVersion } from '../../daemon/git/run-git.ts'
import { isBranchName, isObjectId } from '../../daemon/git/store-refs.ts'

const OID = 'a'.repeat(40)
const NONE = '0'.repeat(40)

describe('git’s listings', () => {
  test('of raw changes are read whole, newlines and odd bytes included', () => {
    const output = Buffer.from(
      `:100644 000000 ${OID} ${NONE} D\0a\nb\0:000000 120000 ${NONE} ${OID} A\0\xff \0`,
      'latin1',
    )
    expect(parseRawChanges(output)).toEqual([
      {
        path: 'a\nb',
        status: 'D',
        oldMode: '100644',
        newMode: '000000',
        oldOid: OID,
        newOid: NONE,
      },
      {
        path: '\xff ',
        status: 'A',
        oldMode: '000000',
        newMode: '120000',
        oldOid: NONE,
        newOid: OID,
      },
    ])
    expect(parseRawChanges(Buffer.from(''))).toEqual([])
  })

  test('of an unknown form are a fault, never a change lost', () => {
    for (const text of ['x\0y\0', `:100644 000000 ${OID} ${NONE} D\0`]) {
      expect(() => parseRawChanges(Buffer.from(text))).toThrow('unknown form')
    }
    expect(() => parseStaged(Buffer.from('x\0'))).toThrow('unknown form')
  })

  test('of an index, of paths, attributes, sizes and contents are read', () => {
    expect(parseStaged(Buffer.from(`160000 ${OID} 0\tmod\ta\0`))).toEqual([
      { mode: '160000', oid: OID, path: 'mod\ta' },
    ])
    expect(parsePaths(Buffer.from('a\0b/\0'))).toEqual(['a', 'b/'])
    expect([...parseAttribute(Buffer.from('a\0filter\0lfs\0b\0filter\0unspecified\0'))]).toEqual([
      ['a', 'lfs'],
      ['b', 'unspecified'],
    ])
    expect([...parseSizes(Buffer.from(`${OID} 12\n${NONE} 0\n`))]).toEqual([
      [OID, 12],
      [NONE, 0],
    ])
    const batch = parseBatch(
      Buffer.from(`${OID} blob 3\na\nb\nb${OID.slice(1)} missing\n${NONE} blob 0\n\n`),
    )
    expect([...batch].map(([oid, content]) => [oid, content.toString()])).toEqual([
      [OID, 'a\nb'],
      [NONE, ''],
    ])
  })
})

describe('a path', () => {
  test('goes through as bytes, and is shown as text or with its odd bytes escaped', () => {
    const odd = Buffer.from([0x61, 0xff, 0x0a]).toString('latin1')
    expect([...nulTerminated([odd])]).toEqual([0x61, 0xff, 0x0a, 0])
    expect(displayPath(odd)).toBe('a\\xff\n')
    expect(displayPath(bytePathOf('ü/ß'))).toBe('ü/ß')
    expect(toBytes(bytePathOf('ü'))).toEqual(Buffer.from('ü'))
    expect(quotePath('a\nb')).toBe('"a\\nb"')
  })

  test.each([
    '.git',
    '.GIT',
    '.Git ',
    '.git.',
    '.git . .',
    'GIT~1',
    'git~12',
    '.g\u200dit',
    '.git:x',
    '.git::$INDEX_ALLOCATION',
    '．ｇｉｔ',
  ])('has a part that some file system takes for .git: %j', (name) => {
    expect(isGitDirectoryName(name)).toBe(true)
  })

  test.each(['.github', '.gitignore', 'git', 'x.git', '.git2', 'git~x', '..git'])(
    'has an innocent part: %j',
    (name) => {
      expect(isGitDirectoryName(name)).toBe(false)
    },
  )
})

describe('a name', () => {
  test('of a branch is what git accepts', () => {
    for (const good of ['main', 'next/v2', 'a.b', 'ü', 'a@b', '@{'.slice(0, 1) + 'x'])
      expect([good, isBranchName(good)]).toEqual([good, true])
    for (const bad of [
      '',
      '-x',
      'a b',
      'a..b',
      'a~1',
      'a^',
      'a:b',
      'a?',
      '*',
      'a[',
      'a\\b',
      '/a',
      'a/',
      'a//b',
      '.a',
      'a/.b',
      'a.lock',
      'a.lock/b',
      'a.',
      '@',
      'a@{b',
      'a\u007f',
      'a\nb',
    ]) {
      expect([bad, isBranchName(bad)]).toEqual([bad, false])
    }
  })

  test('of an object is a whole id', () => {
    expect(
      [OID, 'b'.repeat(64), 'HEAD', OID.slice(1), OID.toUpperCase(), `${OID}\n`].map(isObjectId),
    ).toEqual([true, true, false, false, false, false])
  })
})

describe('the stored form', () => {
  test.each([
    ['lfs', 'version https://git-lfs.github.com/spec/v1\noid', true],
    ['lfs', 'content', false],
    ['lfs', '', true],
    ['git-crypt', '\0GITCRYPT\0xx', true],
    ['git-crypt-team', 'in clear', false],
    ['crypt', 'U2FsdGVkX1+abc', true],
    ['nbstripout', 'content', true],
    ['unspecified', 'content', true],
  ])('of filter %s: %j is one: %s', (filter, content, expected) => {
    expect(hasStoredForm(filter, Buffer.from(content))).toBe(expected)
  })
})

describe('a failed push', () => {
  const line = (summary: string): string => `To hub\n!\t${OID}:refs/heads/x\t${summary}\nDone\n`

  test.each([
    ['exists', line('[rejected] (stale info)'), ''],
    ['exists', line('[remote rejected] (reference already exists)'), ''],
    [
      'refused',
      line('[remote rejected] (pre-receive hook declined)'),
      'remote: error: GH013: Repository rule violations found',
    ],
    [
      'refused',
      line(
        '[remote rejected] (refusing to allow an OAuth App to create or update workflow `.github/workflows/x.yml` without `workflow` scope)',
      ),
      '',
    ],
    ['refused', line('[remote rejected] (protected branch hook declined)'), ''],
    ['failed', line('[remote rejected] (Internal Server Error)'), ''],
    ['failed', line('[remote rejected] (unpacker error)'), ''],
    ['failed', line('[remote rejected] (cannot lock ref)'), ''],
    [
      'failed',
      '',
      "fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 403",
    ],
    [
      'failed',
      '',
      "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
    ],
    [
      'failed',
      '',
      'git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.',
    ],
    ['failed', '', 'ERROR: Repository not found.\nfatal: Could not read from remote repository.'],
    [
      'unknown',
      '',
      'error: RPC failed; HTTP 500 curl 22\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly',
    ],
    [
      'unknown',
      '',
      'Connection to github.com closed by remote host.\nfatal: the remote end hung up unexpectedly',
    ],
    ['unknown', '', ''],
  ] as const)('is %s', (kind, stdout, stderr) => {
    expect(classifyPushFailure(stdout, stderr)).toBe(kind)
  })

  test('is told in the server’s words, bounded', () => {
    const stderr =
      'remote: Resolving deltas: 100% (1/1), done.\nremote: error: GH013: rules\nremote: \nremote: - Cannot update       \nTo hub\n'
    expect(describeRejection(line('[remote rejected] (declined)'), stderr)).toBe(
      'error: GH013: rules - Cannot update [remote rejected] (declined)',
    )
    expect(describeRejection('', `remote: ${'x'.repeat(9_000)}`)).toHaveLength(4_001)
  })
})

describe('the version of git', () => {
  test.each([
    ['git version 2.39.5', true],
    ['git version 2.32.0 (Apple Git-132)', true],
    ['git version 2.31.9', false],
    ['git version 3.0.1.windows.1', true],
  ])('%s is recent enough: %s', (output, expected) => {
    const version = parseGitVersion(output)
    expect(version !== null && isRecentEnough(version)).toBe(expected)
  })

  test('is not read out of anything else', () => {
    expect(parseGitVersion('busybox')).toBe(null)
  })
})
