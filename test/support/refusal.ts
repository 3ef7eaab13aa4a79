import { expect } from '@jest/globals'
import type { Finished, ProgramRig } from './program-rig.ts'

/** A run with nothing to tell. */
export const QUIET = { code: 0, stdout: '', stderr: '' }

/** Runs a command that cannot do its work, and returns the one line it says. */
export async function refusalOf(rig: ProgramRig, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await rig.run(...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^caduceus: [^\n]+\n$/)
  return stderr.slice('caduceus: '.length, -1)
}

/** One tick, later than any backoff ends. */
export async function tickLater(rig: ProgramRig): Promise<Finished> {
  rig.clock.advance(3_600_000)
  return rig.tick()
}

/** What `status` tells as recent errors, without their dates. */
export async function errorsOf(rig: ProgramRig): Promise<readonly string[]> {
  const { report } = await rig.status()
  return (report?.recent_errors ?? []).map((line) => line.replace(/^\S+ /, ''))
}
