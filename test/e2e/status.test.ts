import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { newMeta } from '../../daemon/core/meta.ts'
import { newEntry, type QueueEntry } from '../../daemon/core/queue.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import { errorsOf } from '../support/refusal.ts'

let rig: ProgramRig

const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString()
const error = (message: string, minute: number) => ({ code: 'x', message, at: at(minute) })

const entry = (number: number, fields: Partial<QueueEntry>): QueueEntry => ({
  ...newEntry({ owner: 'Octo', name: 'App', number }, 'code', at(number), at(number)),
  ...fields,
})

/** What ticks and runs of the past have left. */
const ENTRIES: readonly QueueEntry[] = [
  entry(10, {}),
  entry(2, { queuedAt: at(11) }),
  entry(3, { nextAttemptAt: inMinutes(5), attempts: 1, lastError: error('It failed.', 30) }),
  entry(4, {
    phase: 'in_progress',
    runId: '01AAAAAAAAAAAAAAAAAAAAAAAA',
    lastError: error('Old.', 40),
  }),
  entry(5, { phase: 'previewed' }),
  entry(6, { phase: 'awaiting_review', pull: { number: 60, url: 'u' } }),
  entry(7, { phase: 'done', lastError: error('Over.', 41) }),
  entry(8, { phase: 'skipped', lastError: error('Over too.', 42) }),
  entry(9, { phase: 'failed', lastError: error('It failed for good.', 20) }),
  entry(1, {
    phase: 'needs_attention',
    lastError: error('A rule was broken.', 25),
    blocked: { source: 'publish/policy', hint: 'Look at it.' },
  }),
]

const seed = async (entries: readonly QueueEntry[], limitedUntil: string): Promise<void> => {
  const store = openJsonStore({ clock: systemClock }, rig.layout.stateDir)
  await store.changeQueue(() => ({
    state: {
      entries: Object.fromEntries(entries.map((one) => [`octo/app#${one.key.number}`, one])),
    },
    value: undefined,
  }))
  await store.changeMeta(() => ({
    state: {
      ...newMeta('4f8b3c4e-8a53-4b7e-9d3a-0c2a5b9e1f00'),
      lastTickStarted: at(50),
      lastTickFinished: at(51),
      lastPollStarted: at(50),
      lastOutcome: 'idle304',
      lastHttpStatus: 304,
      lastError: error('The tick failed.', 45),
      rateLimit: { limit: 5000, remaining: 17, resetAt: at(59), observedAt: at(51) },
      wait: { kind: 'secondary', until: limitedUntil },
      repositories: {
        'octo/app': { sweptAt: at(50), problem: error('It has no clone.', 15) },
        'octo/unwatched': { sweptAt: null, problem: error('Nobody asks.', 55) },
      },
      diagnostics: [
        { at: at(33), code: 'ambiguous-labels', issue: 'Octo/App#11', message: 'Both labels.' },
      ],
    },
    value: undefined,
  }))
}

describe('what does status tell of stored state?', () => {
  const limitedUntil = inMinutes(10)

  beforeAll(async () => {
    rig = await openProgramRig({ config: { worker_parallelism: 3, fancy: 1 } })
    // Neither is needed to look.
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.setConfig({ api_base: 'http://127.0.0.1:1' })
  })
  afterAll(async () => {
    await rig.close()
  })

  test('before the first run there is nothing to tell, which is an exit code of its own', async () => {
    expect(await rig.run('status')).toEqual({
      code: 3,
      stdout: `caduceus status\n  state dir: ${rig.layout.stateDir}\n  no_state: Nothing has run yet. Run one tick: caduceus run\n`,
      stderr: '',
    })
    const { code, stdout } = await rig.run('status', '--json')
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ diagnostic: 'no_state', report: null })
    expect(existsSync(rig.layout.stateDir)).toBe(false)
  })

  test('the text has a fixed order, all eight phases, and errors with their dates, newest first', async () => {
    await seed(ENTRIES, limitedUntil)
    const { code, stdout, stderr } = await rig.run('status')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe(`caduceus status
  state dir: ${rig.layout.stateDir}
  last tick started: 2026-01-01T00:50:00.000Z
  last tick finished: 2026-01-01T00:51:00.000Z
  last outcome: Idle304
  last http status: 304
  next allowed poll: ${limitedUntil}
  GitHub limits requests until: ${limitedUntil}
  pool state: 1 of 3 running
  phases:
    awaiting_review: 1
    done: 1
    failed: 1
    in_progress: 1
    needs_attention: 1
    previewed: 1
    queued: 3
    skipped: 1
  next head: Octo/App#10
  live workers: (none)
  blocked issues:
    octo/app#1: publish/policy
      reason: A rule was broken.
      next: Look at it.
  notes:
    2026-01-01T00:33:00.000Z Octo/App#11: Both labels.
  configuration warnings:
    fancy: found an unknown key; wanted: a key that docs/configuration.md lists. Remove it. It is ignored.
  recent errors:
    2026-01-01T00:45:00.000Z daemon: The tick failed.
    2026-01-01T00:30:00.000Z Octo/App#3: It failed.
    2026-01-01T00:25:00.000Z Octo/App#1: A rule was broken.
    2026-01-01T00:20:00.000Z Octo/App#9: It failed for good.
    2026-01-01T00:15:00.000Z octo/app: It has no clone.
`)
  })

  test('the same as JSON', async () => {
    const { report, ...head } = await rig.status()
    expect(head).toEqual({
      app_version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      version: '1.0.0',
      state_dir: rig.layout.stateDir,
      diagnostic: null,
      message: null,
    })
    expect(report).toEqual({
      version: '1.0.0',
      state_dir: rig.layout.stateDir,
      last_tick_started: at(50),
      last_tick_finished: at(51),
      last_outcome: 'idle304',
      last_http_status: 304,
      next_allowed_poll_at: limitedUntil,
      rate_limited_until: limitedUntil,
      phases: {
        queued: 3,
        in_progress: 1,
        previewed: 1,
        done: 1,
        failed: 1,
        skipped: 1,
        needs_attention: 1,
        awaiting_review: 1,
      },
      next_head: 'Octo/App#10',
      next_head_earliest_eligibility: null,
      recent_errors: expect.any(Array),
      blocked_issues: [
        {
          issue_key: 'octo/app#1',
          blocked_source: 'publish/policy',
          blocked_recovery_hint: 'Look at it.',
          last_error: 'A rule was broken.',
        },
      ],
      rate_limit: { limit: 5000, remaining: 17, reset_at: at(59), observed_at: at(51) },
      live_workers: [],
      diagnostics: [
        { at: at(33), code: 'ambiguous-labels', issue: 'Octo/App#11', message: 'Both labels.' },
      ],
      configuration_warnings: [expect.stringMatching(/^fancy: /)],
      state_corrupt: false,
      readiness: {
        bridge: 'present',
        harness: 'not-applicable',
        provider: 'not-applicable',
      },
      pool_state: { running: 1, parallelism: 3 },
    })
  })

  test('with all queued issues backed off it tells when the first one is due', async () => {
    const [first, second] = [inMinutes(7), inMinutes(3)]
    const waits = [entry(1, { nextAttemptAt: first }), entry(2, { nextAttemptAt: second })]
    await seed(waits, limitedUntil)
    const line = `  next head: (all backed off) earliest eligibility = ${second}\n`
    expect((await rig.run('status')).stdout).toContain(line)
  })

  test('it has at most ten errors', async () => {
    const many = Array.from({ length: 30 }, (_, index) =>
      entry(index + 1, { phase: 'failed', lastError: error(`Error ${index}.`, index) }),
    )
    await seed(many, limitedUntil)
    const errors = await errorsOf(rig)
    expect(errors).toHaveLength(10)
    expect(errors.slice(0, 2)).toEqual(['daemon: The tick failed.', 'Octo/App#30: Error 29.'])
  })
})
