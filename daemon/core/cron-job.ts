// The job that the host's scheduler runs for us: which jobs are ours, and what has to be done about
// them. The host gives a job no field for an owner, so name and script tell.

export const JOB_NAME = 'caduceus'
/** In the host's folder of scripts; only `.sh` files are given to a shell. */
export const SCRIPT_NAME = 'caduceus-pulse.sh'

/** What matters of a job of the host; null = the host says nothing of it. */
export type CronJob = Readonly<{
  id: string
  name: string
  script: string | null
  /** The script alone runs, no model. */
  noAgent: boolean
  /** Minutes between two runs; null = its schedule is no interval. */
  everyMinutes: number | null
  /** As the host shows it. */
  schedule: string | null
  /** scheduled, paused, completed, error. */
  state: string | null
  enabled: boolean
  deliver: string | null
  nextRunAt: string | null
  lastRunAt: string | null
  /** ok, error. */
  lastStatus: string | null
  lastError: string | null
}>

/** The job as it should be. */
export type DesiredJob = Readonly<{ everyMinutes: number }>

/** The host counts in whole minutes, so a part of one becomes a whole one. */
export function desiredJob(pollIntervalSeconds: number): DesiredJob {
  return { everyMinutes: Math.max(1, Math.ceil(pollIntervalSeconds / 60)) }
}

/** The schedule in the host's words; without "every" it would mean once. */
export function scheduleText(desired: DesiredJob): string {
  return `every ${desired.everyMinutes}m`
}

/** Whether the job runs our script, whatever its name: people may rename it. */
export function isOurJob(job: Pick<CronJob, 'script'>): boolean {
  return job.script !== null && scriptOf(job.script) === SCRIPT_NAME
}

/** Whether a job that is not ours has our name; the host compares names without regard to case. */
export function hasOurName(job: Pick<CronJob, 'name'>): boolean {
  return job.name.trim().toLowerCase() === JOB_NAME
}

/** What a job of ours has otherwise than it should. */
const DIFFERENCES = {
  schedule: (job: CronJob, desired: DesiredJob) => job.everyMinutes !== desired.everyMinutes,
  script: (job: CronJob) => job.script !== SCRIPT_NAME,
  no_agent: (job: CronJob) => !job.noAgent,
} as const

export type Difference = keyof typeof DIFFERENCES

type Found = Readonly<{
  ours: readonly CronJob[]
  /** Jobs with our name and another script. */
  namesakes: readonly CronJob[]
  differences: readonly Difference[]
}>

/** The first row that holds is the plan. The rows before the last write nothing or preserve the job's id. */
const ROWS = [
  { kind: 'refuse-duplicates', when: ({ ours }: Found) => ours.length > 1 },
  {
    kind: 'nothing',
    when: ({ ours, differences }: Found) => ours.length === 1 && differences.length === 0,
  },
  { kind: 'edit', when: ({ ours }: Found) => ours.length === 1 },
  { kind: 'refuse-namesake', when: ({ namesakes }: Found) => namesakes.length > 0 },
  { kind: 'create', when: () => true },
] as const

export type InstallPlan = Readonly<{
  kind: (typeof ROWS)[number]['kind']
  /** The jobs the plan is about: ours, or the namesakes. */
  jobs: readonly CronJob[]
  /** Of the one job of ours. */
  differences: readonly Difference[]
}>

/** What makes the host's jobs hold exactly the desired one of ours; never touches what is not ours. */
export function planInstall(desired: DesiredJob, jobs: readonly CronJob[]): InstallPlan {
  const ours = jobs.filter(isOurJob)
  const namesakes = jobs.filter((job) => !isOurJob(job) && hasOurName(job))
  const [only] = ours
  const differences = only === undefined ? [] : differencesOf(only, desired)
  const found: Found = { ours, namesakes, differences }
  const { kind } = ROWS.find((row) => row.when(found)) ?? { kind: 'create' }
  return { kind, jobs: kind === 'refuse-namesake' ? namesakes : ours, differences }
}

function differencesOf(job: CronJob, desired: DesiredJob): readonly Difference[] {
  const names = Object.keys(DIFFERENCES) as Difference[]
  return names.filter((name) => DIFFERENCES[name](job, desired))
}

/** Arguments of `hermes` that make the job. Without `--deliver` a chat might be taken. */
export function createArguments(desired: DesiredJob): readonly string[] {
  const target = ['--name', JOB_NAME, '--script', SCRIPT_NAME, '--no-agent', '--deliver', 'local']
  return ['cron', 'create', scheduleText(desired), ...target]
}

/** Arguments that put a job of ours right; id, history, pause, name and deliver stay. */
export function editArguments(id: string, desired: DesiredJob): readonly string[] {
  const target = ['--schedule', scheduleText(desired), '--script', SCRIPT_NAME, '--no-agent']
  return ['cron', 'edit', id, ...target]
}

export function removeArguments(id: string): readonly string[] {
  return ['cron', 'remove', id]
}

/** `./x` and `x` are the same script. */
function scriptOf(script: string): string {
  return script
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')
}
