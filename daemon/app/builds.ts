import { randomBytes } from 'node:crypto'
import { basename, join } from 'node:path'
import { LIMITS } from '../core/limits.ts'
import type { HermesHost } from '../host/hermes-cron.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { systemClock } from '../sys/clock.ts'
import {
  fileStatus,
  listDirectory,
  readFileBounded,
  removeFile,
  removePath,
  writeFileAtomic,
} from '../sys/files.ts'
import { commandLineOf } from '../sys/find-processes.ts'
import { movePath } from '../sys/paths.ts'
import { listProcesses } from '../sys/process-identity.ts'
import { runProcess } from '../sys/run-process.ts'
import type { Build } from './build.ts'

// Builds under Hermes (design §4): `$HERMES_HOME/caduceus/builds/<digest>/`, made by bootstrap.mjs, which alone
// knows how a digest is made. They never change; here they are looked at, and collected.

const DIGEST = /^[0-9a-f]{16}$/
const DAY_MS = 86_400_000
const DIGEST_MS = 30_000

/** What a build says of itself (`build.json`). */
export type BuildInfo = Readonly<{
  digest: string
  version: string
  builtAt: string
  bytes: number
}>

/** Null when the program does not run from a build of bootstrap.mjs. Faults: sys/io. */
export function readBuildInfo(root: string): BuildInfo | null {
  const bytes = readFileBounded(join(root, 'build.json'), LIMITS.configurationBytes)
  if (bytes === null) return null
  const value = JSON.parse(bytes.toString('utf8')) as BuildInfo
  return value.digest === basename(root) ? value : null
}

/** The build that the launcher starts; null = there is no launcher, or it is not ours. Faults: sys/io. */
export function launchedBuild({ launcher }: Pick<HermesHost, 'launcher'>): string | null {
  const text = readFileBounded(launcher, LIMITS.configurationBytes)?.toString('utf8') ?? ''
  const [, digest] = /^# managed by caduceus: launcher of build ([0-9a-f]{16})$/m.exec(text) ?? []
  return digest ?? null
}

/** Whether what the launcher starts was made of the plugin's sources as they are. */
export type Currency =
  | Readonly<{ kind: 'not-built' }>
  | Readonly<{ kind: 'current' | 'stale'; launched: string; sources: string }>

/** Faults: sys/io, sys/spawn-failed, sys/process-timeout. */
export async function inspectCurrency(host: HermesHost): Promise<Currency> {
  const launched = launchedBuild(host)
  if (launched === null) return { kind: 'not-built' }
  const { stdout } = await runProcess({
    argv: [process.execPath, join(host.pluginRoot, 'bootstrap.mjs'), 'digest'],
    env: { PATH: host.environment['PATH'] ?? '' },
    timeoutMs: DIGEST_MS,
  })
  const sources = stdout.toString('utf8').trim()
  return { kind: sources === launched ? 'current' : 'stale', launched, sources }
}

/** What becomes of a build. One that is not in use is kept for a day, counted from when that was first seen. */
export type BuildFate = 'keep' | 'retire' | 'remove'

/** @param retiredMs since it was first seen out of use; null = it was not yet */
export function fateOfBuild(isInUse: boolean, retiredMs: number | null): BuildFate {
  if (isInUse) return 'keep'
  if (retiredMs === null) return 'retire'
  // A clock that was set back counts as no time.
  return retiredMs >= DAY_MS ? 'remove' : 'keep'
}

/** Builds that something may still be started from. */
export type BuildUse = Readonly<{
  /** Digests: this program's, and the launcher's as it is now. */
  current: () => readonly (string | null)[]
  /** Whether a run that has not settled, or a process, belongs to the folder. */
  isUsed: (folder: string) => boolean
}>

/**
 * Removes builds that have been out of use for a day; returns their digests. Any line may be the last one
 * executed: a build that is being removed has the name of a dead stage, which bootstrap.mjs removes.
 * Faults: sys/io, and those of `use`.
 */
export async function collectBuilds(
  folder: string,
  use: BuildUse,
  dryRun: boolean,
): Promise<readonly string[]> {
  const names = listDirectory(folder)
  const removed: string[] = []
  for (const digest of names.filter((name) => DIGEST.test(name))) {
    const mark = markOf(folder, digest)
    const seen = fileStatus(mark)
    const isInUse = use.current().includes(digest) || use.isUsed(join(folder, digest))
    const fate = fateOfBuild(isInUse, seen === null ? null : systemClock.now() - seen.mtimeMs)
    if (fate === 'remove') removed.push(digest)
    if (dryRun) continue
    if (fate === 'retire') writeFileAtomic(mark, '')
    if (isInUse && seen !== null) removeFile(mark)
    if (fate === 'remove') await removeBuild(folder, digest, use)
  }
  const orphans = names.filter((name) => /^\.[0-9a-f]{16}\.retired$/.test(name))
  for (const name of dryRun ? [] : orphans) {
    if (fileStatus(join(folder, name.slice(1, 17))) === null) removeFile(join(folder, name))
  }
  return removed
}

/** The same for the builds of a host. A state that cannot be read is a fault: then nobody knows what is used. */
export async function collectUnused(
  host: HermesHost,
  build: Pick<Build, 'root'>,
  stateDir: string,
  dryRun: boolean,
): Promise<readonly string[]> {
  const own = readBuildInfo(build.root)?.digest ?? null
  const use = { current: () => [own, launchedBuild(host)], isUsed: usesOfBuilds(stateDir) }
  return collectBuilds(join(host.hermesHome, 'caduceus', 'builds'), use, dryRun)
}

/** Out of sight first: a setup that switches back to it meanwhile finds it gone, or gets it back. */
async function removeBuild(folder: string, digest: string, use: BuildUse): Promise<void> {
  const random = randomBytes(6).toString('hex')
  const aside = join(folder, `.${digest}.${process.pid}.${random}`)
  movePath(join(folder, digest), aside)
  const isWantedAgain = use.current().includes(digest) && fileStatus(join(folder, digest)) === null
  if (isWantedAgain) movePath(aside, join(folder, digest))
  else await removePath(aside)
  removeFile(markOf(folder, digest))
}

function markOf(folder: string, digest: string): string {
  return join(folder, `.${digest}.retired`)
}

/**
 * Whether a folder is named by the journal of a run that has not settled, or by a process's command line.
 * Faults: sys/io, and state/* for a journal that cannot be read: then nobody knows.
 */
function usesOfBuilds(stateDir: string): BuildUse['isUsed'] {
  const journals = openJournals(stateDir)
  const builds = openClaims({ clock: systemClock }, stateDir)
    .list()
    .flatMap(({ runId }) => journals.read(runId)?.build ?? [])
  const lines = listProcesses().map(({ pid }) => commandLineOf(pid))
  return (folder) =>
    builds.some((build) => `${build}/`.startsWith(`${folder}/`)) ||
    lines.some((line) => line.includes(`${folder}/`))
}
