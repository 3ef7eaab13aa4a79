import { fault } from '../core/fault.ts'
import type { CapturedTree, RunTree, TreeChange } from '../core/ports.ts'
import {
  type BytePath,
  displayPath,
  nulTerminated,
  parseAttribute,
  parseBatch,
  parseRawChanges,
  parseSizes,
  type RawChange,
  SYMBOLIC_LINK,
} from './listing.ts'
import { findLinksOut } from './refuse-traps.ts'
import type { RunGit, TreeGit } from './run-git.ts'
import { requireObjectId } from './store-refs.ts'

const STATUSES: Readonly<Record<string, TreeChange['status']>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  T: 'type-changed',
}

/**
 * What a written tree changes against the base, with sizes and link targets: everything the rules of
 * publishing need, read from objects that can no longer change (P§5). `git` must work on the index the
 * tree was written from.
 * Faults: git/stored-form, git/failed.
 */
export async function describeChanges(
  git: TreeGit,
  tree: RunTree,
  treeOid: string,
): Promise<Pick<CapturedTree, 'changes' | 'linksOut'>> {
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
    const shown = { path: displayPath(path), filter: filter ?? '', tree: tree.path }
    throw fault('git/stored-form', shown)
  }
  const linksOut = (await findLinksOut(git, raw)).map(displayPath)
  const changes = raw.map(({ path, status, oldMode, newMode, newOid }) => ({
    path: displayPath(path),
    status: STATUSES[status] ?? 'modified',
    oldMode,
    newMode,
    newOid,
    size: sizes.get(newOid) ?? 0,
    linkTarget: newMode === SYMBOLIC_LINK ? showTarget(contents.get(newOid)) : null,
  }))
  return { changes, linksOut }
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

/**
 * Filters whose stored content differs from the working file in a way that matters: stored as it is,
 * a large file would be lost to everybody else (C25), a secret would be published in clear. Filters
 * never run in a worker's tree, so new content must have the stored form already.
 */
const STORED_FORMS = [
  { filter: /^lfs$/, start: Buffer.from('version https://git-lfs.github.com/spec/') },
  { filter: /^git-crypt(?:-|$)/, start: Buffer.from('\0GITCRYPT\0') },
  { filter: /^crypt$/, start: Buffer.from('U2FsdGVkX1') },
] as const satisfies readonly { filter: RegExp; start: Buffer }[]

/** Paths among `filters` whose content has to be looked at. */
function pathsToCheck(filters: ReadonlyMap<BytePath, string>): readonly BytePath[] {
  return [...filters.keys()].filter((path) => formOf(filters.get(path)) !== undefined)
}

/** Whether content may be stored under a filter. An empty file is its own stored form. */
export function hasStoredForm(filter: string | undefined, content: Buffer): boolean {
  const form = formOf(filter)
  if (form === undefined || content.length === 0) return true
  return content.subarray(0, form.start.length).equals(form.start)
}

function formOf(filter: string | undefined): (typeof STORED_FORMS)[number] | undefined {
  return STORED_FORMS.find((form) => form.filter.test(filter ?? ''))
}

/**
 * The difference of two trees as people read it: a summary per file, then the patch. Read from
 * objects only; no driver of the repository runs. What exceeds `maxBytes` is dropped, and said so.
 * Faults: git/failed.
 */
export async function describeDifference(
  runGit: RunGit,
  storePath: string,
  fromTree: string,
  toTree: string,
  maxBytes: number,
): Promise<string> {
  for (const oid of [fromTree, toTree]) requireObjectId('diff-tree', oid)
  const { stdout } = await runGit({
    profile: 'tree',
    operation: 'diff-tree',
    args: [
      'diff-tree',
      '-r',
      '--stat',
      '--patch',
      '--find-renames',
      '--no-ext-diff',
      '--no-textconv',
      '--no-color',
      fromTree,
      toTree,
    ],
    gitDirectory: storePath,
    maxOutputBytes: maxBytes + 1,
    cut: true,
  })
  if (stdout.length <= maxBytes) return stdout.toString()
  const note = `\n[cut at ${maxBytes} bytes]\n`
  return cutText(stdout, maxBytes - Buffer.byteLength(note)) + note
}

/** At most so many bytes, never half a character. */
function cutText(bytes: Buffer, maxBytes: number): string {
  let end = Math.max(0, maxBytes)
  // 10xxxxxx continues a character (RFC 3629).
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
