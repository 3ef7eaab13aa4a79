import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { environmentOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { openProgramRig, type ProgramRig, type Started } from '../support/program-rig.ts'
import { gatedBridge, openGate, startedWorkers } from '../support/program-views.ts'
import { QUIET } from '../support/refusal.ts'

/**
 * Tables of proc_net(5), which column tells that a socket waits for others, and how; then the column of
 * the inode. An unconnected UDP socket takes what anybody sends.
 */
const TABLES = [
  { name: 'tcp', column: 3, waits: '0A', inode: 9 },
  { name: 'tcp6', column: 3, waits: '0A', inode: 9 },
  { name: 'udp', column: 3, waits: '07', inode: 9 },
  { name: 'udp6', column: 3, waits: '07', inode: 9 },
  { name: 'raw', column: 3, waits: '07', inode: 9 },
  { name: 'unix', column: 3, waits: '00010000', inode: 6 },
] as const

/** Sockets that wait for somebody to connect or to send, by inode. */
function waitingSockets(): ReadonlyMap<string, string> {
  return new Map(
    TABLES.flatMap(({ name, column, waits, inode }) =>
      readFileSync(`/proc/net/${name}`, 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[column] === waits)
        .map((fields): [string, string] => [`socket:[${fields[inode]}]`, name]),
    ),
  )
}

function listenersOf(pids: readonly number[]): readonly string[] {
  // Descriptors first: a socket that is opened meanwhile is found at the next look.
  const held = pids.flatMap((pid) => descriptorsOf(pid).map((target) => ({ pid, target })))
  const waiting = waitingSockets()
  return held.flatMap(({ pid, target }) => {
    const table = waiting.get(target)
    return table === undefined ? [] : [`${table} of ${commandOf(pid)}`]
  })
}

/** What the descriptors of a process name; both may be gone by now. */
function descriptorsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  return (orNull(() => readdirSync(folder)) ?? []).flatMap(
    (fd) => orNull(() => readlinkSync(`${folder}/${fd}`)) ?? [],
  )
}

function commandOf(pid: number): string {
  const text = orNull(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  return (text ?? '').replaceAll('\0', ' ').trim()
}

function roleOf(pid: number): string {
  return /dist\/(caduceus|runner|supervisor)\.mjs/.exec(commandOf(pid))?.[1] ?? 'other'
}

function orNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch {
    return null
  }
}

describe('does anything listen while a run is under way?', () => {
  let rig: ProgramRig
  let program: Started

  /** All that was started for this rig, by its variables; git and the worker included. */
  const ours = (): readonly number[] =>
    listProcesses()
      .map(({ pid }) => pid)
      .filter((pid) => pid !== process.pid && environmentOf(pid)?.['HOME'] === rig.env['HOME'])

  beforeAll(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
  })
  afterAll(async () => {
    await rig.close()
  })

  test('tick, runner, supervisor and worker have no socket that waits for others, from start to end', async () => {
    const found = new Set<string>()
    const seen = new Set<string>()
    const over = new AbortController()
    const looking = (async () => {
      for (; !over.signal.aborted; await pause(1)) {
        const pids = ours()
        for (const listener of listenersOf(pids)) found.add(listener)
        for (const pid of pids) seen.add(roleOf(pid))
      }
    })()
    program = rig.start('run', '--now', '--wait')
    await startedWorkers(rig, 1)
    expect(ours()).toContain(program.pid)
    expect(ours().map(roleOf)).toEqual(expect.arrayContaining(['caduceus', 'runner', 'supervisor']))
    openGate(rig)
    expect(await program.finished).toEqual(QUIET)
    over.abort()
    await looking

    expect([...found]).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(['caduceus', 'runner', 'supervisor', 'other']))
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('the embedded GitHub, which does listen, would have been found', () => {
    expect(listenersOf([process.pid])).toContainEqual(expect.stringMatching(/^tcp of /))
  })
})
