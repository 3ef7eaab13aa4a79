import { arch, release } from 'node:os'
import { dirname, resolve } from 'node:path'
import { openQueue } from '../app/open-queue.ts'
import { readStatus } from '../app/read-status.ts'
import { describeFault, fault } from '../core/fault.ts'
import type { Journal } from '../core/journal.ts'
import { redact } from '../core/redaction.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { platformName } from '../sys/environment.ts'
import { fileStatus, readFileTail, writeNewFile } from '../sys/files.ts'
import { isAllowed, realPath } from '../sys/paths.ts'
import { isProviderName } from '../worker/provider-variables.ts'
import { type ConfiguredFacts, configuredFacts, type DoctorFacts } from './open-facts.ts'

const FORMAT = 'caduceus-support'
const VERSION = 1
const LOG_TAIL_BYTES = 128 * 1024
const LOG_LINES = 300
const JOURNALS = 20

/** The whole path of an archive that may be written. Faults: usage/invalid when something is there, or no folder for it. */
export function requireNewFile(path: string): string {
  const target = resolve(path)
  const refuse = (reason: string): never => {
    throw fault('usage/invalid', { reason, command: 'doctor' })
  }
  if (fileStatus(target) !== null) return refuse(`${target} is there already.`)
  const folder = realPath(dirname(target))
  if (folder === null || fileStatus(folder)?.kind !== 'directory')
    return refuse(`${dirname(target)} is no folder.`)
  if (!isAllowed(folder, 'write')) return refuse(`${folder} is not writable.`)
  return target
}

/**
 * Writes what somebody who helps needs to see: one readable JSON file, 0600, that must not be there yet.
 * Left out on purpose: tokens, values of the environment, texts of issues, results and transcripts of workers.
 * What a fault says may quote a line of a worker, and the command of the worker is shown with its arguments.
 * Faults: sys/io, also when something is there.
 */
export async function writeSupportBundle(
  path: string,
  probe: DoctorFacts,
  report: object,
): Promise<void> {
  const configured = configuredFacts(probe)
  const token = await configured?.token().then(
    (found) => found.token,
    () => null,
  )
  const secrets = [...knownSecrets(probe), ...(token == null ? [] : [token])]
  const content = {
    format: FORMAT,
    version: VERSION,
    writtenAt: toTimestamp(probe.now),
    versions: {
      caduceus: probe.build.version,
      build: probe.build.root,
      node: process.versions.node,
      system: `${platformName()} ${release()} ${arch()}`,
    },
    doctor: report,
    status: attempt(() => readStatus(probe.build)),
    configuration:
      probe.inspection.kind === 'valid' ? probe.inspection.loaded.values : 'it does not load',
    journals: configured === null ? [] : attempt(() => newestJournals(configured)),
    log: configured === null ? [] : attempt(() => lastLines(configured.config.logPath)),
  }
  writeNewFile(path, `${JSON.stringify(withoutSecrets(content, secrets), null, 2)}\n`)
}

/** A part that cannot be read must not take the others with it. */
function attempt<T>(look: () => T): T | string {
  try {
    return look()
  } catch (thrown) {
    return describeFault(thrown)
  }
}

/** Of the newest runs, how far they came; no title, text or message of theirs. */
function newestJournals({ config }: ConfiguredFacts): readonly unknown[] {
  const { journals } = openQueue(config, false)
  const newest = journals.list().slice(-JOURNALS)
  return newest.map((runId) => {
    const journal = attempt(() => journals.read(runId))
    return journal === null || typeof journal === 'string' ? { runId, journal } : bones(journal)
  })
}

/** What of a journal may be told. */
const BONES = [
  'runId',
  'key',
  'ticket',
  'generation',
  'attempt',
  'dryRun',
  'build',
  'createdAt',
  'epoch',
  'adoptions',
  'stage',
  'branch',
  'base',
  'ownedUntil',
  'markers',
  'intent',
  'notBefore',
  'trouble',
  'outcome',
  'endedIn',
] as const satisfies readonly (keyof Journal)[]

function bones(journal: Journal): object {
  const plan = journal.publication?.plan ?? null
  return { ...Object.fromEntries(BONES.map((name) => [name, journal[name]])), plan }
}

function lastLines(path: string): readonly string[] {
  const tail = readFileTail(path, LOG_TAIL_BYTES)
  if (tail === null) return []
  const isCut = tail.length === LOG_TAIL_BYTES
  const lines = tail.toString().split('\n').filter(Boolean)
  return (isCut ? lines.slice(1) : lines).slice(-LOG_LINES)
}

/**
 * Everything known to be secret here, without asking any program: tokens, what workers are given, and all of
 * the host's own variables, whatever they are called – but for paths and our own settings, which next steps have
 * to name. What is too short to be a secret is not masked.
 */
function knownSecrets({
  environment,
  cron,
  hostVariables,
  inspection,
}: DoctorFacts): readonly string[] {
  const config = inspection.kind === 'valid' ? inspection.loaded.config : null
  const allowlist = config?.workerEnvAllowlist ?? []
  const isSecret = (name: string): boolean =>
    /TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL|_PAT$/i.test(name) || isProviderName(name, allowlist)
  const own = [environment, cron].flatMap((each) =>
    Object.entries(each).flatMap(([name, value]) => (isSecret(name) ? [value] : [])),
  )
  const host = Object.entries(hostVariables).flatMap(([name, value]) =>
    isSecret(name) || !(name.startsWith('CADUCEUS_') || value.startsWith('/')) ? [value] : [],
  )
  const values = [...own, ...host, config?.githubToken ?? '']
  return [...new Set(values.map((value) => value.trim()))]
}

/** A value of JSON in which no text holds a secret of this installation any more. */
export function maskSecrets<T>(value: T, probe: DoctorFacts): T {
  // The shape stays as it is: only texts are replaced, by texts.
  return withoutSecrets(value, knownSecrets(probe)) as T
}

function withoutSecrets(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return redact(value, secrets)
  if (Array.isArray(value)) return value.map((each) => withoutSecrets(each, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutSecrets(inner, secrets)]),
  )
}
