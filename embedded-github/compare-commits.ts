import { git, tryGit } from './run-git.ts'

export type ChangedFile = Readonly<{
  path: string
  status: 'added' | 'removed' | 'modified' | 'changed'
  blobOid: string | null
  additions: number
  deletions: number
}>

/** What a pull request amounts to. */
export type Comparison = Readonly<{
  /** On the head and not on the base, oldest first. */
  commits: readonly string[]
  files: readonly ChangedFile[]
  /** The tree a merge would have; null = it would conflict. */
  mergedTree: string | null
}>

/** GitHub lists no more commits of a pull request than this (docs, "List commits on a pull request"). */
const MAX_COMMITS = 250

/**
 * Compares two commits of a repository, as a pull request from head to base shows them.
 * Faults: git/failed.
 */
export async function compareCommits(
  path: string,
  baseOid: string,
  headOid: string,
): Promise<Comparison> {
  const range = `${baseOid}..${headOid}`
  const [log, files, mergedTree] = await Promise.all([
    git(path, ['rev-list', '--reverse', `--max-count=${MAX_COMMITS}`, range, '--']),
    changedFiles(path, baseOid, headOid),
    mergeTrees(path, baseOid, headOid),
  ])
  return { commits: log.split('\n').filter((line) => line !== ''), files, mergedTree }
}

async function mergeTrees(path: string, base: string, head: string): Promise<string | null> {
  const { code, stdout } = await tryGit(path, ['merge-tree', '--write-tree', base, head])
  return code === 0 ? (stdout.split('\n')[0] ?? null) : null
}

/** Against the merge base; without a common ancestor against the base itself. */
async function changedFiles(
  path: string,
  base: string,
  head: string,
): Promise<readonly ChangedFile[]> {
  const ancestor = (await tryGit(path, ['merge-base', base, head])).stdout.trim()
  const text = await git(path, [
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--numstat',
    '--no-renames',
    '--no-abbrev',
    ancestor === '' ? base : ancestor,
    head,
  ])
  return parseChanges(text.split('\0'))
}

const STATUS = { A: 'added', D: 'removed', T: 'changed' } as const

/** `--raw` records (`:modes oids X`, then the path) come first, then one `added deleted path` per file. */
function parseChanges(fields: readonly string[]): readonly ChangedFile[] {
  const end = fields.findIndex((field, index) => index % 2 === 0 && !field.startsWith(':'))
  return Array.from({ length: Math.max(0, end / 2) }, (_, index) => {
    const record = fields[index * 2] ?? ''
    const [additions, deletions] = (fields[end + index] ?? '').split('\t')
    const letter = record.at(-1)
    return {
      path: fields[index * 2 + 1] ?? '',
      status: letter === 'A' || letter === 'D' || letter === 'T' ? STATUS[letter] : 'modified',
      blobOid: record.split(' ')[3] ?? null,
      additions: Number(additions) || 0,
      deletions: Number(deletions) || 0,
    }
  })
}
