import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { readFileBounded } from '../../daemon/sys/files.ts'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import {
  identifyProcess,
  isAlive,
  listProcesses,
  type ProcessIdentity,
} from '../../daemon/sys/process-identity.ts'
import { killIdentity } from '../../daemon/sys/terminate.ts'
import { bundleFixture, commandLineOf, waitUntil } from '../support/processes.ts'

describe('starting a run', () => {
  const KILLS = 200
  const LANES = 4

  let program: ReturnType<typeof bundleFixture>
  let root: string
  let runs = 0

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    root = mkdtempSync(join(tmpdir(), 'claim-hand-over-'))
  })

  afterAll(() => {
    for (let runner = runnerOf(root); runner !== null; runner = runnerOf(root))
      killIdentity(runner, 'SIGKILL')
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  function newFolder(): string {
    runs += 1
    const folder = join(root, `run-${runs}-`)
    mkdirSync(folder)
    return folder
  }

  function startSpawner(folder: string, lastStep = 0): ChildProcess {
    return spawn(process.execPath, [program.path, 'spawn-run', folder, String(lastStep)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'] },
    })
  }

  async function started(spawner: ChildProcess): Promise<void> {
    const ended = once(spawner, 'exit').then(([code, signal]) => `ended early: ${code} ${signal}`)
    const said = once(spawner.stdout ?? spawner, 'data').then(String)
    expect(await Promise.race([said, ended])).toBe('ready\n')
  }

  const isHeld = (folder: string): boolean => isLocked(join(folder, 'claim'))

  const journalOf = (folder: string): string =>
    readFileBounded(join(folder, 'journal'), 100)?.toString() ?? 'absent'

  /** A run's own process, told by its command line; the spawner's carries another role. */
  function runnerOf(folder: string): ProcessIdentity | null {
    const runner = listProcesses().find(({ pid }) => {
      const argv = commandLineOf(pid)
      return argv.includes('run') && argv.some((word) => word.startsWith(folder))
    })
    return runner === undefined ? null : identifyProcess(runner.pid)
  }

  /** A runner that lived before and after the claim was seen free was not owned in between. */
  function seenUnowned(folder: string): boolean {
    if (isHeld(folder) || journalOf(folder) === 'absent') return false
    const runner = runnerOf(folder)
    return runner !== null && !isHeld(folder) && isAlive(runner)
  }

  /** Watches the run until its spawner has ended and its fate is known; then ends what is alive. */
  async function fateOf(folder: string, spawner: ChildProcess): Promise<'requeue' | 'owned'> {
    while (spawner.exitCode === null && spawner.signalCode === null) {
      expect(seenUnowned(folder)).toBe(false)
      await pause(1)
    }
    if (!isHeld(folder)) {
      expect(seenUnowned(folder)).toBe(false)
      expect(['absent', 'starting']).toContain(journalOf(folder))
      return 'requeue'
    }
    const pid = await waitUntil('the run owns its claim', () => {
      expect(isHeld(folder)).toBe(true)
      return /^owned (\d+)$/.exec(journalOf(folder))?.[1]
    })
    const runner = identifyProcess(Number(pid))
    assert.ok(runner, 'the runner lives')
    expect(killIdentity(runner, 'SIGKILL')).toBe(true)
    await waitUntil('the claim of a dead run is free', () => !isHeld(folder))
    return 'owned'
  }

  test.each([
    [1, 'absent', 'requeue'],
    [2, 'absent', 'requeue'],
    [3, 'starting', 'requeue'],
    [4, 'starting', 'owned'],
    [5, 'starting', 'owned'],
  ] as const)(
    'death of the spawner after step %i leaves the journal %s: %s',
    async (step, journal, fate) => {
      const folder = newFolder()
      const spawner = startSpawner(folder, step)
      await once(spawner, 'exit')
      expect(spawner.signalCode).toBe('SIGKILL')
      if (fate === 'requeue') expect(journalOf(folder)).toBe(journal)
      expect(await fateOf(folder, spawner)).toBe(fate)
    },
  )

  test(`no run is ever seen unowned while its spawner is killed ${KILLS} times`, async () => {
    const fates = { requeue: 0, owned: 0 }
    let kills = 0
    // Adjusted so that about one kill in five comes after the hand-over, however slow the machine is.
    let longestMs = 50
    const lane = async (): Promise<void> => {
      while (kills < KILLS) {
        kills += 1
        const folder = newFolder()
        const spawner = startSpawner(folder)
        await started(spawner)
        setTimeout(() => spawner.kill('SIGKILL'), Math.random() * longestMs)
        const fate = await fateOf(folder, spawner)
        expect(spawner.signalCode).toBe('SIGKILL')
        fates[fate] += 1
        longestMs *= fate === 'requeue' ? 1.03 : 0.9
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    expect(fates.requeue + fates.owned).toBe(KILLS)
    expect(runnerOf(root)).toBeNull()
    // The kills fell on both sides of the hand-over, so it really was in between.
    expect(fates.requeue).toBeGreaterThan(KILLS / 20)
    expect(fates.owned).toBeGreaterThan(KILLS / 20)
  }, 240_000)
})
