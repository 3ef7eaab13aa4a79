import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type Journal, PUBLISH_PLANS, RUN_STAGES } from '../../daemon/core/journal.ts'
import type { Journals } from '../../daemon/core/ports.ts'
import { JOURNAL_SCHEMA } from '../../daemon/state/journal-schema.ts'
import { openJournals } from '../../daemon/state/journals.ts'
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
    expect(tails).toEqual(expect.arrayContaining(['/journal.json', '/exit.json', '/sup.lock']))
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

describe('journals', () => {
  const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
  const OTHER = '01J00000000000000000000000'
  const NOW = '2026-01-01T00:00:00.000Z'
  const PROCESS = { pid: 12, startTicks: 345, bootId: 'b', session: 12 }

  const STARTING: Journal = {
    runId: RUN,
    key: { owner: 'Owner', name: 'Repo', number: 7 },
    ticket: 'code',
    generation: 1,
    previousRunId: null,
    attempt: 1,
    dryRun: false,
    build: 'abc',
    createdAt: NOW,
    epoch: 1,
    adoptions: 0,
    stage: 'starting',
    branch: 'automation/issue-7-x',
    base: null,
    remote: null,
    treePath: '/tree',
    indexPath: '/index',
    label: '🤖 auto-fix',
    labeledEventId: null,
    runner: null,
    ownedUntil: null,
    publication: null,
    markers: {},
    intent: null,
    notBefore: null,
    trouble: null,
    outcome: null,
    endedIn: null,
  }

  /** A value in every field. */
  const FULL: Journal = {
    ...STARTING,
    stage: 'publishing',
    dryRun: true,
    base: { storePath: '/store', branch: 'develop', oid: 'a'.repeat(40) },
    remote: {
      clonePath: '/clone',
      settings: [{ key: ['remote.origin.url'], value: ['https://', 'github.com/o/r'] }],
    },
    labeledEventId: 17_000_000_001,
    runner: PROCESS,
    publication: {
      plan: 'code',
      commitMessage: 'fix\n\n🤖 "\u0000',
      commitDateSeconds: 1_767_225_600,
      pullTitle: 'title',
      pullBody: 'x'.repeat(65_536),
      comment: 'comment',
      actorId: 1,
      actorLogin: 'bot',
      treeOid: null,
      changedFiles: 2000,
    },
    markers: {
      committed: 'a',
      pushed: 'b',
      pr_created: 'c',
      commented: 'd',
      label_removed: 'e',
      closed: 'f',
    },
    intent: {
      stage: 'commented',
      attempt: 2,
      serverTime: NOW,
      deadlineAt: NOW,
      bootId: 'b',
      answered: '500',
    },
    notBefore: NOW,
    trouble: { count: 2, since: NOW },
    outcome: {
      on: 'blocked',
      at: NOW,
      runId: RUN,
      error: { code: 'publish/policy', message: 'no', at: NOW },
      blocked: { source: 'policy', hint: 'look' },
      notBefore: NOW,
      pull: { number: 8, url: 'https://github.com/o/r/pull/8' },
      labeledEventId: 1,
      seenUpdatedAt: NOW,
      ticket: 'investigation',
      jitter: 0.5,
    },
  }

  let stateDir: string
  let journals: Journals
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'journals-'))
    journals = openJournals(stateDir)
  })
  afterEach(() => rmSync(stateDir, { recursive: true, force: true }))

  const path = (runId: string): string => join(stateDir, 'runs', runId, 'journal.json')
  const thrownBy = (run: () => unknown): unknown => {
    try {
      run()
    } catch (error) {
      return error
    }
    return null
  }
  const stored = (changed: object): unknown => ({
    format: 'caduceus-run',
    version: 2,
    ...STARTING,
    ...changed,
  })
  const overwrite = (runId: string, content: unknown): void =>
    writeFileSync(path(runId), typeof content === 'string' ? content : JSON.stringify(content))

  describe('what a journal keeps', () => {
    test('every field comes back as it was written', () => {
      for (const journal of [
        STARTING,
        FULL,
        { ...FULL, outcome: { on: 'merged', at: NOW } as const },
      ]) {
        journals.write(journal)
        expect(openJournals(stateDir).read(RUN)).toEqual(journal)
      }
    })

    test('every stage and every plan can be stored', () => {
      journals.write(FULL)
      for (const stage of Object.keys(RUN_STAGES)) {
        for (const plan of Object.keys(PUBLISH_PLANS)) {
          overwrite(RUN, stored({ stage, publication: { ...FULL.publication, plan } }))
          expect(journals.read(RUN)).toMatchObject({ stage, publication: { plan } })
        }
      }
    })

    test('there is none before it is written, and reading makes none', () => {
      expect(journals.read(RUN)).toBe(null)
      expect(journals.list()).toEqual([])
      expect(readdirSync(stateDir)).toEqual([])
    })

    test('the file is for the owner only, has format and version, and is replaced as a whole', () => {
      journals.write(STARTING)
      const { ino, mode } = statSync(path(RUN))
      expect(mode & 0o777).toBe(0o600)
      expect(statSync(join(stateDir, 'runs', RUN)).mode & 0o777).toBe(0o700)
      expect(JSON.parse(readFileSync(path(RUN), 'utf8'))).toEqual({
        format: 'caduceus-run',
        version: 2,
        ...STARTING,
      })
      journals.write(FULL)
      expect(statSync(path(RUN)).ino).not.toBe(ino)
      expect(readdirSync(join(stateDir, 'runs', RUN))).toEqual(['journal.json'])
    })

    test('what could not be read back is refused and the old journal stays', () => {
      journals.write(STARTING)
      for (const wrong of [
        { ...STARTING, notBefore: 'soon' },
        { ...STARTING, epoch: Number.NaN },
        { ...STARTING, key: { owner: 'a', name: '..', number: 1 } },
        { ...STARTING, more: 1 },
      ]) {
        expect(thrownBy(() => journals.write(wrong))).toMatchObject({ code: 'internal/unexpected' })
      }
      const huge = { ...STARTING, label: 'x'.repeat(5_000_000) }
      expect(thrownBy(() => journals.write(huge))).toMatchObject({ code: 'sys/io' })
      expect(journals.read(RUN)).toEqual(STARTING)
    })

    test('a run id that is none reaches no path', () => {
      expect(() => journals.read('../../x')).toThrow(/is not a run id/)
      expect(() => journals.write({ ...STARTING, runId: '../../x' })).toThrow(/is not a run id/)
    })
  })

  describe('what a bad journal does', () => {
    const cases: readonly (readonly [string, unknown, string])[] = [
      ['half a journal', JSON.stringify(STARTING).slice(0, 90), 'state/corrupt'],
      ['an empty file', '', 'state/corrupt'],
      ['an unknown stage', stored({ stage: 'x' }), 'state/corrupt'],
      ['the journal of another run', stored({ runId: OTHER }), 'state/corrupt'],
      ['a newer journal', { format: 'caduceus-run', version: 3 }, 'state/format-newer'],
    ]
    for (const [name, content, code] of cases) {
      test(`${name} is refused by name and left as it is; the others are read`, () => {
        journals.write(STARTING)
        journals.write({ ...FULL, runId: OTHER })
        overwrite(RUN, content)
        const bytes = readFileSync(path(RUN))
        expect(thrownBy(() => journals.read(RUN))).toMatchObject({
          code,
          message: expect.stringContaining(path(RUN)),
        })
        expect(readFileSync(path(RUN))).toEqual(bytes)
        expect(readdirSync(join(stateDir, 'runs', RUN))).toEqual(['journal.json'])
        expect(journals.list()).toEqual([RUN, OTHER])
        expect(journals.read(OTHER)?.runId).toBe(OTHER)
      })
    }

    test('a link in its place is not followed', () => {
      journals.write({ ...STARTING, runId: OTHER })
      mkdirSync(join(stateDir, 'runs', RUN))
      symlinkSync(path(OTHER), path(RUN))
      expect(thrownBy(() => journals.read(RUN))).toMatchObject({ code: 'sys/io' })
      expect(thrownBy(() => journals.write(STARTING))).toMatchObject({ code: 'sys/io' })
      expect(journals.read(OTHER)?.runId).toBe(OTHER)
    })
  })

  describe('which runs are listed', () => {
    test('the run directories, oldest first, and nothing else that lies there', () => {
      journals.write({ ...STARTING, runId: OTHER })
      journals.write(STARTING)
      const runs = join(stateDir, 'runs')
      writeFileSync(join(runs, `${RUN}.log`), '')
      writeFileSync(join(runs, RUN.replace('H', 'K')), 'a file')
      symlinkSync(join(runs, RUN), join(runs, RUN.replace('H', 'M')))
      mkdirSync(join(runs, 'notes'))
      mkdirSync(join(runs, RUN.replace('H', 'N')))
      expect(journals.list()).toEqual([RUN, OTHER, RUN.replace('H', 'N')])
      expect(journals.read(RUN.replace('H', 'N'))).toBe(null)
    })
  })
})
