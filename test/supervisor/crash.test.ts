import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import type { SupervisionEnd } from '../../daemon/core/executor.ts'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { buildSupervisor, shell } from '../support/supervisor-rig.ts'

// P§2: a supervisor may die at any moment. Here it dies right before and right after each of its calls
// that could leave a trace, one run per moment, from its first to its last.

const supervisor = buildSupervisor()
const notes = mkdtempSync(join(tmpdir(), 'supervisor-crash-'))
afterAll(() => {
  supervisor.remove()
  rmSync(notes, { recursive: true })
})

const PRELOAD = new URL('../support/crash-at-call.mjs', import.meta.url).href
const AT_ONCE = 4
const MOST_CALLS = 400

type Seen = Readonly<{
  end: SupervisionEnd
  said: string
  isStarted: boolean
  hasRun: boolean
  isOver: boolean
}>

test('wherever a supervisor dies: without started.json no worker ever ran, and nothing is left', async () => {
  const seen: Seen[] = []
  while (!seen.some(({ isOver }) => isOver) && seen.length < MOST_CALLS) {
    const batch = Array.from({ length: AT_ONCE }, (_, n) => dieAtCall((seen.length + n) / 2 + 1))
    seen.push(...(await Promise.all(batch)))
  }
  expect(seen.filter(({ isOver, end }) => isOver && end.kind !== 'ended')).toEqual([])
  const died = seen.filter(({ isOver }) => !isOver)
  expect(died.length).toBeGreaterThanOrEqual(40)
  expect(died.filter(({ isStarted, hasRun }) => hasRun && !isStarted)).toEqual([])
  // The walk covers all three states: before the record, between the record and the worker, after it.
  const states = new Set(died.map(({ isStarted, hasRun }) => `${isStarted} ${hasRun}`))
  expect([...states].sort()).toEqual(['false false', 'true false', 'true true'])
}, 120_000)

async function dieAtCall(n: number): Promise<Seen> {
  const endedByItself = join(notes, String(n))
  const own = supervisor.open({
    environment: {
      PATH: process.env['PATH'] ?? '',
      NODE_OPTIONS: `--import=${PRELOAD}`,
      TEST_CRASH_AT_CALL: String(n),
      TEST_CALL_LOG: endedByItself,
    },
  })
  const request = { ...own.request, argv: shell('echo ran > canary; echo output') }
  await own.executor.launch(request)
  const end = await own.executor.watch(request)
  if (end.kind === 'vanished') {
    expect(end.workerStarted).toBe(own.started() !== null)
    expect(await own.executor.sweep(request)).toMatchObject({ kind: 'clear' })
  }
  expect(isLocked(join(request.directory, 'tree.lock'))).toBe(false)
  expect(own.processes()).toEqual([])
  const seen = {
    end,
    said: readFileSync(join(own.root, 'supervisor.log'), 'utf8'),
    isStarted: own.started() !== null,
    hasRun: own.read('canary') !== null,
    isOver: existsSync(endedByItself),
  }
  await own.close()
  return seen
}
