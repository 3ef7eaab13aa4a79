import { dirname, resolve } from 'node:path'
import { isGitDirectoryName } from '../core/git-directory-name.ts'
import type { RunTree } from '../core/ports.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { type EntryBelow, entriesBelow, treeEntry } from '../sys/tree-entry.ts'
import {
  type BytePath,
  displayPath,
  parseBatch,
  parseStaged,
  quotePath,
  type RawChange,
  SYMBOLIC_LINK,
  toBytes,
} from './listing.ts'
import { type TreeGit, treeUnusable } from './run-git.ts'

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
  if (kind === 'file' && isRules(name) && !isInRepository) return checkRules(tree, path)
  if (name !== '.git') return null
  if (kind === 'symlink') return `${quotePath(path)} is a link`
  return kind === 'file' ? checkGitfile(tree, path) : null
}

function isRules(name: string | undefined): boolean {
  return name === '.gitignore' || name === '.gitattributes'
}

function describe(tree: RunTree, path: BytePath): string {
  return `${quotePath(path)} is a ${treeEntry(tree.path, toBytes(path))?.kind ?? 'strange file'}`
}

function checkRules(tree: RunTree, path: BytePath): string | null {
  const size = treeEntry(tree.path, toBytes(path))?.size ?? 0
  if (size <= MAX_RULES_BYTES) return null
  return `${quotePath(path)} has ${size} bytes; at most ${MAX_RULES_BYTES} are read`
}

/** A file `.git` names the git directory: of a submodule or a linked worktree, say. */
function checkGitfile(tree: RunTree, path: BytePath): string | null {
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

/** A symbolic link of a written tree. */
export type TreeLink = Readonly<{ path: BytePath; target: BytePath }>

/**
 * Links of the written tree that lead out of it, or into a git directory; one that did so at the base
 * already, and by the same way, is left out. `git` must work on the index the tree was written from.
 * Faults: git/failed.
 */
export async function findLinksOut(
  git: TreeGit,
  changes: readonly RawChange[],
): Promise<readonly BytePath[]> {
  const changed = changes.filter(
    ({ oldMode, newMode }) => oldMode === SYMBOLIC_LINK || newMode === SYMBOLIC_LINK,
  )
  // Where no link came, went or moved, every link leads where it led at the base.
  if (changed.length === 0) return []
  const { stdout } = await git({ args: ['ls-files', '-z', '--stage'] })
  const entries = parseStaged(stdout).filter(({ mode }) => mode === SYMBOLIC_LINK)
  if (entries.length === 0) return []
  const input = [...new Set(entries.map(({ oid }) => `${oid}\n`))].join('')
  const contents = parseBatch((await git({ args: ['cat-file', '--batch'], input })).stdout)
  const links = entries.map(({ path, oid }) => ({
    path,
    target: contents.get(oid)?.toString('latin1') ?? '',
  }))
  return escapingLinks(
    links,
    changed.map(({ path }) => path),
  )
}

/** Linux follows so many in one path, others fewer (path_resolution(7)): a longer chain leads nowhere. */
const MAX_FOLLOWED = 40

/** Steps over all links, weighed by the length of the path at each. Far beyond any honest tree. */
const MAX_WORK = 10_000_000

/** A reader on its way; `rest` is what is still to be walked. */
type Walk = Readonly<{
  at: BytePath
  rest: Rest | null
  followed: number
  /** Something on the way is not as it was at the base. */
  isNew: boolean
}>
type Rest = Readonly<{ part: string; next: Rest | null }>

/**
 * Which links a reader could leave the tree by. Each is walked as a file system does it, through the
 * other links of the tree: `a -> d/l/../x` is harmless by its text alone, and leaves the tree when
 * `d/l` is a link to the root. Names that differ only in case are one name on some file systems, so
 * every reading counts. Pure.
 * @param changed paths at which a link came, went, or moved
 */
export function escapingLinks(
  links: readonly TreeLink[],
  changed: readonly BytePath[],
): readonly BytePath[] {
  const byName = new Map<string, TreeLink[]>()
  for (const link of links) {
    const name = fold(link.path)
    byName.set(name, [...(byName.get(name) ?? []), link])
  }
  const changedNames = new Set(changed.map(fold))
  let work = MAX_WORK

  function escapes(link: TreeLink): boolean {
    const waiting: Walk[] = []
    const follow = (next: TreeLink, walk: Walk): boolean => {
      const isNew = walk.isNew || changedNames.has(fold(next.path))
      if (next.target.startsWith('/')) return isNew
      const rest = prepend(next.target, walk.rest)
      waiting.push({ at: folderOf(next.path), rest, followed: walk.followed + 1, isNew })
      return false
    }
    if (follow(link, { at: '', rest: null, followed: 0, isNew: false })) return true
    for (let walk = waiting.pop(); walk !== undefined; walk = waiting.pop()) {
      const { at, rest, followed } = walk
      work -= 1 + at.length
      // What cannot be judged is not published.
      if (work < 0) return true
      if (rest === null) continue
      const { part, next } = rest
      if (part === '..') {
        if (at !== '') waiting.push({ ...walk, at: folderOf(at), rest: next })
        else if (walk.isNew) return true
        continue
      }
      if (walk.isNew && isGitDirectoryName(displayPath(part))) return true
      const there = at === '' ? part : `${at}/${part}`
      const found = byName.get(fold(there)) ?? []
      if (!found.some(({ path }) => path === there)) {
        const isNew = walk.isNew || changedNames.has(fold(there))
        waiting.push({ at: there, rest: next, followed, isNew })
      }
      if (followed >= MAX_FOLLOWED) continue
      if (found.some((other) => follow(other, { ...walk, rest: next }))) return true
    }
    return false
  }
  return links.filter(escapes).map(({ path }) => path)
}

function prepend(target: BytePath, rest: Rest | null): Rest | null {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  return parts.reduceRight<Rest | null>((next, part) => ({ part, next }), rest)
}

function folderOf(path: BytePath): BytePath {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0))
}

/** As file systems do that know no case (APFS, NTFS). */
function fold(path: BytePath): string {
  // The usual name, at a tenth of the cost.
  if (/^[\x00-\x7f]*$/.test(path)) return path.toLowerCase()
  return displayPath(path).normalize('NFKC').toLowerCase()
}
