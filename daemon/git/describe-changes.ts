import { fault } from '../core/fault.ts'
import type { RunTree, TreeChange } from '../core/ports.ts'
import { displayPath, nulTerminated } from './byte-path.ts'
import {
  parseAttribute,
  parseBatch,
  parseRawChanges,
  parseSizes,
  type RawChange,
  SYMBOLIC_LINK,
} from './listing.ts'
import { hasStoredForm, pathsToCheck } from './stored-form.ts'
import type { TreeGit } from './tree-git.ts'

const STATUSES: Readonly<Record<string, TreeChange['status']>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  T: 'type-changed',
}

/**
 * What a written tree changes against the base, with sizes and link targets: everything the rules of
 * publishing need, read from objects that can no longer change (P§5).
 * Faults: git/stored-form, git/failed.
 */
export async function describeChanges(
  git: TreeGit,
  tree: RunTree,
  treeOid: string,
): Promise<readonly TreeChange[]> {
  const { stdout } = await git({
    args: ['diff-tree', '-r', '-z', '--no-renames', `${tree.baseOid}^{tree}`, treeOid],
  })
  const raw = parseRawChanges(stdout)
  const kept = raw.filter(({ status }) => status !== 'D')
  const sizes = await readSizes(git, kept)
  const filters = await readFilters(git, kept)
  const toCheck = new Set(pathsToCheck(filters))
  const contents = await readContents(
    git,
    kept.filter(({ path, newMode }) => newMode === SYMBOLIC_LINK || toCheck.has(path)),
  )
  for (const { path, newOid } of kept) {
    const filter = filters.get(path)
    if (hasStoredForm(filter, contents.get(newOid) ?? Buffer.alloc(0))) continue
    throw fault('git/stored-form', { path: displayPath(path), filter, tree: tree.path })
  }
  return raw.map(({ path, status, oldMode, newMode, newOid }) => ({
    path: displayPath(path),
    status: STATUSES[status] ?? 'modified',
    oldMode,
    newMode,
    newOid,
    size: sizes.get(newOid) ?? 0,
    linkTarget: newMode === SYMBOLIC_LINK ? showTarget(contents.get(newOid)) : null,
  }))
}

async function readSizes(
  git: TreeGit,
  changes: readonly RawChange[],
): Promise<ReadonlyMap<string, number>> {
  if (changes.length === 0) return new Map()
  const format = '--batch-check=%(objectname) %(objectsize)'
  const { stdout } = await git({ args: ['cat-file', format], input: oidLines(changes) })
  return parseSizes(stdout)
}

/** The `filter` attribute of each file, as the new tree sets it. */
async function readFilters(
  git: TreeGit,
  changes: readonly RawChange[],
): Promise<ReadonlyMap<string, string>> {
  const files = changes.filter(({ newMode }) => newMode.startsWith('100'))
  if (files.length === 0) return new Map()
  const { stdout } = await git({
    args: ['check-attr', '--cached', '-z', '--stdin', 'filter'],
    input: nulTerminated(files.map(({ path }) => path)),
  })
  return parseAttribute(stdout)
}

async function readContents(
  git: TreeGit,
  changes: readonly RawChange[],
): Promise<ReadonlyMap<string, Buffer>> {
  if (changes.length === 0) return new Map()
  const { stdout } = await git({ args: ['cat-file', '--batch'], input: oidLines(changes) })
  return parseBatch(stdout)
}

function oidLines(changes: readonly RawChange[]): string {
  return [...new Set(changes.map(({ newOid }) => newOid))].map((oid) => `${oid}\n`).join('')
}

function showTarget(content: Buffer | undefined): string {
  return displayPath(content?.toString('latin1') ?? '')
}
