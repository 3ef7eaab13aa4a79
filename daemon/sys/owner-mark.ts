import { commandLineOf, processesWithVariable } from './find-processes.ts'
import type { ProcessIdentity } from './process-identity.ts'
import { killIdentity, killSession } from './terminate.ts'

// Programs we start lead sessions of their own, so that they can be ended with all they start; that is also
// why they go on when we are killed. They carry a mark by which an adopter finds them (PROTOCOLS, Adoption).

const VARIABLE = 'CADUCEUS_OWNER'
/** What git and ssh keep for all their callers: a credential cache, a shared connection. They act for no one run. */
const SHARED = /credential-cache--daemon|^ssh: .*\[mux\]/
const MAX_ROUNDS = 20

/** For the environment of a program that acts for this process. */
export function ownerMark(owner: ProcessIdentity): Readonly<Record<string, string>> {
  return { [VARIABLE]: valueOf(owner) }
}

/**
 * SIGKILLs a process by its identity, its session, and the processes that carry its mark; returns how many were
 * hit. Where the platform does not show the environments of others, only the former two are (macOS).
 */
export function killOwned(owner: ProcessIdentity): number {
  let hit = killSession(owner)
  // One that is hit may just have started another; each round needs a living one, so few suffice.
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const marked = processesWithVariable(VARIABLE, valueOf(owner))
    const targets = marked.filter(({ pid }) => !SHARED.test(commandLineOf(pid)))
    const killed = targets.filter((process) => killIdentity(process, 'SIGKILL')).length
    if (killed === 0) break
    hit += killed
  }
  return hit
}

function valueOf({ bootId, pid, startTicks }: ProcessIdentity): string {
  return `${bootId}/${pid}/${startTicks}`
}
