import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { JOURNAL_SCHEMA } from '../../daemon/state/journal-schema.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { prepareDirectories } from '../../daemon/state/prepare-directories.ts'
import { META_SCHEMA, QUEUE_SCHEMA } from '../../daemon/state/store-schema.ts'

describe('where things lie in the state directory', () => {
  const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
  const KEY = { owner: 'Owner', name: 'Re.Po', number: 12 }
  const layout = layoutOf('/state')

  test('the visible files of a run lie flat, the others in its directory', () => {
    const { directory, ...files } = layout.run(RUN)
    expect(directory).toBe(`/state/runs/${RUN}`)
    const tails = Object.values(files).map((path) => path.replace(directory, ''))
    const flat = tails.filter((tail) => !tail.startsWith('/'))
    expect(flat).toEqual(['.log', '.result.json', '.dry-run.md', '.heartbeat'])
    expect(tails).toEqual(expect.arrayContaining(['/journal.json', '/started.json', '/sup.lock']))
    expect(tails.filter((tail) => tail.lastIndexOf('/') > 0)).toEqual([])
  })

  test('repositories lie under lowercase names, because GitHub ignores case', () => {
    expect(layout.worktree(KEY, RUN)).toBe(`/state/worktrees/owner/re.po/${RUN}`)
    expect(layout.store(KEY)).toBe('/state/repos/owner/re.po.git')
  })

  test('a claim is named by the digest of the lowercase key and nothing else', () => {
    const digest = createHash('sha256').update('owner/re.po#12').digest('hex')
    expect(layout.claim(KEY)).toBe(`/state/claims/${digest}.claim`)
    expect(layout.claim({ owner: 'OWNER', name: 're.po', number: 12 })).toBe(layout.claim(KEY))
  })

  test('no key leads out of the claims folder', () => {
    for (const name of [`${'../'.repeat(3)}x`, '/x', 'a\u0000b', '..', 'x'.repeat(5000), 'a\nb']) {
      const path = layout.claim({ owner: name, name, number: 1 })
      expect(dirname(path)).toBe('/state/claims')
      expect(basename(path)).toMatch(/^[0-9a-f]{64}\.claim$/)
    }
  })

  test('no run id and no repository leads out of its folder', () => {
    for (const text of ['..', '../x', '', 'x/y', RUN.toLowerCase(), `${RUN}/..`]) {
      expect(() => layout.run(text)).toThrow(/is not a run id/)
      expect(() => layout.worktree(KEY, text)).toThrow(/is not a run id/)
    }
    for (const name of ['..', '.', 'a/b', '']) {
      expect(() => layout.worktree({ owner: 'a', name }, RUN)).toThrow(/name of a repository/)
      expect(() => layout.store({ owner: 'a', name })).toThrow(/name of a repository/)
      expect(() => layout.store({ owner: name, name: 'a' })).toThrow(/name of a repository/)
    }
  })

  test('no two things share a path', () => {
    const { run, directories, claim, worktree, store, ...files } = layout
    const paths = [
      ...Object.values(files),
      ...Object.values(directories),
      ...Object.values(run(RUN)),
      claim(KEY),
      worktree(KEY, RUN),
      store(KEY),
    ]
    expect(new Set(paths).size).toBe(paths.length)
  })

  test('a slash at the end changes nothing', () => {
    expect(layoutOf('/state/').stateDir).toBe('/state')
    expect(layoutOf('/state//').queue).toBe('/state/state.json')
  })
})

describe('which directories are prepared', () => {
  let root: string
  let stateDir: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'prepare-'))
    stateDir = join(root, 'deep', 'state')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const refusal = (path: string, reason: RegExp): object =>
    expect.objectContaining({
      code: 'state/directory-refused',
      details: { path, reason: expect.stringMatching(reason) },
    })
  const thrown = (): unknown => {
    try {
      prepareDirectories(stateDir)
    } catch (error) {
      return error
    }
    return null
  }

  test('the state directory and what lies in it are made for the owner only', () => {
    prepareDirectories(stateDir)
    expect(readdirSync(stateDir).sort()).toEqual(['cache', 'claims', 'repos', 'runs', 'worktrees'])
    for (const name of ['.', ...readdirSync(stateDir)]) {
      expect(statSync(join(stateDir, name)).mode & 0o777).toBe(0o700)
    }
  })

  test('a second time changes nothing', () => {
    prepareDirectories(stateDir)
    chmodSync(stateDir, 0o750)
    writeFileSync(join(stateDir, 'runs', 'kept'), '')
    prepareDirectories(stateDir)
    expect(statSync(stateDir).mode & 0o777).toBe(0o750)
    expect(existsSync(join(stateDir, 'runs', 'kept'))).toBe(true)
  })

  test('a symbolic link is refused, wherever it leads, and nothing is made behind it', () => {
    const target = join(root, 'target')
    mkdirSync(join(root, 'deep'))
    symlinkSync(target, stateDir)
    expect(thrown()).toEqual(refusal(stateDir, /symbolic link/))
    mkdirSync(target)
    expect(thrown()).toEqual(refusal(stateDir, /symbolic link/))
    expect(readdirSync(target)).toEqual([])
    stateDir = `${stateDir}/`
    expect(thrown()).toEqual(refusal(stateDir.slice(0, -1), /symbolic link/))
  })

  test('a link or file in the place of a sub-directory is refused', () => {
    mkdirSync(stateDir, { recursive: true })
    symlinkSync(root, join(stateDir, 'claims'))
    expect(thrown()).toEqual(refusal(join(stateDir, 'claims'), /symbolic link/))
    rmSync(join(stateDir, 'claims'))
    writeFileSync(join(stateDir, 'claims'), '')
    expect(thrown()).toEqual(refusal(join(stateDir, 'claims'), /not a directory/))
  })

  test('a directory of another user is refused, and nothing is made in it', () => {
    const isRoot = process.geteuid?.() === 0
    if (isRoot) {
      mkdirSync(stateDir, { recursive: true })
      chownSync(stateDir, 65_534, 65_534)
    } else {
      stateDir = '/'
    }
    expect(thrown()).toEqual(refusal(stateDir, isRoot ? /with id 65534/ : /with id 0/))
    if (isRoot) expect(readdirSync(stateDir)).toEqual([])
  })
})

const SCHEMAS = { queue: QUEUE_SCHEMA, meta: META_SCHEMA, journal: JOURNAL_SCHEMA }

type Node = Readonly<Record<string, unknown>>

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The schema and every one inside it, with where it stands. */
function walk(node: Node, at: string): readonly (readonly [string, Node])[] {
  const { properties, items, additionalProperties } = node
  const fields = isNode(properties) ? Object.entries(properties) : []
  const inner: readonly (readonly [string, unknown])[] = [
    ...fields,
    ['[]', items],
    ['*', additionalProperties],
  ]
  return [
    [at, node],
    ...inner.flatMap(([name, value]) => (isNode(value) ? walk(value, `${at}.${name}`) : [])),
  ]
}

describe('how strict the schemas of stored files are', () => {
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const nodes = walk(schema, name)

    test(`${name}: every object is closed, or a map of values that are checked`, () => {
      const open = nodes.filter(
        ([, node]) =>
          node['type'] === 'object' &&
          node['additionalProperties'] !== false &&
          !isNode(node['additionalProperties']),
      )
      expect(open.map(([at]) => at)).toEqual([])
    })

    test(`${name}: every value has a type, every list of names allows null where null is allowed`, () => {
      expect(nodes.filter(([, node]) => typeof node['type'] !== 'string')).toEqual([])
      const wrong = nodes.filter(([, { enum: names, nullable }]) =>
        Array.isArray(names) ? names.includes(null) !== (nullable === true) : false,
      )
      expect(wrong.map(([at]) => at)).toEqual([])
    })

    test(`${name}: it names its format and version`, () => {
      expect(schema).toMatchObject({
        required: expect.arrayContaining(['format', 'version']),
        properties: {
          format: { const: expect.stringMatching(/^caduceus-/) },
          version: { const: 2 },
        },
      })
    })
  }
})
