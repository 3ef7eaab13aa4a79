import {
  chmodSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { countEffects } from '../../daemon/core/effects.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import type { Phase, QueueEntry } from '../../daemon/core/queue-state.ts'
import { makeRunId } from '../../daemon/core/run-id.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { collect, MAX_REMOVALS, type Seen } from '../../daemon/engine/collect.ts'
import { tick } from '../../daemon/engine/tick.ts'
import type { TickPorts } from '../../daemon/engine/tick-ports.ts'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import { JOURNAL, START } from '../publish/publish-world.ts'
import { type GitScene, makeGitScene } from '../support/git-scene.ts'
import { DAY, entryOf, issueOf, pollOf, REPOSITORY, TRIGGERS, useScene } from './engine-scene.ts'

// Sweeps over a real state directory and a real store; ages are set on the files themselves.

const HOUR = 3_600_000
const scene = useScene()
let hub: GitScene
let store: string
let tip: string

beforeAll(async () => {
  hub = makeGitScene()
  const { base } = await hub.checkOut()
  store = base.storePath
  tip = base.oid
})
afterAll(() => hub.remove())
beforeEach(() => {
  // Files are dated by the real clock.
  scene().advance(Math.max(Date.now() - START, 0) + 1000)
  scene().git.tidyStore = async (repository, runs) => hub.git.tidyStore(repository, runs)
  scene().git.removeTree = async (tree) => hub.git.removeTree(tree)
  for (const ref of refs()) hub.run(store, 'update-ref', '-d', ref)
})

const runId = (number: number): string => makeRunId(START, new Uint8Array(10).fill(number))
const settled = (number: number, issue: number): Journal => ({
  ...JOURNAL,
  runId: runId(number),
  key: { ...JOURNAL.key, number: issue },
  stage: 'settled',
  treePath: scene().layout.worktree(REPOSITORY, runId(number)),
})

/** Writes a file, its folders too, and dates it. */
function put(path: string, ageMs: number): string {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, 'x')
  return age(path, ageMs)
}
function age(path: string, ageMs: number): string {
  const seconds = (scene().now() - ageMs) / 1000
  lutimesSync(path, seconds, seconds)
  return path
}
function putFolder(path: string, ageMs: number): string {
  mkdirSync(path, { recursive: true })
  return age(path, ageMs)
}
/** A journal, and a tree, as a run left them. */
function putRun(journal: Journal, ageMs: number, hasTree = true): string {
  const { runId: id } = journal
  scene().ports.journals.write(journal)
  age(scene().layout.run(id).journal, ageMs)
  put(scene().layout.run(id).transcript, ageMs)
  if (hasTree) {
    put(join(scene().layout.worktree(REPOSITORY, id), 'a.txt'), ageMs)
    age(scene().layout.worktree(REPOSITORY, id), ageMs)
    put(scene().layout.run(id).index, ageMs)
  }
  return id
}
const hasTree = (number: number): boolean =>
  existsSync(scene().layout.worktree(REPOSITORY, runId(number)))
const hasRun = (number: number): boolean => existsSync(scene().layout.run(runId(number)).journal)
const refs = (): readonly string[] =>
  hub.run(store, 'for-each-ref', '--format=%(refname)', 'refs/runs/').split('\n').filter(Boolean)
const putRef = (number: number): void =>
  void hub.run(store, 'update-ref', `refs/runs/${runId(number)}`, tip)

const NOTHING_SEEN: Seen = { watched: [REPOSITORY], usable: [REPOSITORY], polls: new Map() }
const sweep = async (ports: Partial<TickPorts> = {}, seen = NOTHING_SEEN) =>
  collect({ ...scene().ports, ...ports, deadlineAt: Number.POSITIVE_INFINITY }, seen)
/** Everything below the state directory but what the store keeps for itself. */
const everything = (): readonly string[] =>
  readdirSync(scene().layout.stateDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/^(?:state|tick)[._]/.test(name))
    .sort()
const removed = (): readonly unknown[] =>
  scene()
    .logged.filter(({ event }) => event === 'leftover removed')
    .map(({ fields }) => fields['path'])

/** One of each kind, twice: what goes, and the same a little younger or still needed. */
async function furnish(): Promise<Readonly<{ goes: readonly string[]; stays: readonly string[] }>> {
  const { layout } = scene()
  const { stateDir, directories } = layout
  const temporary = (folder: string, tail: string): string =>
    join(folder, `.journal.json.123.0123456789${tail}.tmp`)
  const folders = [stateDir, directories.runs, directories.claims, join(directories.cache, 'http')]
  const goes = folders.map((folder) => put(temporary(folder, 'ab'), HOUR))
  const stays = folders.flatMap((folder) => [
    put(temporary(folder, 'cd'), HOUR - 60_000),
    put(join(folder, '.mine.tmp'), 90 * DAY),
  ])
  goes.push(putFolder(layout.run(runId(1)).directory, HOUR))
  stays.push(putFolder(layout.run(runId(2)).directory, HOUR - 60_000))
  goes.push(put(layout.run(runId(3)).transcript, 30 * DAY))
  stays.push(put(layout.run(runId(4)).transcript, 29 * DAY))

  const tree = (number: number): string => layout.worktree(REPOSITORY, runId(number))
  goes.push(putFolder(tree(5), DAY))
  stays.push(putFolder(tree(6), DAY - 60_000))
  putRun(settled(7, 1), DAY)
  goes.push(tree(7))
  stays.push(layout.run(runId(7)).journal)
  putRun(settled(8, 2), 29 * DAY)
  stays.push(tree(8))
  await scene().put(entryOf(2, { phase: 'needs_attention', lastRunId: runId(8) }))
  putRun(settled(9, 3), 30 * DAY)
  putRef(9)
  goes.push(tree(9), layout.run(runId(9)).transcript, layout.run(runId(9)).directory)
  putRef(8)

  scene().leave({ ...settled(10, 4), stage: 'launching' }, true)
  age(layout.run(runId(10)).journal, 90 * DAY)
  stays.push(putFolder(tree(10), 90 * DAY), layout.run(runId(10)).journal)

  const archived = (number: number): string => layout.archived(REPOSITORY, runId(number))
  put(join(archived(11), 'a.txt'), 0)
  goes.push(age(archived(11), 30 * DAY))
  stays.push(putFolder(archived(12), 29 * DAY))
  goes.push(putFolder(join(directories.worktrees, 'gone/away'), HOUR))
  stays.push(putFolder(join(directories.worktrees, 'acme/gears'), HOUR - 60_000))
  stays.push(put(join(directories.worktrees, 'acme/widgets/notes.txt'), 90 * DAY))
  return { goes, stays }
}

describe('what does a sweep remove?', () => {
  test('of each kind exactly what is old enough and needed by nobody', async () => {
    const { goes, stays } = await furnish()
    expect([...goes, ...stays].filter((path) => !existsSync(path))).toEqual([])
    expect(await sweep()).toEqual([])
    expect(goes.filter((path) => existsSync(path))).toEqual([])
    expect(stays.filter((path) => !existsSync(path))).toEqual([])
    expect(refs()).toEqual([`refs/runs/${runId(8)}`])
    expect(hub.run(store, 'fsck', '--strict')).toBe('')
  })

  test('a process that dies after any of its effects leaves what the next sweep finishes', async () => {
    const wholeOf = async (): Promise<readonly string[]> => {
      for (const _ of [1, 2, 3]) {
        scene().advance(HOUR)
        expect(await sweep()).toEqual([])
      }
      return [...everything(), ...refs()]
    }
    const before = scene().layout.stateDir
    const again = async (): Promise<void> => {
      rmSync(before, { recursive: true })
      scene().die(runId(10))
      await furnish()
    }
    await furnish()
    const whole = await wholeOf()
    let effects = 0
    let lastOne = Number.POSITIVE_INFINITY
    for (let dies = 1; dies <= lastOne; dies += 1) {
      await again()
      effects = 0
      const dying = dyingPorts(dies, () => {
        effects += 1
      })
      await sweep(dying)
      if (effects < dies) lastOne = dies
      expect(await wholeOf()).toEqual(whole)
    }
    expect(lastOne).toBeGreaterThan(14)
  })

  test('a link in the place of a folder is reported and left, and so is what lies behind it', async () => {
    const { directories, worktree, archived, run } = scene().layout
    const elsewhere = putFolder(join(scene().root, 'elsewhere'), 90 * DAY)
    const behind = put(join(elsewhere, runId(1), 'precious.txt'), 90 * DAY)
    for (const path of [worktree(REPOSITORY, runId(1)), archived(REPOSITORY, runId(2))]) {
      mkdirSync(join(path, '..'), { recursive: true })
    }
    mkdirSync(directories.runs)
    const links = [
      join(directories.worktrees, 'evil'),
      join(directories.worktrees, 'acme/evil'),
      worktree(REPOSITORY, runId(1)),
      archived(REPOSITORY, runId(2)),
      run(runId(3)).directory,
    ]
    for (const link of links) {
      symlinkSync(elsewhere, link)
      age(link, 90 * DAY)
    }
    const problems = await sweep()
    expect(problems.map(({ where }) => where).sort()).toEqual([...links].sort())
    expect(links.filter((link) => !existsSync(link))).toEqual([])
    expect(existsSync(behind)).toBe(true)
  })

  test('a link in the place of the attic is not looked behind', async () => {
    const elsewhere = join(scene().root, 'elsewhere')
    const behind = putFolder(join(elsewhere, 'acme/widgets', runId(1)), 90 * DAY)
    mkdirSync(scene().layout.stateDir, { recursive: true })
    symlinkSync(elsewhere, scene().layout.attic)
    expect(await sweep()).toEqual([])
    expect(existsSync(behind)).toBe(true)
  })

  test('a run whose journal is damaged is kept whole and reported', async () => {
    putRun(settled(1, 1), 90 * DAY)
    const journal = scene().layout.run(runId(1)).journal
    writeFileSync(journal, '{')
    age(journal, 90 * DAY)
    putRun(settled(2, 2), 90 * DAY)
    const problems = await sweep()
    expect(problems.length).toBeGreaterThan(0)
    for (const { thrown } of problems) expect(thrown).toMatchObject({ code: 'state/corrupt' })
    expect([hasRun(1), hasTree(1), hasRun(2), hasTree(2)]).toEqual([true, true, false, false])
  })

  test.each(['supervisorLock', 'treeLock'] as const)(
    'nothing of a run goes while somebody holds its %s',
    async (name) => {
      putRun(settled(1, 1), 90 * DAY)
      const lock = tryLock(scene().layout.run(runId(1))[name])
      try {
        expect(await sweep()).toEqual([])
        expect([hasRun(1), hasTree(1)]).toEqual([true, true])
      } finally {
        lock?.close()
      }
      scene().advance(HOUR)
      await sweep()
      expect([hasRun(1), hasTree(1)]).toEqual([false, false])
    },
  )

  test('nothing of an issue goes while the claim of another run of it is held', async () => {
    putRun(settled(1, 1), 90 * DAY)
    scene().leave({ ...settled(2, 1), stage: 'owned' }, true)
    await sweep()
    expect([hasRun(1), hasTree(1)]).toEqual([true, true])
    scene().die(runId(2))
    scene().advance(HOUR)
    await sweep()
    expect([hasRun(1), hasTree(1), hasRun(2)]).toEqual([false, false, true])
  })

  test('an issue that changed lately keeps its last run, however old that is', async () => {
    putRun(settled(1, 1), 90 * DAY)
    const changed = toTimestamp(scene().now() - 29 * DAY)
    const entry: Partial<QueueEntry> = { phase: 'needs_attention', lastRunId: runId(1) }
    await scene().put(entryOf(1, { ...entry, updatedAt: changed }))
    await sweep()
    expect([hasRun(1), hasTree(1)]).toEqual([true, true])
    scene().advance(DAY)
    await sweep()
    expect([hasRun(1), hasTree(1)]).toEqual([false, false])
  })

  test('with the collecting of trees turned off files go and trees stay', async () => {
    putRun(settled(1, 1), 90 * DAY)
    const { retention } = scene().ports.settings
    await sweep({
      settings: { ...scene().ports.settings, retention: { ...retention, treeMs: null } },
    })
    expect([hasRun(1), hasTree(1)]).toEqual([false, true])
  })

  test('while somebody works on the store its runs stay; locks that a killed git left go', async () => {
    putRun(settled(1, 1), 90 * DAY)
    putRef(1)
    const left = join(store, 'packed-refs.lock')
    writeFileSync(left, '')
    age(left, HOUR)
    const lock = tryLock(store.replace(/\.git$/, '.lock'))
    try {
      expect(await sweep()).toEqual([])
      expect([hasRun(1), refs().length, existsSync(left)]).toEqual([true, 1, true])
    } finally {
      lock?.close()
    }
    scene().advance(HOUR)
    expect(await sweep()).toEqual([])
    expect([hasRun(1), refs().length, existsSync(left)]).toEqual([false, 0, false])
  })

  test('what a removal that was cut off has left goes an hour later', async () => {
    putRun(settled(1, 1), 90 * DAY, false)
    const { journal, transcript, directory, exit } = scene().layout.run(runId(1))
    put(exit, 90 * DAY)
    for (const path of [journal, transcript]) rmSync(path)
    expect(await sweep()).toEqual([])
    expect(existsSync(directory)).toBe(true)
    scene().advance(HOUR)
    expect(await sweep()).toEqual([])
    expect(existsSync(directory)).toBe(false)
  })

  test('a clock that is ahead of GitHub’s removes nothing', async () => {
    putRun(settled(1, 1), HOUR)
    const atGitHub = scene().now()
    scene().github.serverTime = () => atGitHub
    scene().advance(400 * DAY)
    await sweep()
    expect([hasRun(1), hasTree(1)]).toEqual([true, true])
    scene().github.serverTime = () => null
    scene().advance(HOUR)
    await sweep()
    expect([hasRun(1), hasTree(1)]).toEqual([false, false])
  })
})

/** Ports of a process that dies after its n-th effect: everything afterwards comes to nothing. */
function dyingPorts(dies: number, onEffect: () => void): Partial<TickPorts> {
  const { ports, git } = scene()
  let effects = 0
  const dying = <P extends object>(name: string, port: P): P =>
    countEffects(name, port, ({ when }) => {
      if (when === 'before' && effects >= dies) throw new Error('dead')
      if (when !== 'after') return
      effects += 1
      onEffect()
    })
  return {
    garbage: dying('garbage', ports.garbage),
    git: dying('git', git) as TickPorts['git'],
    store: dying('store', ports.store),
    journals: dying('journals', ports.journals),
  }
}

describe('how much does a sweep cost?', () => {
  test('at most so many removals; the rest waits an hour', async () => {
    for (let number = 0; number < MAX_REMOVALS + 5; number += 1) {
      const id = makeRunId(START + number, new Uint8Array(10))
      putFolder(scene().layout.run(id).directory, 2 * HOUR)
    }
    const left = (): number => readdirSync(scene().layout.directories.runs).length
    await sweep()
    expect(left()).toBe(5)
    await sweep()
    expect(left()).toBe(5)
    scene().advance(HOUR)
    await sweep()
    expect(left()).toBe(0)
  })

  test('what cannot be removed is reported and is in nobody’s way', async () => {
    for (const number of [1, 2, 3]) putRun(settled(number, number), 2 * DAY)
    scene().git.removeTree = async (tree) => {
      if (tree.path.endsWith(runId(1))) throw new Error('busy')
      return hub.git.removeTree(tree)
    }
    const problems = await sweep()
    expect(problems.map(({ where }) => where)).toEqual([
      scene().layout.worktree(REPOSITORY, runId(1)),
    ])
    expect([1, 2, 3].map(hasTree)).toEqual([true, false, false])
  })

  test('none begins and none goes on when the time of the tick is over', async () => {
    for (const number of [1, 2]) putRun(settled(number, number), 2 * DAY)
    const deadlineAt = scene().now() + 1000
    scene().git.removeTree = async (tree) => {
      await hub.git.removeTree(tree)
      scene().advance(2000)
    }
    await collect({ ...scene().ports, deadlineAt }, NOTHING_SEEN)
    expect([1, 2].filter(hasTree)).toHaveLength(1)
    scene().advance(HOUR)
    await collect({ ...scene().ports, deadlineAt }, NOTHING_SEEN)
    expect(removed()).toHaveLength(1)
  })

  test('a tick looks into folders once an hour, whatever the clock does, and only when it polls', async () => {
    for (let number = 0; number < 1000; number += 1) {
      mkdirSync(scene().layout.run(makeRunId(number, new Uint8Array(10))).directory, {
        recursive: true,
      })
    }
    scene().github.pollLabel = async () => pollOf([])
    scene().github.pollChanges = async () => pollOf([], { unchanged: true })
    const looksOf = async (forced: boolean): Promise<number> => {
      scene().crossed.length = 0
      await tick({ ...scene().ports, deadlineAt: Number.POSITIVE_INFINITY }, forced)
      return scene().crossed.filter((name) => /^garbage\.|^journals\.|^claims\.isHeld/.test(name))
        .length
    }
    expect(await looksOf(true)).toBeGreaterThan(0)
    expect(await looksOf(true)).toBe(0)
    scene().advance(HOUR - 1000)
    expect(await looksOf(true)).toBe(0)
    scene().advance(1000)
    await scene().ports.store.changeMeta((meta) => ({
      state: { ...meta, lastPollStarted: toTimestamp(scene().now()) },
      value: null,
    }))
    expect(await looksOf(false)).toBe(0)
    expect(await looksOf(true)).toBeGreaterThan(0)
    scene().advance(-2 * HOUR)
    expect(await looksOf(true)).toBeGreaterThan(0)
    expect(await looksOf(true)).toBe(0)
  })

  test('its failure is a problem of the tick and nothing more', async () => {
    scene().github.pollLabel = async () => pollOf([])
    scene().fail('garbage.list before', () => new Error('no such device'))
    const ports = { ...scene().ports, deadlineAt: Number.POSITIVE_INFINITY }
    const { outcome, problems } = await tick(ports, false)
    expect(outcome).toBe('idle_empty')
    expect(problems).toEqual([{ where: 'collecting', thrown: new Error('no such device') }])
  })
})

describe('how is the tree of an earlier attempt kept aside?', () => {
  let tree: Readonly<{ path: string; indexPath: string }>
  let attic: string

  beforeEach(async () => {
    tree = await hub.checkOut(`kept-${Date.now()}-${Math.random()}`)
    attic = scene().layout.archived(REPOSITORY, runId(1))
  })
  const keep = async (): Promise<boolean> => hub.git.archiveTree(tree, attic)
  const where = (): readonly boolean[] =>
    [tree.path, tree.indexPath, attic].map((path) => existsSync(path))

  test('whole, with its git directory, and its age counts from then', async () => {
    age(tree.path, 400 * DAY)
    expect(await keep()).toBe(true)
    expect(where()).toEqual([false, false, true])
    expect(hub.run(attic, 'status', '--porcelain')).toBe('')
    expect(Date.now() - statSync(attic).mtimeMs).toBeLessThan(HOUR)
    expect(await keep()).toBe(false)
    expect(where()).toEqual([false, false, true])
  })

  test('also one that its worker made read-only', async () => {
    chmodSync(tree.path, 0o500)
    expect(await keep()).toBe(true)
    expect(where()).toEqual([false, false, true])
  })

  test('not one that a crash left unfinished: no worker has been in it', async () => {
    rmSync(tree.indexPath)
    expect(await keep()).toBe(false)
    expect(where()).toEqual([false, false, false])
  })

  test('not a link that took its place, and nothing behind it is touched', async () => {
    const behind = put(join(scene().root, 'elsewhere', 'precious.txt'), 0)
    rmSync(tree.path, { recursive: true })
    symlinkSync(join(behind, '..'), tree.path)
    expect(await keep()).toBe(false)
    expect([...where(), existsSync(behind)]).toEqual([false, false, false, true])
  })

  test('not by way of a link in the place of the attic; it stays where it is', async () => {
    mkdirSync(scene().layout.stateDir, { recursive: true })
    mkdirSync(join(scene().root, 'elsewhere'))
    symlinkSync(join(scene().root, 'elsewhere'), scene().layout.attic)
    await expect(keep()).rejects.toMatchObject({ code: 'sys/io' })
    expect(where()).toEqual([true, true, false])
  })
})

describe('when does an entry leave the queue?', () => {
  const polled = (change: Partial<Seen> = {}, issues = [issueOf(9)], isFullPoll = true): Seen => ({
    ...NOTHING_SEEN,
    polls: new Map([
      ['acme/widgets', { issues, unchanged: false, isFullPoll, sweptAt: null, malformed: [] }],
    ]),
    ...change,
  })
  const leaves = async (phase: Phase, ageMs: number, seen: Seen): Promise<boolean> => {
    const updatedAt = toTimestamp(scene().now() - ageMs)
    await scene().put(entryOf(7, { phase, updatedAt }), entryOf(8))
    expect(await sweep({}, seen)).toEqual([])
    expect(scene().entry(8)).toBeDefined()
    return scene().entry(7) === undefined
  }

  test.each<[Phase, boolean]>([
    ['done', true],
    ['failed', true],
    ['skipped', true],
    ['needs_attention', true],
    ['queued', false],
    ['previewed', false],
    ['awaiting_review', false],
  ])('%s, unlabelled and old: %s', async (phase, expected) => {
    expect(await leaves(phase, 30 * DAY, polled())).toBe(expected)
  })

  test.each<[string, boolean, () => Seen, number]>([
    ['younger', false, () => polled(), 30 * DAY - 1000],
    ['still labelled', false, () => polled({}, [issueOf(7)]), 400 * DAY],
    ['not in a list of mere changes', false, () => polled({}, [issueOf(9)], false), 400 * DAY],
    ['of a repository that was not polled', false, () => NOTHING_SEEN, 400 * DAY],
    ['of a repository nobody watches', true, () => ({ ...NOTHING_SEEN, watched: [] }), 400 * DAY],
    [
      'of a repository, when it is not known what is watched',
      false,
      () => ({ ...NOTHING_SEEN, watched: null }),
      400 * DAY,
    ],
    [
      'not in a list that could not be read whole',
      false,
      () => {
        const seen = polled()
        const polls = [...seen.polls].map(
          ([id, poll]) => [id, { ...poll, malformed: ['x'] }] as const,
        )
        return { ...seen, polls: new Map(polls) }
      },
      400 * DAY,
    ],
  ])('one that is %s: %s', async (_, expected, seen, ageMs) => {
    expect(await leaves('failed', ageMs, seen())).toBe(expected)
  })

  test('a tick that sees the label keeps it, so that the issue is not paid for again', async () => {
    const updatedAt = toTimestamp(scene().now() - 400 * DAY)
    await scene().put(entryOf(7, { phase: 'failed', updatedAt, seenUpdatedAt: updatedAt }))
    const labelled = [issueOf(7)]
    scene().github.pollLabel = async (_, label) => pollOf(label === TRIGGERS.code ? labelled : [])
    const go = () => tick({ ...scene().ports, deadlineAt: Number.POSITIVE_INFINITY }, true)
    await go()
    await go()
    expect([scene().entry(7)?.phase, scene().started]).toEqual(['failed', []])
    labelled.length = 0
    await go()
    expect(scene().entry(7)).toBeUndefined()
  })
})
