import { join } from 'node:path'
import type { Garbage, GarbageItem, GarbageKind } from '../core/garbage.ts'
import { parseRepositoryName } from '../core/issue-key.ts'
import { isRunId } from '../core/run-id.ts'
import { type FileStatus, fileStatus, listDirectory, removeFile, removePath } from '../sys/files.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { removeEmptyFolder } from '../sys/paths.ts'
import { layoutOf, type StateLayout } from './layout.ts'

/** As `sys/replace-file.ts` names files in the making. */
const TEMPORARY = /^\..+\.\d+\.[0-9a-f]{12}\.tmp$/

const RUN_ID_LENGTH = 26

/**
 * Garbage under a state directory: files and folders that nothing needs any more. Names that are not ours are
 * ignored; a link where a folder of ours belongs is listed as not plain, and nothing behind it is read.
 * Faults: sys/io.
 */
export function openGarbage(stateDir: string): Garbage {
  const layout = layoutOf(stateDir)
  const lists = {
    temporary: () => temporaryFiles(layout),
    tree: () => trees(layout.directories.worktrees, 'tree'),
    run: () => runs(layout),
    archived: () => trees(layout.attic, 'archived'),
    folder: () => [...emptyFolders(layout.directories.worktrees), ...emptyFolders(layout.attic)],
  } as const satisfies Record<GarbageKind, () => readonly GarbageItem[]>
  return {
    list: (kind) => lists[kind](),
    isInUse: (runId) => {
      const { supervisorLock, treeLock } = layout.run(runId)
      return isLocked(supervisorLock) || isLocked(treeLock)
    },
    remove: async ({ kind, path, runId }) => {
      if (kind === 'temporary') return removeFile(path)
      if (kind === 'folder') return removeEmptyFolder(path)
      // The folder goes last: while it is there, the run is known and the rest is found again.
      if (kind === 'run' && runId !== null) looseFiles(layout, runId).forEach(removeFile)
      return removePath(path)
    },
  }
}

function temporaryFiles({ stateDir, directories }: StateLayout): readonly GarbageItem[] {
  const { runs: runsFolder, claims, cache } = directories
  const ofRuns = listDirectory(runsFolder)
    .filter(isRunId)
    .map((name) => join(runsFolder, name))
  return [stateDir, runsFolder, claims, join(cache, 'http'), ...ofRuns].flatMap((folder) =>
    namesIn(folder, (name) => TEMPORARY.test(name)).flatMap(({ path, status }) =>
      status.kind === 'file' ? [itemOf('temporary', path, status)] : [],
    ),
  )
}

/** `<root>/<owner>/<repository>/<run>`, each level checked before the next. */
function trees(root: string, kind: 'tree' | 'archived'): readonly GarbageItem[] {
  return repositoryFolders(root).flatMap((found): readonly GarbageItem[] => {
    if (!found.isPlain) return [{ ...found, kind }]
    return namesIn(found.path, isRunId).map(({ name, path, status }) => ({
      ...itemOf(kind, path, status),
      isPlain: status.kind === 'directory',
      runId: name,
      repository: found.repository,
    }))
  })
}

/** The folders of repositories, and anything else that stands where one or its owner's should. */
function repositoryFolders(root: string): readonly GarbageItem[] {
  return namesIn(root, () => true).flatMap(
    ({ name: owner, path: ownerPath, status }): readonly GarbageItem[] => {
      if (parseRepositoryName(`${owner}/x`) === null) return []
      if (status.kind !== 'directory')
        return [{ ...itemOf('tree', ownerPath, status), isPlain: false }]
      return namesIn(ownerPath, () => true).flatMap(({ name, path, status: own }) => {
        const repository = parseRepositoryName(`${owner}/${name}`)
        const isPlain = own.kind === 'directory'
        return repository === null ? [] : [{ ...itemOf('tree', path, own), isPlain, repository }]
      })
    },
  )
}

function emptyFolders(root: string): readonly GarbageItem[] {
  const owners = namesIn(root, (name) => parseRepositoryName(`${name}/x`) !== null)
    .filter(({ status }) => status.kind === 'directory')
    .map(({ path, status }) => itemOf('folder', path, status))
  const repositories = repositoryFolders(root).filter(({ isPlain }) => isPlain)
  return [...repositories, ...owners]
    .filter(({ path }) => listDirectory(path).length === 0)
    .map((found) => ({ ...found, kind: 'folder' }))
}

/** By run, with the visible files beside its folder. */
function runs(layout: StateLayout): readonly GarbageItem[] {
  const names = listDirectory(layout.directories.runs).map((name) => name.slice(0, RUN_ID_LENGTH))
  return [...new Set(names.filter(isRunId))].map((runId) => runOf(layout, runId))
}

function runOf(layout: StateLayout, runId: string): GarbageItem {
  const { directory, journal } = layout.run(runId)
  const folder = fileStatus(directory)
  const isPlain = folder === null || folder.kind === 'directory'
  const written = folder !== null && isPlain ? fileStatus(journal) : null
  const base = { kind: 'run', path: directory, runId, repository: null, isPlain } as const
  if (written !== null) return { ...base, changedAt: written.mtimeMs, holds: 'journal' }
  const loose = looseFiles(layout, runId).flatMap((path) => fileStatus(path) ?? [])
  const changedAt = Math.max(folder?.mtimeMs ?? 0, ...loose.map(({ mtimeMs }) => mtimeMs))
  return { ...base, changedAt, holds: loose.length > 0 ? 'files' : 'nothing' }
}

function looseFiles(layout: StateLayout, runId: string): readonly string[] {
  const { transcript, result, dryRunReport, heartbeat } = layout.run(runId)
  return [transcript, result, dryRunReport, heartbeat]
}

type Named = Readonly<{ name: string; path: string; status: FileStatus }>

/** The entries of a folder; none when a link or something else stands in its place. */
function namesIn(folder: string, matches: (name: string) => boolean): readonly Named[] {
  if (fileStatus(folder)?.kind !== 'directory') return []
  return listDirectory(folder)
    .filter(matches)
    .flatMap((name) => {
      const path = join(folder, name)
      const status = fileStatus(path)
      return status === null ? [] : [{ name, path, status }] // gone meanwhile
    })
}

function itemOf(kind: GarbageKind, path: string, status: FileStatus): GarbageItem {
  const changedAt = status.mtimeMs
  return { kind, path, runId: null, repository: null, isPlain: true, changedAt, holds: 'nothing' }
}
