import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LaunchRequest } from '../../daemon/core/executor.ts'
import { decideEnd, type Observation } from '../../daemon/supervisor/decide-end.ts'
import { createSharedClock } from '../support/shared-clock.ts'
import { buildSupervisor, type Rig, shell } from '../support/supervisor-rig.ts'
import { waitUntil } from '../support/wait-until.ts'

const RESULT = `echo '{"status": "success"}' > worker-result.json`

describe('why a living worker is ended', () => {
  const calm: Observation = {
    now: 1000,
    deadlineAt: 2000,
    cancelRequested: false,
    signalled: false,
    transcriptFailed: false,
    hasResult: false,
    quietMs: 0,
  }
  const limits = { completionGraceMs: 60, stallMs: 90 }

  test.each<[string, Partial<Observation>, string | null]>([
    ['nothing', {}, null],
    ['the deadline is reached', { now: 2000 }, 'deadline'],
    ['one millisecond before it', { now: 1999 }, null],
    ['a wish comes before the deadline', { now: 2000, cancelRequested: true }, 'cancelled'],
    ['our own end comes before the deadline', { now: 2000, signalled: true }, 'signal'],
    ['a failed transcript', { transcriptFailed: true }, 'transcript-failed'],
    ['quiet with a result', { hasResult: true, quietMs: 60 }, 'completion-grace'],
    ['not quiet long enough', { hasResult: true, quietMs: 59 }, null],
    ['quiet without a result', { quietMs: 89 }, null],
    ['quiet for too long', { quietMs: 90 }, 'stalled'],
    [
      'a result counts before the deadline',
      { now: 2000, hasResult: true, quietMs: 60 },
      'completion-grace',
    ],
  ])('%s', (_, change, reason) => {
    expect(decideEnd({ ...calm, ...change }, limits)).toBe(reason)
  })

  test('both waits are off at 0', () => {
    const seen = { ...calm, hasResult: true, quietMs: 1_000_000 }
    expect(decideEnd(seen, { completionGraceMs: 0, stallMs: 0 })).toBeNull()
  })
})

describe('what the supervisor sees', () => {
  const supervisor = buildSupervisor()
  let rig: Rig

  beforeEach(() => {
    rig = supervisor.open()
  })
  afterEach(() => rig.close())
  afterAll(() => supervisor.remove())

  test('a cancel through the control file', async () => {
    const request = { ...rig.request, argv: shell('touch up; sleep 600') }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    rig.executor.cancel(request)
    expect(await rig.executor.watch(request)).toMatchObject({
      kind: 'ended',
      report: { reason: 'cancelled', signal: 'SIGTERM' },
    })
  })

  test('a control file that asks for nothing known', async () => {
    writeFileSync(join(rig.request.directory, 'control'), '{"action": "dance"}')
    expect(await rig.run({ argv: shell('sleep 0.6; exit 5') })).toMatchObject({
      reason: 'exited',
      exitCode: 5,
    })
  })

  test('a signal to itself', async () => {
    const request = { ...rig.request, argv: shell('touch up; sleep 600') }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    process.kill(rig.started()?.supervisor.pid ?? Number.NaN, 'SIGTERM')
    expect(await rig.executor.watch(request)).toMatchObject({ report: { reason: 'signal' } })
    expect(rig.processes()).toEqual([])
  })

  test('the deadline, by a clock shared between processes', async () => {
    await rig.close()
    const folder = supervisor.open()
    const clock = createSharedClock(folder.root)
    rig = supervisor.open({ environment: { PATH: process.env['PATH'] ?? '', ...clock.env } })
    const hour = 3_600_000
    const request = { ...rig.request, argv: shell('touch up; sleep 600'), timeoutMs: hour }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    clock.advance(hour)
    expect(await rig.executor.watch(request)).toMatchObject({ report: { reason: 'deadline' } })
    await folder.close()
  })

  test('a worker that lingers after a success result', async () => {
    const report = await rig.run({ argv: shell(`${RESULT}; sleep 600`), completionGraceMs: 600 })
    expect(report.reason).toBe('completion-grace')
    expect(rig.processes()).toEqual([])
  })

  test('a worker with a result that still does something is left alone', async () => {
    const script = (work: string): string =>
      `mkdir deep; ${RESULT}; for n in $(seq 20); do ${work}; sleep 0.1; done; exit 4`
    const reports = await runAll(
      { completionGraceMs: 1000 },
      {
        prints: script('echo x'),
        'works in its tree': script('date +%N > deep/file'),
        'works on its result': script(RESULT),
      },
    )
    expect(reports).toEqual({
      prints: 'exited 4',
      'works in its tree': 'exited 4',
      'works on its result': 'exited 4',
    })
  })

  test('what is no success result starts no completion grace', async () => {
    const script = (result: string): string => `${result}; sleep 1; exit 4`
    const reports = await runAll(
      { completionGraceMs: 300 },
      {
        'no result': script('true'),
        'a failure': script(`echo '{"status": "failure"}' > worker-result.json`),
        'half a result': script(`echo '{"status": "succ' > worker-result.json`),
        'a link to a result': script(
          `${RESULT}; mv worker-result.json r; ln -s r worker-result.json`,
        ),
        'a FIFO': script('mkfifo worker-result.json'),
        'a folder': script('mkdir worker-result.json'),
      },
    )
    expect(new Set(Object.values(reports))).toEqual(new Set(['exited 4']))
  })

  test('a worker without output and change', async () => {
    const script = 'for n in 1 2 3 4 5; do echo x; sleep 0.1; done; sleep 600'
    const report = await rig.run({ argv: shell(script), stallMs: 600 })
    expect(report).toMatchObject({ reason: 'stalled' })
    expect(rig.transcript()).toBe('x\n'.repeat(5))
  })

  test('a silent worker that changes its tree has not stalled', async () => {
    const script = 'for n in $(seq 20); do touch file; sleep 0.1; done; exit 4'
    expect(await rig.run({ argv: shell(script), stallMs: 1000 })).toMatchObject({
      reason: 'exited',
      exitCode: 4,
    })
  })

  /** Runs several workers at once, each in a rig of its own; tells how each ended. */
  async function runAll(
    change: Partial<LaunchRequest>,
    scripts: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const runs = Object.entries(scripts).map(async ([name, script]) => {
      const own = supervisor.open()
      const { reason, exitCode } = await own.run({ ...change, argv: shell(script) })
      await own.close()
      return [name, `${reason} ${exitCode}`] as const
    })
    return Object.fromEntries(await Promise.all(runs))
  }
})
