import { canSpawnChild } from './spawn-child.ts'
import { spawnChildOfNode } from './spawn-child-of-node.ts'
import { spawnOwnChild } from './spawn-own-child.ts'
import type { SpawnOutcome, WorkerRequest } from './worker-process.ts'

/** Starts a worker without a shell, in its own session, with an empty stdin. The caller closes its own descriptors. */
export function spawnWorker(request: WorkerRequest): SpawnOutcome | Promise<SpawnOutcome> {
  return canSpawnChild() ? spawnOwnChild(request) : spawnChildOfNode(request)
}
