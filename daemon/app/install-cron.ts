import {
  type CronJob,
  createArguments,
  type DesiredJob,
  desiredJob,
  editArguments,
  type InstallPlan,
  JOB_NAME,
  planInstall,
  SCRIPT_NAME,
  scheduleText,
} from '../core/cron-job.ts'
import { type Fault, fault } from '../core/fault.ts'
import { readCronJobs } from '../host/cron-jobs.ts'
import {
  inspectWrapper,
  requireOurs,
  type WrapperParts,
  wrapperPath,
  wrapperText,
  writeWrapper,
} from '../host/cron-wrapper.ts'
import { readGateway } from '../host/gateway.ts'
import { callHermes, type HermesHost } from '../host/hermes-cron.ts'
import { systemClock } from '../sys/clock.ts'
import { isExecutableFile } from '../sys/files.ts'
import type { KernelLock } from '../sys/kernel-lock.ts'
import { type CronOptions, idsOf, openHost, requireHermes, underLock } from './cron-host.ts'
import { inspectProgramConfig } from './load-program-config.ts'

/** The host's gateway writes its heartbeat every minute, and the host itself calls it dead after this time. */
const HEARTBEAT_STALE_MS = 200_000
/** `poll_interval_seconds` where no configuration says otherwise. */
const DEFAULT_INTERVAL_SECONDS = 120

export type InstallReport = Readonly<{
  action: 'created' | 'edited' | 'unchanged'
  dryRun: boolean
  /** Null = a dry run found no job. */
  job: CronJob | null
  schedule: string
  wrapper: Readonly<{ path: string; written: boolean }>
  /** What the operator may want to know; no hint is a failure. */
  hints: readonly string[]
}>

const DONE = { create: 'created', edit: 'edited', nothing: 'unchanged' } as const

/**
 * Makes the host run a tick regularly: first the wrapper, then exactly one job that calls it. A job that
 * exists keeps its id, name, pause and target. Success is what the host's files show afterwards, and each call
 * starts from what it finds there, so a call that was cut off is finished by the next one.
 * Faults: host/*, cron/*, state/lock-busy, sys/io.
 */
export async function installCron({ dryRun }: CronOptions): Promise<InstallReport> {
  const { host, parts } = openHost()
  if (!isExecutableFile(host.launcher)) throw fault('host/not-built', { path: host.launcher })
  const { desired, hints } = desiredByConfig(host)
  const found = inspectBefore(host, parts, desired)
  const isDone = found.plan === 'nothing' && found.isCurrent
  const applied =
    dryRun || isDone
      ? found
      : await underLock(host, async (lock) => {
          const now = inspectBefore(host, parts, desired)
          writeWrapper(parts)
          return { ...now, job: await applyPlan(host, lock, desired, now) }
        })
  return {
    action: DONE[applied.plan],
    dryRun,
    job: applied.job,
    schedule: scheduleText(desired),
    wrapper: { path: wrapperPath(host.hermesHome), written: !applied.isCurrent },
    hints: [...hints, ...hintsOf(host, applied.job)],
  }
}

/** Every check that can refuse the installation, before anything is changed. */
function inspectBefore(
  host: HermesHost,
  parts: WrapperParts,
  desired: DesiredJob,
): RemainingPlan & { isCurrent: boolean } {
  const open = planFor(host, desired)
  const { state, node } = requireOurs(inspectWrapper(parts))
  // Throws for a path that no script can hold.
  wrapperText(parts)
  if (open.plan !== 'nothing') requireHermes(host)
  return { ...open, isCurrent: state === 'current' && node === parts.node }
}

type RemainingPlan = Readonly<{
  plan: 'create' | 'edit' | 'nothing'
  job: CronJob | null
}>

/** The change of jobs that remains to be made. Faults: cron/duplicate-jobs, cron/foreign-job, host/jobs-*. */
function planFor(host: HermesHost, desired: DesiredJob): RemainingPlan {
  const plan = planInstall(desired, readCronJobs(host.hermesHome).jobs)
  const [first] = plan.jobs
  if (plan.kind === 'refuse-duplicates' || plan.kind === 'refuse-namesake') throw refusal(plan)
  return { plan: plan.kind, job: first ?? null }
}

function refusal({ kind, jobs }: InstallPlan): Fault {
  const ids = idsOf(jobs).join(', ')
  return kind === 'refuse-duplicates'
    ? fault('cron/duplicate-jobs', { count: jobs.length, script: SCRIPT_NAME, ids })
    : fault('cron/foreign-job', { name: JOB_NAME, ids, id: jobs[0]?.id ?? '' })
}

async function applyPlan(
  host: HermesHost,
  lock: KernelLock,
  desired: DesiredJob,
  before: RemainingPlan,
): Promise<CronJob | null> {
  if (before.plan === 'nothing') return before.job
  const args =
    before.job === null ? createArguments(desired) : editArguments(before.job.id, desired)
  const output = await callHermes(host, lock, args)
  const after = planFor(host, desired)
  if (after.plan === 'nothing') return after.job
  throw fault('cron/not-reached', { verb: before.plan, reason: output })
}

/** An operator may install the job before the configuration is complete; each tick reports what is wrong. */
function desiredByConfig(
  host: HermesHost,
): Readonly<{ desired: DesiredJob; hints: readonly string[] }> {
  const inspection = inspectProgramConfig(host.environment)
  if (inspection.kind === 'valid') {
    return { desired: desiredJob(inspection.loaded.config.pollIntervalSeconds), hints: [] }
  }
  const hint = `The configuration does not load yet, so the default interval is used. ${inspection.fault.message}`
  return { desired: desiredJob(DEFAULT_INTERVAL_SECONDS), hints: [hint] }
}

function hintsOf(host: HermesHost, job: CronJob | null): readonly string[] {
  const { heartbeatAt } = readGateway(host.hermesHome)
  const isTicking = heartbeatAt !== null && systemClock.now() - heartbeatAt <= HEARTBEAT_STALE_MS
  return [
    ...(job === null || job.state !== 'paused'
      ? []
      : [`The job is paused and stays so; let it go on with: hermes cron resume ${job.id}`]),
    ...(job === null || job.enabled || job.state === 'paused'
      ? []
      : [`The job is not enabled; see: hermes cron list --all`]),
    ...(isTicking ? [] : ['Nothing fires until the gateway runs: hermes gateway start']),
  ]
}
