import { join } from 'node:path'
import { type CronJob, hasOurName, isOurJob } from '../core/cron-job.ts'
import { fault, reasonOf } from '../core/fault.ts'
import { readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'

// The host's list of scheduled jobs: the only evidence of what it runs for us. It is read,
// never written; fields that are unknown or odd are passed over, as hosts differ.

const MAX_BYTES = 32 * 1024 * 1024
/** What can be an argument of the host's commands; above all it begins with no hyphen. */
const ID = /^\w[\w.-]{0,127}$/

export type CronJobs = Readonly<{ path: string; jobs: readonly CronJob[] }>

/** All jobs; none when the host has written no list yet. Faults: host/jobs-unreadable, host/jobs-malformed. */
export function readCronJobs(hermesHome: string): CronJobs {
  const path = join(hermesHome, 'cron', 'jobs.json')
  const text = read(path)
  return { path, jobs: text === null ? [] : parse(path, text) }
}

function read(path: string): string | null {
  try {
    const real = realPath(path)
    return real === null ? null : (readFileBounded(real, MAX_BYTES)?.toString('utf8') ?? null)
  } catch (error) {
    throw fault('host/jobs-unreadable', { path, reason: reasonOf(error) }, error)
  }
}

function parse(path: string, text: string): readonly CronJob[] {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    // The parser's own words quote the text, which may hold a prompt.
    throw fault('host/jobs-malformed', { path, reason: 'it is not JSON' }, error)
  }
  const jobs = isRecord(document) ? document['jobs'] : null
  if (!Array.isArray(jobs)) {
    throw fault('host/jobs-malformed', { path, reason: 'it has no list "jobs"' })
  }
  return jobs.filter(isRecord).flatMap((record) => jobOf(path, record) ?? [])
}

/** null = a job without a usable id, which does not concern us unless it is ours. */
function jobOf(path: string, record: JsonObject): CronJob | null {
  const schedule = isRecord(record['schedule']) ? record['schedule'] : {}
  const minutes = schedule['kind'] === 'interval' ? schedule['minutes'] : null
  const id = textOf(record['id']) ?? ''
  const job: CronJob = {
    id,
    name: textOf(record['name']) ?? '',
    script: textOf(record['script']),
    noAgent: record['no_agent'] === true,
    everyMinutes: typeof minutes === 'number' ? minutes : null,
    schedule: textOf(record['schedule_display']) ?? textOf(schedule['display']),
    state: textOf(record['state']),
    enabled: record['enabled'] !== false,
    deliver: textOf(record['deliver']),
    nextRunAt: textOf(record['next_run_at']),
    lastRunAt: textOf(record['last_run_at']),
    lastStatus: textOf(record['last_status']),
    lastError: textOf(record['last_error']),
  }
  if (ID.test(id)) return job
  if (!isOurJob(job) && !hasOurName(job)) return null
  throw fault('host/jobs-malformed', {
    path,
    reason: 'a job of that name or script has no usable id',
  })
}

type JsonObject = Readonly<Record<string, unknown>>

function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
