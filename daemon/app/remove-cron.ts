import { removeArguments } from '../core/cron-job.ts'
import { fault } from '../core/fault.ts'
import { inspectWrapper, removeWrapper } from '../host/cron-wrapper.ts'
import { callHermes, type HermesHost } from '../host/hermes-cron.ts'
import type { KernelLock } from '../sys/kernel-lock.ts'
import {
  type CronOptions,
  idsOf,
  openHost,
  ourJobs,
  requireHermes,
  underLock,
} from './cron-host.ts'

export type RemoveReport = Readonly<{
  action: 'removed' | 'nothing'
  dryRun: boolean
  /** Ids of the removed jobs; of a dry run, of the jobs it would remove. */
  jobs: readonly string[]
  wrapper: Readonly<{ path: string; removed: boolean }>
  hints: readonly string[]
}>

/**
 * Removes every job that calls our wrapper, duplicates and renamed ones included, and then the wrapper. Foreign
 * jobs and scripts stay. Having nothing to remove is no failure. Faults: host/*, cron/not-reached, state/lock-busy, sys/io.
 */
export async function removeCron({ dryRun }: CronOptions): Promise<RemoveReport> {
  const { host, parts } = openHost()
  const inspect = (): RemoveReport => {
    const jobs = idsOf(ourJobs(host))
    if (jobs.length > 0) requireHermes(host)
    const { path, state } = inspectWrapper(parts)
    const removed = state !== 'absent' && state !== 'foreign'
    const hints = state === 'foreign' ? [`${path} was not made by Caduceus and is left.`] : []
    const action = jobs.length > 0 || removed ? 'removed' : 'nothing'
    return { action, dryRun, jobs, wrapper: { path, removed }, hints }
  }
  const found = inspect()
  if (dryRun || found.action === 'nothing') return found
  return underLock(host, async (lock) => {
    const now = inspect()
    for (const id of now.jobs) await removeJob(host, lock, id)
    removeWrapper(parts)
    return now
  })
}

async function removeJob(host: HermesHost, lock: KernelLock, id: string): Promise<void> {
  const output = await callHermes(host, lock, removeArguments(id))
  if (!ourJobs(host).some((job) => job.id === id)) return
  throw fault('cron/not-reached', { verb: 'remove', reason: output })
}
