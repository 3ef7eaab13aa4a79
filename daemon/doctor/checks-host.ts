import { join } from 'node:path'
import { type CronJob, desiredJob, hasOurName, isOurJob, planInstall } from '../core/cron-job.ts'
import { redact } from '../core/redaction.ts'
import { readCronJobs } from '../host/cron-jobs.ts'
import { inspectWrapper, type WrapperState, wrapperPartsOf } from '../host/cron-wrapper.ts'
import { readGateway } from '../host/gateway.ts'
import { findHermes, requireHost } from '../host/hermes-cron.ts'
import { fileStatus, isDirectory } from '../sys/files.ts'
import { runProcess } from '../sys/run-process.ts'
import { describeScope } from '../sys/run-scope.ts'
import {
  describeAge,
  type Finding,
  fail,
  isAtLeast,
  ok,
  parseVersion,
  skipped,
  tickerProblem,
  warn,
} from './check-result.ts'
import type { Check, DoctorFacts } from './open-facts.ts'

const OLDEST_HERMES = [0, 18, 2] as const
const HERMES_MS = 20_000
/** The host's ticker may be late, and a machine may have slept. */
const OVERDUE_MINUTES = 10
const INSTALL = 'Run: hermes caduceus cron-install'

/** The host that starts ticks: its job for us, its script, its gateway. */
export const HOST_CHECKS = [
  {
    name: 'Host version',
    group: 'host',
    category: 'host-prerequisite',
    // Some hosts look for updates when they are asked.
    needs: ['hermes', 'network'],
    needsConfiguration: false,
    run: checkHostVersion,
  },
  {
    name: 'Gateway ticker',
    group: 'host',
    category: 'host-prerequisite',
    needs: ['hermes'],
    needsConfiguration: false,
    run: checkTicker,
  },
  {
    name: 'Gateway age',
    group: 'host',
    category: 'configuration-runtime',
    needs: ['hermes'],
    needsConfiguration: false,
    run: checkGatewayAge,
  },
  {
    name: 'Cron job',
    group: 'host',
    category: 'configuration-runtime',
    needs: ['hermes'],
    needsConfiguration: false,
    run: checkCronJob,
  },
  {
    name: 'Cron wrapper',
    group: 'host',
    category: 'configuration-runtime',
    needs: ['hermes'],
    needsConfiguration: false,
    run: checkWrapper,
  },
  {
    name: 'Run scope',
    group: 'host',
    category: 'configuration-runtime',
    needs: ['hermes'],
    needsConfiguration: false,
    run: checkScope,
  },
  {
    name: 'Schedule',
    group: 'host',
    category: 'configuration-runtime',
    needsConfiguration: false,
    run: ({ hermesHome }) => [
      hermesHome === null
        ? ok('not under Hermes: a timer, a user crontab or caduceus daemon has to start ticks')
        : skipped('kept by Hermes'),
    ],
  },
] as const satisfies readonly Check[]

async function checkHostVersion({ environment }: DoctorFacts): Promise<readonly Finding[]> {
  const wanted = OLDEST_HERMES.join('.')
  const program = findHermes(environment)
  if (program === null) return [fail('hermes is not in PATH', `Install Hermes ${wanted} or newer.`)]
  const { stdout, code } = await runProcess({
    argv: [program, '--version'],
    env: { ...environment, NO_COLOR: '1' },
    timeoutMs: HERMES_MS,
  })
  const version = code === 0 ? parseVersion(stdout.toString()) : null
  if (version === null) {
    return [fail(`${program} does not tell its version`, 'Mend the installation of Hermes.')]
  }
  const detail = `Hermes ${version.join('.')} at ${program}`
  if (isAtLeast(version, OLDEST_HERMES)) return [ok(detail)]
  return [fail(`${detail} is too old`, `Update to Hermes ${wanted} or newer.`)]
}

function checkTicker({ hermesHome, now }: DoctorFacts): readonly Finding[] {
  const { heartbeatAt: beatAt, successAt } = readGateway(hermesHome ?? '')
  const beatMs = beatAt === null ? null : now - beatAt
  const trouble = tickerProblem(beatMs, successAt === null ? null : now - successAt)
  if (trouble === null) return [ok(`last beat ${describeAge(Math.max(beatMs ?? 0, 0))} ago`)]
  const next = 'Start the gateway of Hermes; if it runs, restart it and look into its log.'
  return [fail(trouble, next)]
}

/** Scripts keep the environment of the gateway's start (H§5.6, #59030); its plugins are those of then, too. */
function checkGatewayAge({ hermesHome }: DoctorFacts): readonly Finding[] {
  const home = hermesHome ?? ''
  const { running } = readGateway(home)
  if (running === null) return [ok('no running gateway is known')]
  const changed = [
    { path: join(home, '.env'), what: 'the environment of jobs is that of before' },
    {
      path: join(home, 'plugins', 'caduceus', 'plugin.yaml'),
      what: 'chat does not know the plugin as it is',
    },
  ].filter(({ path }) => (fileStatus(path)?.mtimeMs ?? 0) > running.startedAt)
  if (changed.length === 0) return [ok(`process ${running.pid} is newer than .env and plugin`)]
  const detail = changed.map(({ path, what }) => `it started before ${path} changed: ${what}`)
  return [warn(detail.join('; '), 'Restart the gateway.')]
}

/** There has to be exactly one that runs our script, as it should be (H§9.5). */
function checkCronJob({ hermesHome, inspection, now }: DoctorFacts): readonly Finding[] {
  const { jobs } = readCronJobs(hermesHome ?? '')
  const [job, ...others] = jobs.filter(isOurJob)
  if (job === undefined) {
    const namesake = jobs.find(hasOurName)
    if (namesake === undefined) return [fail('Hermes has no job that starts ticks', INSTALL)]
    const next = 'Rename or remove that job, then run: hermes caduceus cron-install'
    return [fail(`the job ${namesake.id} has the name, but starts something else`, next)]
  }
  if (others.length > 0) {
    const ids = [job, ...others].map(({ id }) => id).sort()
    const next = `Remove all but one with: hermes cron remove ID`
    return [fail(`several jobs start ticks: ${ids.join(', ')}`, next)]
  }
  const interval = inspection.kind === 'valid' ? inspection.loaded.config.pollIntervalSeconds : null
  const plan = interval === null ? null : planInstall(desiredJob(interval), jobs)
  if (plan !== null && plan.differences.length > 0) {
    const detail = `the job ${job.id} has another ${plan.differences.join(' and ')} than it should`
    return [fail(detail, INSTALL)]
  }
  if (!job.enabled || job.state === 'paused') {
    return [warn(`the job ${job.id} is paused`, `When it may go on: hermes cron resume ${job.id}`)]
  }
  const lapse = lapseOf(job, now)
  if (lapse !== null) {
    const next = `See: hermes cron list; to make it anew: hermes cron remove ${job.id}, then cron-install`
    return [warn(`the job ${job.id} ${lapse}`, next)]
  }
  const last = job.lastRunAt === null ? 'it has not run yet' : `last run ${job.lastRunAt}`
  if (job.lastStatus === 'error') {
    const why = redact(job.lastError ?? 'no reason given')
      .replaceAll(/\s+/g, ' ')
      .slice(0, 300)
    return [warn(`the job ${job.id}: ${last}, failed: ${why}`, 'Mend that, then: caduceus run')]
  }
  return [ok(`${job.id}, ${job.schedule ?? 'on its schedule'}, ${last}`)]
}

/** Why an enabled job does not run; null = nothing is known against it. */
function lapseOf({ state, everyMinutes, nextRunAt }: CronJob, now: number): string | null {
  if (state === 'error' || state === 'completed')
    return `has the state ${state}, so it does not run`
  const overdueMs = nextRunAt === null ? Number.NaN : now - Date.parse(nextRunAt)
  const maxWaitMs = Math.max(3 * (everyMinutes ?? 0), OVERDUE_MINUTES) * 60_000
  return overdueMs > maxWaitMs ? `is overdue by ${describeAge(overdueMs)}` : null
}

/** What is wrong with each state of the script; null = nothing. */
const WRAPPER_TROUBLE = {
  current: null,
  absent: { says: 'it is missing', next: INSTALL },
  foreign: {
    says: 'it is not ours and is left alone',
    next: 'Move it away, then run: hermes caduceus cron-install',
  },
  outdated: { says: 'it is not as this version makes it', next: 'Run: caduceus doctor --fix' },
  'node-gone': { says: 'the node it names has left', next: 'Run: caduceus doctor --fix' },
} as const satisfies Record<WrapperState, { says: string; next: string } | null>

function checkWrapper({ environment, hermesHome }: DoctorFacts): readonly Finding[] {
  const parts = wrapperPartsOf(requireHost(environment), process.execPath)
  const { path, state, node } = inspectWrapper(parts)
  if (state === 'absent' && !readCronJobs(hermesHome ?? '').jobs.some(isOurJob)) {
    return [skipped('there is no job yet')]
  }
  const trouble = WRAPPER_TROUBLE[state]
  if (trouble === null) return [ok(`${path}, with ${node ?? 'node'}`)]
  return [fail(`${path}: ${trouble.says}`, trouble.next)]
}

/** Without a scope of their own runs end with the gateway's service (H§5.4). */
function checkScope({ cron }: DoctorFacts): readonly Finding[] {
  const scope = describeScope(cron)
  if (scope.kind !== 'none') return [ok('runs outlive a restart of the gateway')]
  const detail = `runs stay in the process group of the gateway: ${scope.reason}`
  // Without systemd there is no service that takes them along.
  if (!isDirectory('/run/systemd/system')) return [ok(detail)]
  return [
    warn(detail, 'Restart the gateway only while no run is under way, or: loginctl enable-linger'),
  ]
}
