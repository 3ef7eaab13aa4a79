import { isGitDirectoryName } from '../core/git-directory-name.ts'
import type { RunTree } from '../core/ports.ts'
import { type TreeEntry, treeEntry } from '../sys/tree-entry.ts'
import {
  type BytePath,
  displayPath,
  type ListedEntry,
  parsePaths,
  parseRawChanges,
  quotePath,
  type RawChange,
  toBytes,
} from './listing.ts'
import { type TreeGit, treeUnusable } from './run-git.ts'

/**
 * What is read of a worker's files at most. These only keep a run from filling the disk; the rules of
 * the installation are judged on the written tree (design §12).
 */
export type CaptureLimits = Readonly<{
  maxFiles: number
  maxFileBytes: number
  maxTotalBytes: number
}>

export type FoundChanges = Readonly<{
  removed: readonly BytePath[]
  /** To be hashed and written. */
  written: readonly BytePath[]
  /** Byte for byte the base's content; only the mode may differ. */
  sameContent: readonly ListedEntry[]
}>

type Scope = Readonly<{
  tree: RunTree
  gitlinks: readonly ListedEntry[]
  control: ReadonlySet<BytePath>
  limits: CaptureLimits
}>

const MIB = 1024 * 1024

export const CAPTURE_LIMITS = {
  maxFiles: 100_000,
  maxFileBytes: 512 * MIB,
  maxTotalBytes: 1024 * MIB,
} as const satisfies CaptureLimits

/**
 * What differs between the base and the worker's files: `diff-files` for what the base has,
 * `ls-files -o` for the rest, then a look at each (P§5).
 * Faults: worker/tree-unusable, git/failed, sys/io.
 */
export async function findChanges(git: TreeGit, scope: Scope): Promise<FoundChanges> {
  const { tree } = scope
  const tracked = await listTracked(git, scope)
  const untracked = await listUntracked(git, scope)
  const present = tracked.filter(({ status }) => status !== 'D')
  const looked = [...present.map(({ path }) => path), ...untracked].map((path) => ({
    path,
    entry: treeEntry(tree.path, toBytes(path)),
  }))
  for (const { path, entry } of looked) refuseUnusable(scope, path, entry)
  for (const { path } of tracked) refuseHidden(scope, path)
  refuseTooMuch(scope, tracked.length + untracked.length, looked)
  const isFile = new Set(
    looked.filter(({ entry }) => entry?.kind === 'file').map(({ path }) => path),
  )
  const sameContent = await findSameContent(
    git,
    present.filter(({ path }) => isFile.has(path)),
  )
  const same = new Set(sameContent.map(({ path }) => path))
  return {
    removed: tracked.filter(({ status }) => status === 'D').map(({ path }) => path),
    written: looked.map(({ path }) => path).filter((path) => !same.has(path)),
    sameContent,
  }
}

async function listTracked(git: TreeGit, scope: Scope): Promise<readonly RawChange[]> {
  const { stdout, stderr } = await git({ args: ['diff-files', '-z', '--ignore-submodules=all'] })
  refuseUnreadable(scope, stderr)
  return parseRawChanges(stdout).filter(({ path }) => !scope.control.has(path))
}

async function listUntracked(git: TreeGit, scope: Scope): Promise<readonly BytePath[]> {
  const { stdout, stderr } = await git({ args: ['ls-files', '-z', '-o', '--exclude-standard'] })
  refuseUnreadable(scope, stderr)
  const submodules = scope.gitlinks.map(({ path }) => path)
  const isInSubmodule = (path: BytePath): boolean =>
    submodules.some((folder) => path === folder || path.startsWith(`${folder}/`))
  return parsePaths(stdout).filter((path) => !scope.control.has(path) && !isInSubmodule(path))
}

const PASSED_OVER = /Permission denied|could not open directory/

/** A path too deep to be named fills pages; the reason at its end counts. */
function shortenLine(line: string): string {
  return line.length <= 300 ? line : `${line.slice(0, 200)}…${line.slice(-100)}`
}

/** Git passes over what it may not read or cannot name; publishing without it would look as if it were gone. */
function refuseUnreadable(scope: Scope, stderr: string): void {
  const line = stderr.split('\n').find((text) => PASSED_OVER.test(text))
  if (line !== undefined) throw treeUnusable(scope.tree, shortenLine(line))
}

function refuseUnusable(scope: Scope, path: BytePath, entry: TreeEntry | null): void {
  const shown = quotePath(path.replace(/\/$/, ''))
  if (displayPath(path).split('/').some(isGitDirectoryName)) {
    throw treeUnusable(scope.tree, `${shown} would be a git directory`)
  }
  if (entry === null) return
  if (entry.kind === 'directory') {
    throw treeUnusable(scope.tree, `${shown} is a repository of its own`)
  }
  if (entry.kind !== 'file' && entry.kind !== 'symlink') {
    throw treeUnusable(scope.tree, `${shown} is a ${entry.kind}`)
  }
  const { maxFileBytes } = scope.limits
  if (entry.size > maxFileBytes) {
    const reason = `${shown} has ${entry.size} bytes; at most ${maxFileBytes} are read`
    throw treeUnusable(scope.tree, reason)
  }
  const covered = scope.gitlinks.find((link) => link.path.startsWith(`${path}/`))
  if (covered !== undefined) {
    throw treeUnusable(
      scope.tree,
      `${shown} is in the way of the submodule ${quotePath(covered.path)}`,
    )
  }
}

/** In place of a file, a repository without a commit is listed nowhere, with all that is in it. */
function refuseHidden(scope: Scope, path: BytePath): void {
  if (treeEntry(scope.tree.path, toBytes(`${path}/.git`)) === null) return
  throw treeUnusable(scope.tree, `${quotePath(path)} is a repository of its own`)
}

function refuseTooMuch(
  scope: Scope,
  count: number,
  looked: readonly Readonly<{ entry: TreeEntry | null }>[],
): void {
  const { maxFiles, maxTotalBytes } = scope.limits
  if (count > maxFiles) {
    throw treeUnusable(scope.tree, `${count} files differ; at most ${maxFiles} are read`)
  }
  const total = looked.reduce((sum, { entry }) => sum + (entry?.size ?? 0), 0)
  if (total > maxTotalBytes) {
    const reason = `the files that differ have ${total} bytes; at most ${maxTotalBytes} are read`
    throw treeUnusable(scope.tree, reason)
  }
}

/**
 * Files whose bytes are those of the base. Git may list them none the less: it normalises line ends,
 * and a base that is not normalised itself would come out changed where nobody changed it (C15's kind).
 */
async function findSameContent(
  git: TreeGit,
  files: readonly RawChange[],
): Promise<readonly ListedEntry[]> {
  const candidates = files.filter(
    ({ oldMode, newMode }) => oldMode.startsWith('100') && newMode.startsWith('100'),
  )
  if (candidates.length === 0) return []
  const { stdout } = await git({
    args: ['hash-object', '--no-filters', '--stdin-paths'],
    input: toBytes(candidates.map(({ path }) => `${quoteForGit(path)}\n`).join('')),
  })
  const oids = stdout.toString('latin1').split('\n')
  return candidates
    .filter(({ oldOid }, at) => oids[at] === oldOid)
    .map(({ path, newMode, oldOid }) => ({ path, mode: newMode, oid: oldOid }))
}

/** The quoting of git's own output (core.quotePath), which its line-wise input takes back. */
function quoteForGit(path: BytePath): string {
  const escaped = path.replaceAll(
    /[\x00-\x1f"\\\x7f-\xff]/g,
    (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return escaped === path ? path : `"${escaped}"`
}
