import type { Build } from '../app/build.ts'
import { paint } from '../app/paint.ts'
import { asFault } from '../core/fault.ts'
import { policyOf } from '../core/fault-catalogue.ts'
import { readHostEnvironment } from '../host/host-environment.ts'
import { settlesWithin } from '../sys/bounded-waits.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import { applyFixes, type Fix } from './apply-fixes.ts'
import {
  CHECK_STATUSES,
  type CheckResult,
  type CheckStatus,
  countStatuses,
  exitCodeOf,
  type Finding,
  fail,
  NEEDS,
  type Need,
  skipped,
  warn,
} from './check-result.ts'
import { GITHUB_CHECKS } from './checks-github.ts'
import { HOST_CHECKS } from './checks-host.ts'
import { PROGRAM_CHECKS } from './checks-program.ts'
import { REPOSITORY_CHECKS } from './checks-repositories.ts'
import { STATE_CHECKS } from './checks-state.ts'
import {
  type Check,
  type ConfiguredFacts,
  configuredFacts,
  type DoctorFacts,
  openFacts,
} from './open-facts.ts'
import { maskSecrets, requireNewFile, writeSupportBundle } from './support-bundle.ts'

/** Version of the JSON shape; part of the versioned surface (R§10.5). */
const REPORT_VERSION = '1.0.0'

/** Every check, in the order of the report. */
export const CHECKS: readonly Check[] = [
  ...PROGRAM_CHECKS,
  ...GITHUB_CHECKS,
  ...REPOSITORY_CHECKS,
  ...STATE_CHECKS,
  ...HOST_CHECKS,
]

/** Time for one check; the calls it makes have shorter ones. */
const CHECK_MS = 90_000

export type DoctorOptions = Readonly<{
  offline: boolean
  fix: boolean
  /** Where to write a support archive; null = none is wanted. */
  bundle: string | null
}>

/** `doctor --json`. */
export type DoctorReport = Readonly<{
  version: string
  appVersion: string
  exitCode: 0 | 1 | 2
  summary: Readonly<Record<CheckStatus, number>>
  /** Checks that `--offline` left out, by name. */
  leftOut: readonly string[]
  /** What `--fix` did; null = it was not asked for. */
  fixes: readonly Fix[] | null
  /** The support archive that was written; null = none. */
  bundle: string | null
  checks: readonly ReportedCheck[]
}>

type ReportedCheck = Readonly<{
  name: string
  /** Which of several, such as a repository. */
  subject: string | null
  group: CheckResult['group']
  status: CheckStatus
  detail: string
  next: string | null
  category: CheckResult['category']
}>

/** Told while checks run, for a terminal. */
export type DoctorProgress = (done: number, total: number) => void

/**
 * Looks at everything a tick needs, and changes nothing unless `fix` says so. Nothing is ever written to
 * GitHub. Faults: usage/invalid and sys/io, for the support archive only.
 */
export async function examine(
  build: Build,
  options: DoctorOptions,
  onProgress: DoctorProgress,
): Promise<DoctorReport> {
  const bundle = options.bundle === null ? null : requireNewFile(options.bundle)
  const environment = readEnvironment()
  const look = (): DoctorFacts => {
    const host = readHostEnvironment({ readFileBounded, realPath }, environment)
    return openFacts(build, environment, host?.kind === 'read' ? host.values : {}, options.offline)
  }
  const fixes = options.fix ? await applyFixes(look()) : null
  const probe = look()
  const results = await runChecks(probe, CHECKS, onProgress)
  const isLeftOut = (check: Check): boolean => missingNeed(probe, null, check) === 'network'
  const leftOut = CHECKS.filter(isLeftOut).map(({ name }) => name)
  const found: DoctorReport = {
    version: REPORT_VERSION,
    appVersion: build.version,
    exitCode: exitCodeOf(results),
    summary: countStatuses(results),
    leftOut,
    fixes,
    bundle,
    checks: results.map(({ check, verdict, ...rest }) => ({
      name: check,
      subject: rest.subject,
      group: rest.group,
      status: verdict,
      detail: rest.detail,
      next: rest.next,
      category: rest.category,
    })),
  }
  const report = maskSecrets(found, probe)
  if (bundle !== null) await writeSupportBundle(bundle, probe, report)
  return report
}

/** All of them at the same time: none waits for another, and none hides another. */
export async function runChecks(
  probe: DoctorFacts,
  checks: readonly Check[],
  onProgress: DoctorProgress,
): Promise<readonly CheckResult[]> {
  const configured = configuredFacts(probe)
  let done = 0
  const found = await Promise.all(
    checks.map(async (check) => {
      const findings = await findingsOf(probe, configured, check)
      done += 1
      onProgress(done, checks.length)
      return findings.map((finding) => ({
        check: check.name,
        group: check.group,
        ...finding,
        category: finding.category ?? check.category,
      }))
    }),
  )
  return found.flat()
}

async function findingsOf(
  probe: DoctorFacts,
  configured: ConfiguredFacts | null,
  check: Check,
): Promise<readonly Finding[]> {
  const missing = missingNeed(probe, configured, check)
  if (missing !== null) return [skipped(NEEDS[missing].missing)]
  let findings: readonly Finding[] = []
  const run = async (): Promise<void> => {
    try {
      findings = await start(probe, configured, check)
    } catch (thrown) {
      findings = [findingOfFault(thrown)]
    }
  }
  if (await settlesWithin(systemClock, run(), CHECK_MS)) return findings
  return [fail(`no answer within ${CHECK_MS / 1000} s`, 'Try again; see what hangs with: ps')]
}

function missingNeed(
  probe: DoctorFacts,
  configured: ConfiguredFacts | null,
  check: Check,
): Need | null {
  if (check.needs?.includes('hermes') && probe.hermesHome === null) return 'hermes'
  if (check.needs?.includes('network') && probe.isOffline) return 'network'
  return check.needsConfiguration && configured === null ? 'configuration' : null
}

async function start(
  probe: DoctorFacts,
  configured: ConfiguredFacts | null,
  check: Check,
): Promise<readonly Finding[]> {
  if (!check.needsConfiguration) return check.run(probe)
  return configured === null ? [] : check.run(configured)
}

function findingOfFault(thrown: unknown): Finding {
  const { code, message, next } = asFault(thrown)
  const step = next === '' ? 'Try again.' : next
  return policyOf(code).finding === 'warn' ? warn(message, step) : fail(message, step)
}

const STYLES = {
  ok: paint.good,
  warn: paint.step,
  fail: paint.bad,
  skipped: paint.quiet,
} as const satisfies Record<CheckStatus, (text: string) => string>

/** For people: what was mended, each check that says something, and a summary. */
export function renderDoctor(report: DoctorReport): readonly string[] {
  const { fixes, checks, summary, leftOut, bundle } = report
  const told = checks.filter(({ status }) => status !== 'skipped')
  return [
    ...(fixes ?? []).map(renderFix),
    ...(fixes?.length === 0 ? ['Nothing to mend.'] : []),
    ...told.flatMap(renderCheck),
    ...(leftOut.length === 0 ? [] : [paint.quiet(`left out (--offline): ${leftOut.join(', ')}`)]),
    ...(bundle === null ? [] : [`support archive: ${bundle} (read it before you pass it on)`]),
    `${summary.ok} ok, ${summary.warn} to look at, ${summary.fail} failed, ${summary.skipped} skipped`,
  ]
}

function renderFix({ what, error }: Fix): string {
  return error === null
    ? `${paint.good('[FIXED]')} ${what}`
    : `${paint.bad('[NOT FIXED]')} ${what} — ${error}`
}

function renderCheck({ name, subject, status, detail, next }: ReportedCheck): readonly string[] {
  const label = STYLES[status](`[${CHECK_STATUSES[status].word}]`)
  const title = subject === null ? name : `${name} ${subject}`
  return [`${label} ${title} — ${detail}`, ...(next === null ? [] : [`    next action: ${next}`])]
}
