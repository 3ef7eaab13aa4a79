import { join } from 'node:path'
import { collectUnused } from '../app/builds.ts'
import { asFault, describeFault } from '../core/fault.ts'
import { inspectWrapper, refreshWrapper, wrapperPartsOf } from '../host/cron-wrapper.ts'
import { requireHost } from '../host/hermes-cron.ts'
import { layoutOf } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import {
  type FileStatus,
  fileStatus,
  isExecutableFile,
  listDirectory,
  removePath,
} from '../sys/files.ts'
import { changeMode, realPath } from '../sys/paths.ts'
import { identifyProcess } from '../sys/process-identity.ts'
import { type ConfiguredFacts, configuredFacts, type DoctorFacts } from './open-facts.ts'

/** Something `--fix` has mended, or could not. */
export type Fix = Readonly<{ what: string; error: string | null }>

/** Something it may mend, not done yet. */
type Repair = Readonly<{ what: string; fix: () => void | Promise<void> }>

/**
 * All that `--fix` may do (design §11): nothing of the user's is replaced, only what is ours is made, and
 * permissions are mended.
 */
const REPAIRS = {
  folders: (_, configured) => configured.flatMap(missingFolders),
  permissions: (_, configured) => configured.flatMap(openPermissions),
  bridge: (_, configured) => configured.flatMap(unexecutableBridge),
  stages: deadStages,
  builds: async (probe, configured) =>
    (await Promise.all(configured.map((each) => staleBuilds(probe, each)))).flat(),
  wrapper: oldWrapper,
} as const satisfies Record<string, Find>

/** @param configured the probe with its configuration; empty = that does not load */
type Find = (probe: DoctorFacts, configured: readonly ConfiguredFacts[]) => Repairs

type Repairs = readonly Repair[] | Promise<readonly Repair[]>

/** Repairs one after another; one that fails does not keep the others from being made. */
export async function applyFixes(probe: DoctorFacts): Promise<readonly Fix[]> {
  const configured = [configuredFacts(probe)].filter((each) => each !== null)
  const done: Fix[] = []
  for (const [name, find] of Object.entries<Find>(REPAIRS)) {
    for (const { what, fix } of await found(name, async () => find(probe, configured))) {
      try {
        await fix()
        done.push({ what, error: null })
      } catch (thrown) {
        done.push({ what, error: describeFault(thrown) })
      }
    }
  }
  return done
}

/** What cannot even be looked at is told as not mended. */
async function found(
  name: string,
  find: () => Promise<readonly Repair[]>,
): Promise<readonly Repair[]> {
  try {
    return await find()
  } catch (thrown) {
    const fix = (): never => {
      throw asFault(thrown)
    }
    return [{ what: `look at ${name}`, fix }]
  }
}

function missingFolders({ config }: ConfiguredFacts): readonly Repair[] {
  const { stateDir, directories } = layoutOf(config.stateDir)
  const missing = [stateDir, ...Object.values(directories)].filter(
    (path) => fileStatus(path) === null,
  )
  if (missing.length === 0) return []
  const what = `made the missing folders of the state directory: ${missing.join(', ')}`
  return [{ what, fix: () => prepareDirectories(config.stateDir) }]
}

function openPermissions({ config }: ConfiguredFacts): readonly Repair[] {
  const layout = layoutOf(config.stateDir)
  const folders = [layout.stateDir, ...Object.values(layout.directories)]
  const files = [layout.queue, layout.meta, layout.stateLock, layout.tickLock, layout.log]
  return [
    ...folders.flatMap((path) => closed(path, 'directory', 0o700)),
    ...files.flatMap((path) => closed(path, 'file', 0o600)),
  ]
}

/** Only what is our own, and no link: its target may be anybody's. */
function closed(path: string, kind: FileStatus['kind'], mode: number): readonly Repair[] {
  const status = fileStatus(path)
  const isOurs = status?.kind === kind && status.uid === process.geteuid?.()
  if (!isOurs || status.mode === mode) return []
  const what = `set the permissions of ${path} to ${mode.toString(8).padStart(4, '0')}`
  return [{ what, fix: () => changeMode(path, mode) }]
}

function unexecutableBridge({ config }: ConfiguredFacts): readonly Repair[] {
  const [program] = config.workerCommand
  const path = program.startsWith('/') ? realPath(program) : null
  const status = path === null ? null : fileStatus(path)
  if (path === null || status?.kind !== 'file' || status.uid !== process.geteuid?.()) return []
  if (isExecutableFile(path)) return []
  const what = `made ${path} executable`
  return [{ what, fix: () => changeMode(path, status.mode | 0o100) }]
}

/** One that exists and is ours; cron-install makes the first. */
function oldWrapper({ environment, hermesHome }: DoctorFacts): readonly Repair[] {
  if (hermesHome === null) return []
  const parts = wrapperPartsOf(requireHost(environment), process.execPath)
  const { path, state } = inspectWrapper(parts)
  if (state !== 'outdated' && state !== 'node-gone') return []
  const fix = (): void => void refreshWrapper(parts)
  return [{ what: `made the cron wrapper ${path} anew`, fix }]
}

/** A build in the making whose maker has died: `.<digest>.<pid>.<random>` (bootstrap.mjs). */
const STAGE = /^\.[0-9a-f]{16}\.(\d+)\.[0-9a-z]+$/

function deadStages({ hermesHome }: DoctorFacts): readonly Repair[] {
  if (hermesHome === null) return []
  const folder = join(hermesHome, 'caduceus', 'builds')
  return listDirectory(folder).flatMap((name) => {
    const [, pid] = STAGE.exec(name) ?? []
    if (pid === undefined || identifyProcess(Number(pid)) !== null) return []
    const path = join(folder, name)
    return [{ what: `removed the unfinished build ${path}`, fix: async () => removePath(path) }]
  })
}

async function staleBuilds(
  { environment, hermesHome, build }: DoctorFacts,
  { config }: ConfiguredFacts,
): Promise<readonly Repair[]> {
  if (hermesHome === null) return []
  const host = requireHost(environment)
  const stale = await collectUnused(host, build, config.stateDir, true)
  if (stale.length === 0) return []
  const fix = async (): Promise<void> => {
    await collectUnused(host, build, config.stateDir, false)
  }
  return [{ what: `removed the builds that nothing uses: ${stale.join(', ')}`, fix }]
}
