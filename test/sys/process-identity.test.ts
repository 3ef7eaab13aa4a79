import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import {
  childrenOf,
  currentBootId,
  cwdOf,
  environmentOf,
  identifyProcess,
  isAlive,
  listProcesses,
  ownIdentity,
  type ProcessIdentity,
} from '../../daemon/sys/process-identity.ts'
import { psSource } from '../../daemon/sys/process-source-ps.ts'
import { killIdentity, killSession } from '../../daemon/sys/terminate.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { actorsOf } from '../support/start-actor.ts'
import { waitUntil } from '../support/wait-until.ts'

let program: ReturnType<typeof bundleFixture>
let actors: ReturnType<typeof actorsOf>
let sleepers: ChildProcess[] = []

beforeAll(() => {
  program = bundleFixture('sys-actor')
  actors = actorsOf(program.path)
})

afterEach(async () => {
  for (const { pid } of sleepers) killSession(reusedLeader(pid ?? 0))
  await Promise.all(sleepers.map(ended))
  sleepers = []
  await actors.endAll()
})

afterAll(() => program.remove())

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** A program in a session of its own. */
function start(script = 'sleep 60'): ChildProcess & { pid: number } {
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore' })
  sleepers.push(child)
  return Object.assign(child, { pid: child.pid ?? 0 })
}

function identityOf(pid: number): ProcessIdentity {
  const identity = identifyProcess(pid)
  assert.ok(identity, 'no such process')
  return identity
}

describe('identity', () => {
  test('it tells one process from another, and from the same pid at another time or boot', async () => {
    const child = start()
    const identity = identityOf(child.pid)
    expect(identity).toMatchObject({ pid: child.pid, session: child.pid, bootId: currentBootId() })
    expect(isAlive(identity)).toBe(true)
    expect(isAlive({ ...identity, startTicks: identity.startTicks - 1 })).toBe(false)
    expect(isAlive({ ...identity, bootId: 'another boot' })).toBe(false)
    child.kill('SIGKILL')
    await ended(child)
    expect(isAlive(identity)).toBe(false)
    expect(identifyProcess(child.pid)).toBeNull()
  })

  test('our own is known, and later ones started later', () => {
    const own = ownIdentity()
    expect(own.pid).toBe(process.pid)
    expect(identityOf(start().pid).startTicks).toBeGreaterThanOrEqual(own.startTicks)
  })

  test('a name with spaces and parentheses does not confuse it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'odd-name-'))
    const program = join(folder, ') S 1 (x 2')
    copyFileSync('/bin/sleep', program)
    const child = spawn(program, ['60'], { detached: true, stdio: 'ignore' })
    sleepers.push(child)
    const pid = child.pid ?? 0
    const [odd, plain] = [identityOf(pid), identityOf(start().pid)]
    expect(odd).toMatchObject({ pid, session: pid })
    expect(Math.abs(odd.startTicks - plain.startTicks)).toBeLessThan(1000)
    rmSync(folder, { recursive: true })
  })

  test('an ended process that nobody collected is not alive', async () => {
    // The shell becomes a sleep that never waits for its first child.
    const parent = start('true & exec sleep 60')
    const zombie = await waitUntil('a zombie', () =>
      listProcesses().find(({ ppid, isZombie }) => ppid === parent.pid && isZombie),
    )
    expect(identifyProcess(zombie.pid)).toBeNull()
    expect(childrenOf(parent.pid)).toEqual([zombie.pid])
  })
})

describe('what the system lists', () => {
  test('children, environment and folder of a process are told', async () => {
    const parent = spawn('/bin/sh', ['-c', 'sleep 60 & sleep 60'], {
      detached: true,
      stdio: 'ignore',
      cwd: '/usr',
      env: { PATH: '/bin', ODD: 'a=b\nc' },
    })
    sleepers.push(parent)
    const pid = parent.pid ?? 0
    const children = await waitUntil('two children', () => {
      const found = childrenOf(pid)
      return found.length === 2 && found
    })
    const listed = listProcesses().filter(({ ppid }) => ppid === pid)
    expect(new Set(listed.map((entry) => entry.pid))).toEqual(new Set(children))
    expect(listed.map(({ session }) => session)).toEqual([pid, pid])
    expect(environmentOf(pid)).toEqual({ PATH: '/bin', ODD: 'a=b\nc' })
    expect(cwdOf(pid)).toBe('/usr')
  })

  test('a process that does not exist has nothing', () => {
    const pid = 2 ** 22 + 1
    expect([identifyProcess(pid), environmentOf(pid), cwdOf(pid)]).toEqual([null, null, null])
    expect(childrenOf(pid)).toEqual([])
  })

  test('the portable source agrees with proc on who is there', () => {
    const child = start()
    const entry = psSource.entry(child.pid)
    expect(entry).toMatchObject({ pid: child.pid, ppid: process.pid, session: child.pid })
    expect(Math.abs((entry?.startTicks ?? 0) * 1000 - Date.now())).toBeLessThan(60_000)
    expect(psSource.list().map(({ pid }) => pid)).toContain(child.pid)
    expect(psSource.entry(2 ** 22 + 1)).toBeNull()
  })
})

describe('ending', () => {
  test('a signal reaches the process that is meant', async () => {
    const child = start('trap "exit 7" TERM; while :; do sleep 0.05; done')
    const identity = identityOf(child.pid)
    await waitUntil('the trap is set', () => childrenOf(child.pid).length > 0)
    expect(killIdentity(identity, 'SIGTERM')).toBe(true)
    await ended(child)
    expect(child.exitCode).toBe(7)
    expect(killIdentity(identity, 'SIGTERM')).toBe(false)
  })

  test('a pid that means another process by now is never hit', async () => {
    const child = start()
    const identity = identityOf(child.pid)
    expect(killIdentity({ ...identity, startTicks: identity.startTicks - 1 }, 'SIGKILL')).toBe(
      false,
    )
    expect(killIdentity({ ...identity, bootId: 'another boot' }, 'SIGKILL')).toBe(false)
    expect(killSession({ ...identity, startTicks: identity.startTicks - 1 })).toBe(0)
    expect(killSession({ ...identity, bootId: 'another boot' })).toBe(0)
    expect(killIdentity({ ...identity, pid: 1 }, 'SIGKILL')).toBe(false)
    expect(isAlive(identity)).toBe(true)
  })

  test('a whole session ends, its leader gone or not, and no other session', async () => {
    const bystander = identityOf(start().pid)
    const leader = start('(sleep 60 & sleep 60; true) & sleep 60 & sleep 60; true')
    const identity = identityOf(leader.pid)
    const members = (): number[] =>
      listProcesses()
        .filter(({ session, isZombie }) => session === leader.pid && !isZombie)
        .map(({ pid }) => pid)
    await waitUntil('all are there', () => members().length === 6)
    leader.kill('SIGKILL')
    await ended(leader)
    expect(killSession(identity)).toBe(5)
    await waitUntil('the session is empty', () => members().length === 0)
    expect(killSession(identity)).toBe(0)
    expect(isAlive(bystander)).toBe(true)
  })

  test('a session that goes on forking while it is killed ends too', async () => {
    // Bounded, so that a broken build cannot flood the machine.
    const fork = 'i=0; while [ $i -lt 150 ]; do sleep 20 & i=$((i+1)); done'
    const leader = start(`(${fork}) & (${fork}) & ${fork}; wait`)
    const identity = identityOf(leader.pid)
    const members = (): number =>
      listProcesses().filter((entry) => entry.session === leader.pid && !entry.isZombie).length
    await waitUntil('it has grown', () => members() > 20)
    expect(killSession(identity)).toBeGreaterThan(20)
    await waitUntil('the session is empty', () => members() === 0)
  })

  test('our own session and a recorded member that leads none are handled one by one', async () => {
    const own = ownIdentity()
    expect(killSession({ ...own, pid: own.session, startTicks: -1 })).toBe(0)
    const leader = start('sleep 60 & sleep 60')
    const [first = 0, second = 0] = await waitUntil('two children', () => {
      const found = childrenOf(leader.pid)
      return found.length === 2 && found
    })
    const [hit, spared] = [identityOf(first), identityOf(second)]
    expect(killSession(hit)).toBe(1)
    await waitUntil('it has ended', () => !isAlive(hit))
    expect(isAlive(spared)).toBe(true)
  })
})

/** What runProcess has of a collected child: its session, but no start. */
function reusedLeader(pid: number): ProcessIdentity {
  const startTicks = identifyProcess(pid)?.startTicks ?? -1
  return { pid, session: pid, startTicks, bootId: currentBootId() }
}
