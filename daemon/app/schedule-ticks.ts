import {
  type CronJob,
  createArguments,
  type DesiredJob,
  desiredJob,
  editArguments,
  type InstallPlan,
  isOurJob,
  JOB_NAME,
  planInstall,
  removeArguments,
  SCRIPT_NAME,
  scheduleText,
} from '../core/cron-job.ts'
import { type Fault, fault } from '../core/fault.ts'
import { readCronJobs } from '../host/cron-jobs.ts'
import {
  inspectWrapper,
  removeWrapper,
  requireOurs,
  type WrapperParts,
  wrapperPartsOf,
  wrapperPath,
  wrapperText,
  writeWrapper,
} from '../host/cron-wrapper.ts'
import { readGateway } from '../host/gateway.ts'
import {
  callHermes,
  findHermes,
  type HermesHost,
  lockJobs,
  requireHost,
} from '../host/hermes-cron.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { isExecutableFile } from '../sys/files.ts'
import type { KernelLock } from '../sys/kernel-lock.ts'
import { inspectProgramConfig } from './load-program-config.ts'

// cron-install and cron-remove. Each step is judged by looking at the host's files afterwards, and each
// command begins with what it finds there; so one that was cut off anywhere is finished by calling it again.

/** A gateway ticks every minute; the host itself calls it dead after this (H§6.5). */
const BEAT_STALE_MS = 200_000
/** `poll_interval_seconds` where no configuration says otherwise. */
const DEFAULT_INTERVAL_SECONDS = 120

export type CronOptions = Readonly<{ dryRun: boolean }>

export type InstallReport = Readonly<{
  action: 'created' | 'edited' | 'unchanged'
  dryRun: boolean
  /** Null when a dry run found none. */
  job: CronJob | null
  schedule: string
  wrapper: Readonly<{ path: string; written: boolean }>
  /** What the operator may want to know; none of it is a failure. */
  hints: readonly string[]
}>

export type RemoveReport = Readonly<{
  action: 'removed' | 'nothing'
  dryRun: boolean
  /** Ids of the jobs that are gone, or would be. */
  jobs: readonly string[]
  wrapper: Readonly<{ path: string; removed: boolean }>
  hints: readonly string[]
}>

const DONE = { create: 'created', edit: 'edited', nothing: 'unchanged' } as const

/**
 * Makes the host run a tick regularly: first the wrapper, then exactly one job that calls it. A job that
 * is there keeps its id, name, pause and target.
 * Faults: host/*, cron/*, state/lock-busy, sys/io.
 */
export async function installCron({ dryRun }: CronOptions): Promise<InstallReport> {
  const { host, parts } = openHost()
  if (!isExecutableFile(host.launcher)) throw fault('host/not-built', { path: host.launcher })
  const { wanted, hints } = desiredByConfig(host)
  const found = inspectBefore(host, parts, wanted)
  const isDone = found.plan === 'nothing' && found.isCurrent
  const reached =
    dryRun || isDone
      ? found
      : await underLock(host, async (lock) => {
          const now = inspectBefore(host, parts, wanted)
          writeWrapper(parts)
          return { ...now, job: await reachPlan(host, lock, wanted, now) }
        })
  return {
    action: DONE[reached.plan],
    dryRun,
    job: reached.job,
    schedule: scheduleText(wanted),
    wrapper: { path: wrapperPath(host.hermesHome), written: !reached.isCurrent },
    hints: [...hints, ...hintsOf(host, reached.job)],
  }
}

/** All that can refuse, before anything is changed. */
function inspectBefore(
  host: HermesHost,
  parts: WrapperParts,
  wanted: DesiredJob,
): OpenPlan & { isCurrent: boolean } {
  const open = planFor(host, wanted)
  const { state, node } = requireOurs(inspectWrapper(parts))
  // A path that no script can hold is a refusal as well.
  wrapperText(parts)
  if (open.plan !== 'nothing') requireHermes(host)
  return { ...open, isCurrent: state === 'current' && node === parts.node }
}

/**
 * Removes every job of ours, also duplicates and renamed ones, and then the wrapper; what is not ours
 * stays. Nothing there is no failure. Faults: host/*, cron/not-reached, state/lock-busy, sys/io.
 */
export async function removeCron({ dryRun }: CronOptions): Promise<RemoveReport> {
  const { host, parts } = openHost()
  const inspect = (): RemoveReport => {
    const jobs = idsOf(oursOf(host))
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

async function underLock<T>(host: HermesHost, work: (lock: KernelLock) => Promise<T>): Promise<T> {
  const lock = await lockJobs(host)
  try {
    return await work(lock)
  } finally {
    lock.remove()
  }
}

type OpenPlan = Readonly<{
  plan: 'create' | 'edit' | 'nothing'
  job: CronJob | null
}>

/** What is left to do. Faults: cron/duplicate-jobs, cron/foreign-job, host/jobs-*. */
function planFor(host: HermesHost, wanted: DesiredJob): OpenPlan {
  const plan = planInstall(wanted, readCronJobs(host.hermesHome).jobs)
  const [first] = plan.jobs
  if (plan.kind === 'refuse-duplicates' || plan.kind === 'refuse-namesake') throw refusal(plan)
  return { plan: plan.kind, job: first ?? null }
}

function refusal({ kind, jobs }: InstallPlan): Fault {
  const ids = idsOf(jobs).join(', ')
  return kind === 'refuse-duplicates'
    ? fault('cron/duplicate-jobs', { count: jobs.length, script: SCRIPT_NAME, ids })
    : fault('cron/foreign-job', { name: JOB_NAME, ids, id: jobs[0]?.id })
}

async function reachPlan(
  host: HermesHost,
  lock: KernelLock,
  wanted: DesiredJob,
  before: OpenPlan,
): Promise<CronJob | null> {
  if (before.plan === 'nothing') return before.job
  const args = before.job === null ? createArguments(wanted) : editArguments(before.job.id, wanted)
  const said = await callHermes(host, lock, args)
  const after = planFor(host, wanted)
  if (after.plan === 'nothing') return after.job
  throw fault('cron/not-reached', { verb: before.plan, reason: said })
}

async function removeJob(host: HermesHost, lock: KernelLock, id: string): Promise<void> {
  const said = await callHermes(host, lock, removeArguments(id))
  if (!oursOf(host).some((job) => job.id === id)) return
  throw fault('cron/not-reached', { verb: 'remove', reason: said })
}

function openHost(): Readonly<{ host: HermesHost; parts: WrapperParts }> {
  const host = requireHost(readEnvironment())
  return { host, parts: wrapperPartsOf(host, process.execPath) }
}

/** Faults: host/absent. Asked before anything is changed. */
function requireHermes(host: HermesHost): void {
  if (findHermes(host.environment) !== null) return
  throw fault('host/absent', { reason: 'its program "hermes" was not found' })
}

function oursOf(host: HermesHost): readonly CronJob[] {
  return readCronJobs(host.hermesHome).jobs.filter(isOurJob)
}

function idsOf(jobs: readonly CronJob[]): readonly string[] {
  return [...new Set(jobs.map(({ id }) => id))].sort()
}

/** People may install the job before they have finished the configuration; each tick says what is wrong. */
function desiredByConfig(
  host: HermesHost,
): Readonly<{ wanted: DesiredJob; hints: readonly string[] }> {
  const inspection = inspectProgramConfig(host.environment)
  if (inspection.kind === 'valid') {
    return { wanted: desiredJob(inspection.loaded.config.pollIntervalSeconds), hints: [] }
  }
  const hint = `The configuration does not load yet, so the default interval is used. ${inspection.fault.message}`
  return { wanted: desiredJob(DEFAULT_INTERVAL_SECONDS), hints: [hint] }
}

function hintsOf(host: HermesHost, job: CronJob | null): readonly string[] {
  const { heartbeatAt: beatAt } = readGateway(host.hermesHome)
  const isTicking = beatAt !== null && systemClock.now() - beatAt <= BEAT_STALE_MS
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

const INSTALL_WORDS = {
  created: { done: 'created', planned: 'would create' },
  edited: { done: 'put right', planned: 'would put right' },
  unchanged: { done: 'left as it is', planned: 'would leave as it is' },
} as const satisfies Record<InstallReport['action'], { done: string; planned: string }>

/** The report as lines for people; the first says all that matters. */
export function renderInstall(report: InstallReport): readonly string[] {
  const { action, dryRun, job, schedule, wrapper, hints } = report
  const name = job === null ? `"${JOB_NAME}"` : `"${job.name}" (${job.id})`
  const does = INSTALL_WORDS[action][dryRun ? 'planned' : 'done']
  const what = dryRun ? `${does} job ${name}` : `job ${name} ${does}`
  const writes = wrapper.written ? (dryRun ? 'would be written' : 'written') : 'unchanged'
  return [
    `[OK] cron-install — ${what}, ${schedule}; script ${wrapper.path} ${writes}`,
    ...hints.map((hint) => `  hint: ${hint}`),
  ]
}

/** As `renderInstall`. */
export function renderRemove(report: RemoveReport): readonly string[] {
  const { action, dryRun, jobs, wrapper, hints } = report
  const things = [
    ...(jobs.length === 0 ? [] : [`job ${jobs.join(', ')}`]),
    ...(wrapper.removed ? [`script ${wrapper.path}`] : []),
  ].join(' and ')
  const what = dryRun ? `would remove ${things}` : `removed ${things}`
  return [
    `[OK] cron-remove — ${action === 'nothing' ? 'there was nothing to remove' : what}`,
    ...hints.map((hint) => `  hint: ${hint}`),
  ]
}
