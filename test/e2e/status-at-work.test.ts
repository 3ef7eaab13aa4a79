import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  fingerprintOf,
  gatedBridge,
  openGate,
  reportOf,
  startedWorkers,
} from '../support/program-views.ts'
import { QUIET } from '../support/refusal.ts'
import { killNow, newestRun, processesOfRun } from '../support/run-processes.ts'
import { waitUntil } from '../support/wait-until.ts'

let rig: ProgramRig

describe('what does status tell while the program works?', () => {
  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('a run is live as long as its claim is held, and is not any more when its processes are gone', async () => {
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await startedWorkers(rig, 1)
    const { runner, supervisor, worker } = await processesOfRun(rig)
    const { heartbeat } = rig.layout.run(newestRun(rig).runId)
    await waitUntil('the heartbeat is there', () => existsSync(heartbeat))
    const before = fingerprintOf(rig.dir)
    const { live_workers: live, pool_state, phases } = await reportOf(rig)
    const { stdout } = await rig.run('status')
    expect(fingerprintOf(rig.dir)).toEqual(before)

    const [journal] = rig.journals()
    expect(live).toEqual([
      {
        run_id: journal?.runId,
        issue: 'octo/app#1',
        pid: runner,
        stage: 'launching',
        started_at: journal?.createdAt,
        updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
        transcript_path: rig.layout.run(journal?.runId ?? '').transcript,
        freshness: 'fresh',
      },
    ])
    expect({ pool_state, running: phases.in_progress }).toEqual({
      pool_state: { running: 1, parallelism: 1 },
      running: 1,
    })
    expect(stdout).toContain(
      `  live workers: 1\n    ${journal?.runId} octo/app#1 pid ${runner} launching fresh`,
    )

    await killNow(runner, supervisor, worker)
    expect(await reportOf(rig)).toMatchObject({ live_workers: [], phases: { in_progress: 1 } })
    expect(existsSync(heartbeat)).toBe(true)
    openGate(rig)
    await rig.tick()
  })

  test('a limit of GitHub is told with its end and is no error; afterwards it is gone', async () => {
    openGate(rig)
    const route = 'GET /repos/{owner}/{repo}/issues'
    const action = { kind: 'primary-limit', resetInSeconds: 600 } as const
    await rig.control('addFault', { route, occurrence: 1, action })
    expect(await rig.tick()).toEqual(QUIET)
    const { rate_limited_until: until, last_outcome, recent_errors } = await reportOf(rig)
    expect({ last_outcome, recent_errors }).toEqual({
      last_outcome: 'rate_limited',
      recent_errors: [],
    })
    const inSeconds = (Date.parse(until ?? '') - rig.clock.now()) / 1000
    expect(inSeconds).toBeGreaterThan(570)
    expect(inSeconds).toBeLessThan(620)
    expect((await rig.run('status')).stdout).toContain(`GitHub limits requests until: ${until}\n`)

    await rig.control('clearRequests')
    expect(await rig.tick()).toEqual(QUIET)
    expect((await rig.control('readRequests', {})).total).toBe(0)

    rig.clock.advance(620_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(await reportOf(rig)).toMatchObject({
      rate_limited_until: null,
      last_outcome: 'processed',
    })
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('an error is dated, and a later success clears it', async () => {
    openGate(rig)
    const route = 'GET /repos/{owner}/{repo}/issues'
    const action = { kind: 'html', status: 502 } as const
    await rig.control('addFault', { route, occurrence: 1, action })
    expect((await rig.tick()).code).toBe(1)
    const [told] = (await reportOf(rig)).recent_errors
    expect(told).toMatch(
      /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z octo\/app: GitHub answered 502 to /,
    )
    expect(await rig.tick()).toEqual(QUIET)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })
})
