import {
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
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type Journal, PUBLISH_PLANS, RUN_STAGES } from '../../daemon/core/journal.ts'
import type { Journals } from '../../daemon/core/ports.ts'
import { openJournals } from '../../daemon/state/journals.ts'

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
