import type { Status, StatusReport } from './read-status.ts'

const NONE = '-'

/** `status` for people (R§1.4): the order is fixed. */
export function renderStatus(status: Status): string {
  const head = ['caduceus status', `  state dir: ${status.state_dir}`]
  const { report } = status
  if (report === null) return [...head, `  ${status.diagnostic}: ${status.message}`].join('\n')
  return [...head, ...cadenceLines(report), ...workLines(report), ...noticeLines(report)].join('\n')
}

function cadenceLines(report: StatusReport): readonly string[] {
  return [
    `  last tick started: ${report.last_tick_started ?? NONE}`,
    `  last tick finished: ${report.last_tick_finished ?? NONE}`,
    `  last outcome: ${report.last_outcome === null ? NONE : camelCase(report.last_outcome)}`,
    ...(report.last_http_status === null ? [] : [`  last http status: ${report.last_http_status}`]),
    `  next allowed poll: ${report.next_allowed_poll_at ?? NONE}`,
    ...(report.rate_limited_until === null
      ? []
      : [`  GitHub limits requests until: ${report.rate_limited_until}`]),
  ]
}

function workLines(report: StatusReport): readonly string[] {
  const { running, parallelism } = report.pool_state
  const phases = Object.entries(report.phases).map(([phase, count]) => `    ${phase}: ${count}`)
  const head =
    report.next_head ??
    (report.next_head_earliest_eligibility === null
      ? NONE
      : `(all backed off) earliest eligibility = ${report.next_head_earliest_eligibility}`)
  const workers = report.live_workers.map(
    (worker) =>
      `    ${worker.run_id} ${worker.issue} pid ${worker.pid ?? NONE} ${worker.stage} ${worker.freshness} since ${worker.started_at ?? NONE} ${worker.transcript_path}`,
  )
  return [
    `  pool state: ${running} of ${parallelism} running`,
    '  phases:',
    ...phases,
    `  next head: ${head}`,
    `  live workers: ${workers.length === 0 ? '(none)' : workers.length}`,
    ...workers,
  ]
}

function noticeLines(report: StatusReport): readonly string[] {
  const blocked = report.blocked_issues.flatMap((issue) => [
    `    ${issue.issue_key}: ${issue.blocked_source}`,
    `      reason: ${issue.last_error ?? NONE}`,
    `      next: ${issue.blocked_recovery_hint || NONE}`,
  ])
  return [
    ...section(
      'circuits',
      report.circuits.map(
        ({ name, state, failures, until, last_error }) =>
          `    ${name}: ${state}${until === null ? '' : ` until ${until}`} after ${failures} failures (${last_error})`,
      ),
    ),
    ...section('blocked issues', blocked),
    ...section(
      'notes',
      report.diagnostics.map(({ at, issue, message }) => `    ${at} ${issue ?? NONE}: ${message}`),
    ),
    ...section(
      'configuration warnings',
      report.configuration_warnings.map((line) => `    ${line}`),
    ),
    ...section(
      'recent errors',
      report.recent_errors.map((line) => `    ${line}`),
    ),
  ]
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`  ${title}:`, ...lines]
}

function camelCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z0-9])/g, (_, first: string) => first.toUpperCase())
}
