import { dirname, resolve } from 'node:path'
import type { RunTree } from '../core/ports.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { type EntryBelow, entriesBelow, treeEntry } from '../sys/tree-entry.ts'
import { type BytePath, displayPath, quotePath, toBytes } from './listing.ts'
import { treeUnusable } from './run-git.ts'

/** Git takes the whole file into memory; nobody writes that many rules. */
const MAX_RULES_BYTES = 10 * 1024 * 1024

const MAX_GITFILE_BYTES = 4096

/** What git opens in a git directory it comes upon, to see whether it is one. */
const PROBED = ['HEAD', 'commondir', 'config', 'packed-refs'] as const

/**
 * Refuses what would hold up git itself as it looks through the tree: it opens rules and git
 * directories wherever it meets them, without a look at what they are. A pipe there never answers,
 * and a sparse file of rules fills the memory. Git's own deadline would end it, but as a trouble of
 * ours, and again and again. Faults: worker/tree-unusable.
 */
export function refuseTraps(tree: RunTree): void {
  // The worker's own git directory is never looked into, so nothing in it matters.
  for (const entry of entriesBelow(tree.path, (path) => path === '.git')) {
    const reason = trapIn(tree, entry)
    if (reason !== null) throw treeUnusable(tree, reason)
  }
}

function trapIn(tree: RunTree, { path, kind }: EntryBelow): string | null {
  const parts = path.toLowerCase().split('/')
  const name = parts.at(-1)
  const isInRepository = parts.includes('.git')
  if (kind === 'other' && (isInRepository || isRules(name))) return describe(tree, path)
  if (kind === 'file' && isRules(name) && !isInRepository) return judgeRules(tree, path)
  if (name !== '.git') return null
  if (kind === 'symlink') return `${quotePath(path)} is a link`
  return kind === 'file' ? judgeGitfile(tree, path) : null
}

function isRules(name: string | undefined): boolean {
  return name === '.gitignore' || name === '.gitattributes'
}

function describe(tree: RunTree, path: BytePath): string {
  return `${quotePath(path)} is a ${treeEntry(tree.path, toBytes(path))?.kind ?? 'strange file'}`
}

function judgeRules(tree: RunTree, path: BytePath): string | null {
  const size = treeEntry(tree.path, toBytes(path))?.size ?? 0
  if (size <= MAX_RULES_BYTES) return null
  return `${quotePath(path)} has ${size} bytes; at most ${MAX_RULES_BYTES} are read`
}

/** A file `.git` names the git directory: of a submodule or a linked worktree, say. */
function judgeGitfile(tree: RunTree, path: BytePath): string | null {
  const file = `${tree.path}/${displayPath(path)}`
  const status = fileStatus(file)
  if (status === null || status.size > MAX_GITFILE_BYTES) return null
  const named = /^gitdir: (.*?)\n*$/s.exec(
    readFileBounded(file, MAX_GITFILE_BYTES)?.toString() ?? '',
  )?.[1]
  if (named === undefined || named.includes('\0')) return null
  const folder = resolve(dirname(file), named)
  const bad = PROBED.find((name) => fileStatus(resolve(folder, name))?.kind === 'other')
  return bad === undefined
    ? null
    : `${quotePath(path)} leads to a repository whose ${bad} is no file`
}
