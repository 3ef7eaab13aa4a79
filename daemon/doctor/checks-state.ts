import { dirname } from 'node:path'
import { openQueue } from '../app/open-queue.ts'
import { describeFault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import { fromTimestamp, plausibleWait } from '../core/timestamp.ts'
import { layoutOf } from '../state/layout.ts'
import { platformName } from '../sys/environment.ts'
import { fileStatus } from '../sys/files.ts'
import { fileSystemOf, isAllowed } from '../sys/paths.ts'
import {
  describeAge,
  describeBytes,
  evaluateFileSystem,
  evaluateSpace,
  type Finding,
  fail,
  ok,
  warn,
} from './check-result.ts'
import type { Check, ConfiguredFacts } from './open-facts.ts'

/** What is stored, where, and what is under way. */
export const STATE_CHECKS = [
  {
    name: 'State directory',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkStateDirectory,
  },
  {
    name: 'State',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkState,
  },
  {
    name: 'File system',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkFileSystem,
  },
  {
    name: 'Free space',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkSpace,
  },
  {
    name: 'Runs',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkRuns,
  },
  {
    name: 'Last tick',
    group: 'state',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkLastTick,
  },
] as const satisfies readonly Check[]

/** Made at the first tick; until then the nearest folder above has to allow it. */
function existingFolder(path: string): string {
  let folder = path
  while (fileStatus(folder) === null && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}

function checkStateDirectory({ config }: ConfiguredFacts): readonly Finding[] {
  const layout = layoutOf(config.stateDir)
  const { stateDir, directories, queue, meta, stateLock, tickLock, daemonLock } = layout
  if (fileStatus(stateDir) === null) {
    const above = existingFolder(stateDir)
    if (isAllowed(above, 'write')) return [ok(`${stateDir} will be made by the first tick`)]
    return [
      fail(
        `${stateDir} cannot be made: ${above} is not writable`,
        'Set state_dir to a folder of your own.',
      ),
    ]
  }
  const found = [
    ...[stateDir, ...Object.values(directories)].flatMap((path) => evaluateFolder(path) ?? []),
    ...[queue, meta, stateLock, tickLock, daemonLock].flatMap((path) => evaluateFile(path) ?? []),
  ]
  return found.length > 0 ? found : [ok(`${stateDir} is readable and writable`)]
}

function evaluateFolder(path: string): Finding | null {
  const status = fileStatus(path)
  if (status === null) return null
  const own = 'Set state_dir to a folder of your own.'
  if (status.kind === 'symlink') return fail(`${path} is a symbolic link`, own)
  if (status.kind !== 'directory') return fail(`${path} is not a folder`, 'Move it away.')
  if (status.uid !== process.geteuid?.()) {
    return fail(`${path} belongs to the user with id ${status.uid}`, own)
  }
  if (!isAllowed(path, 'write') || (status.mode & 0o700) !== 0o700) {
    return fail(
      `${path} is not readable and writable`,
      'Mend its permissions: caduceus doctor --fix',
    )
  }
  if ((status.mode & 0o077) === 0) return null
  const mode = status.mode.toString(8).padStart(4, '0')
  return warn(`${path} is open to others (${mode})`, 'Close it: caduceus doctor --fix')
}

/** One run as root leaves files that no later tick may write. */
function evaluateFile(path: string): Finding | null {
  const status = fileStatus(path)
  if (status === null) return null
  if (status.kind !== 'file') return fail(`${path} is not a plain file`, 'Move it away.')
  if (status.uid === process.geteuid?.()) return null
  const next = 'Give it to the user of the ticks with chown, or run this as that user.'
  return fail(`${path} belongs to the user with id ${status.uid}`, next)
}

/** Both stored files can be read by this version. Faults: state/*. */
function checkState({ config }: ConfiguredFacts): readonly Finding[] {
  const { store } = openQueue(config, false)
  if (!store.exists()) return [ok('nothing has run yet')]
  const count = Object.keys(store.readQueue().entries).length
  store.readMeta()
  return [ok(`readable, ${count} issue(s) in the queue`)]
}

function checkFileSystem({ config }: ConfiguredFacts): readonly Finding[] {
  const folder = existingFolder(config.stateDir)
  if (platformName() !== 'linux') return [ok(`${folder} (its kind is not known on this system)`)]
  const known = evaluateFileSystem(fileSystemOf(folder).magic)
  if (known === null) return [ok(`${folder} is on a local file system`)]
  const next = 'Set state_dir to a folder on a local disk.'
  return known.verdict === 'fail'
    ? [fail(`${folder} is on ${known.name}, where kernel locks cannot be relied on`, next)]
    : [warn(`${folder} is on ${known.name}, where locks or contents may not last`, next)]
}

function checkSpace({ config }: ConfiguredFacts): readonly Finding[] {
  const folders = new Set([config.stateDir, config.repoStorageRoot].map(existingFolder))
  return [...folders].map((folder) => {
    const { freeBytes, freeInodes } = fileSystemOf(folder)
    const inodes = freeInodes === null ? '' : `, ${freeInodes} inodes`
    const detail = `${describeBytes(freeBytes)}${inodes} free at ${folder}`
    const next = 'Make room there, or shorten run_retention_days.'
    const verdict = evaluateSpace(freeBytes, freeInodes)
    if (verdict === 'ok') return ok(detail)
    return verdict === 'warn' ? warn(detail, next) : fail(detail, next)
  })
}

/** Runs that nobody carries on, although ticks take place; only those that have not settled are looked at. */
function checkRuns(probe: ConfiguredFacts): readonly Finding[] {
  const { config, now } = probe
  const { claims, journals, layout } = openQueue(config, false)
  const open = claims.list()
  const maxWaitMs = Math.max(10 * config.pollIntervalSeconds * 1000, LIMITS.heartbeatStaleMs)
  const found = open.flatMap(({ key, runId }): readonly Finding[] => {
    const issue = formatIssue(key)
    try {
      const journal = journals.read(runId)
      const written = [layout.run(runId).journal, layout.claim(key)].map(fileStatus)
      const changedAt = Math.max(...written.map((status) => status?.mtimeMs ?? 0))
      const isHeld = claims.isHeld(key)
      const ownedUntil = journal?.ownedUntil ?? null
      const isOverdue = isHeld && ownedUntil !== null && now > fromTimestamp(ownedUntil)
      const resumesAt = plausibleWait(journal?.notBefore ?? null, now, LIMITS.backoffCapMs) ?? 0
      const isLeft = !isHeld && now - Math.max(changedAt, resumesAt) > maxWaitMs
      if (!isOverdue && !isLeft) return []
      const state = isOverdue ? 'its process has stopped' : 'no process carries it on'
      const age = describeAge(now - changedAt)
      return [
        warn(
          `run ${runId} (${journal?.stage ?? 'without a journal'}): ${state}, for ${age}`,
          'Let a tick take it over: caduceus run',
          issue,
        ),
      ]
    } catch (thrown) {
      return [
        fail(`run ${runId}: ${describeFault(thrown)}`, `See: caduceus queue show ${issue}`, issue),
      ]
    }
  })
  if (found.length > 0) return found
  return [ok(open.length === 0 ? 'none is under way' : `${open.length} under way, none is stale`)]
}

function checkLastTick({ config, meta, now }: ConfiguredFacts): readonly Finding[] {
  if (meta?.lastTickStarted == null) return [ok('none yet')]
  const ageMs = now - fromTimestamp(meta.lastTickStarted)
  const detail = `${describeAge(ageMs)} ago, ${meta.lastOutcome ?? 'not finished'}`
  if (meta.lastOutcome === 'failed') {
    const why = meta.lastError === null ? '' : `: ${meta.lastError.message}`
    return [warn(`${detail}${why}`, 'See: caduceus status')]
  }
  if (ageMs > 10 * Math.max(config.pollIntervalSeconds * 1000, 60_000)) {
    return [warn(detail, 'See that ticks are started: cron job, timer or caduceus daemon.')]
  }
  return [ok(detail)]
}
