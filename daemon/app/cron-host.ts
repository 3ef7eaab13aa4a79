import { type CronJob, isOurJob } from '../core/cron-job.ts'
import { fault } from '../core/fault.ts'
import { readCronJobs } from '../host/cron-jobs.ts'
import { type WrapperParts, wrapperPartsOf } from '../host/cron-wrapper.ts'
import { findHermes, type HermesHost, lockJobs, requireHost } from '../host/hermes-cron.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import type { KernelLock } from '../sys/kernel-lock.ts'

export type CronOptions = Readonly<{ dryRun: boolean }>

/** Runs work under the lock that lets one process change the host's jobs. Faults: state/lock-busy, sys/io. */
export async function underLock<T>(
  host: HermesHost,
  work: (lock: KernelLock) => Promise<T>,
): Promise<T> {
  const lock = await lockJobs(host)
  try {
    return await work(lock)
  } finally {
    lock.remove()
  }
}

/** The host whose jobs are changed, and what its wrapper is made of. Faults: host/*. */
export function openHost(): Readonly<{ host: HermesHost; parts: WrapperParts }> {
  const host = requireHost(readEnvironment())
  return { host, parts: wrapperPartsOf(host, process.execPath) }
}

/** Called before anything is changed. Faults: host/absent when the host's program cannot be found. */
export function requireHermes(host: HermesHost): void {
  if (findHermes(host.environment) !== null) return
  throw fault('host/absent', { reason: 'its program "hermes" was not found' })
}

/** The host's jobs that call our wrapper, whatever their names. Faults: host/jobs-*. */
export function ourJobs(host: HermesHost): readonly CronJob[] {
  return readCronJobs(host.hermesHome).jobs.filter(isOurJob)
}

/** Sorted, each once. */
export function idsOf(jobs: readonly CronJob[]): readonly string[] {
  return [...new Set(jobs.map(({ id }) => id))].sort()
}
