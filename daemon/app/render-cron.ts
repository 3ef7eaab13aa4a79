import { JOB_NAME } from '../core/cron-job.ts'
import type { InstallReport } from './install-cron.ts'
import type { RemoveReport } from './remove-cron.ts'

const INSTALL_WORDS = {
  created: { done: 'created', planned: 'would create' },
  edited: { done: 'put right', planned: 'would put right' },
  unchanged: { done: 'left as it is', planned: 'would leave as it is' },
} as const satisfies Record<InstallReport['action'], { done: string; planned: string }>

/** The report as lines for people; the first line says all that matters. */
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

/** The report as lines for people, as `renderInstall` gives them. */
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
