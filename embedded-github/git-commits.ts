// What git tells of the commits in a bare repository, and how git is run there.

import { execFile } from 'node:child_process'
import { fault } from '../daemon/core/fault.ts'
import { environment } from '../daemon/sys/environment.ts'

const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

type GitOutcome = Readonly<{ code: number; stdout: string; stderr: string }>

/**
 * Runs git on a bare repository and answers whatever its exit status is. Configuration of the
 * machine and of the user plays no part. Faults: git/failed when it cannot run or takes too long.
 * @param path the bare repository
 * @param options input is given to its standard input; env is laid over the clean environment
 */
function tryGit(
  path: string,
  args: readonly string[],
  options: Readonly<{ input?: string | Buffer; env?: Readonly<Record<string, string>> }> = {},
): Promise<GitOutcome> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      'git',
      ['--git-dir', path, ...args],
      {
        cwd: '/',
        env: { ...cleanEnvironment(), ...options.env },
        timeout: TIMEOUT_MS,
        killSignal: 'SIGKILL',
        maxBuffer: MAX_OUTPUT_BYTES,
      },
      (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr })
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr })
        else reject(fault('git/failed', { operation: operationOf(args), reason: error.message }))
      },
    )
    // git may end without reading all of its input; its exit status then says why.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input ?? '')
  })
}

/** As `tryGit`, for what has to succeed: its standard output. Faults: git/failed. */
export async function git(
  path: string,
  args: readonly string[],
  options: Parameters<typeof tryGit>[2] = {},
): Promise<string> {
  const { code, stdout, stderr } = await tryGit(path, args, options)
  if (code === 0) return stdout
  throw fault('git/failed', { operation: operationOf(args), reason: stderr.trim() })
}

const operationOf = (args: readonly string[]): string =>
  args.find((arg) => !arg.startsWith('-')) ?? 'git'

/** Of the environment only what git needs to be found and to run; no GIT_* leaks in. */
function cleanEnvironment(): Readonly<Record<string, string>> {
  const env = environment()
  return {
    PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    LC_ALL: 'C',
    TZ: 'UTC',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
  }
}

type Signature = Readonly<{ name: string; email: string; date: string }>

export type CommitFacts = Readonly<{
  oid: string
  treeOid: string
  parents: readonly string[]
  author: Signature
  committer: Signature
  message: string
}>

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

// %x00 between fields and records: nothing a person wrote can be taken for a separator.
const FORMAT = ['%H', '%T', '%P', '%an', '%ae', '%aI', '%cn', '%ce', '%cI', '%B'].join('%x00')

/** Reads commits, in the order given. Faults: git/failed when one is missing. */
export async function readCommits(
  path: string,
  oids: readonly string[],
): Promise<readonly CommitFacts[]> {
  if (oids.length === 0) return []
  const text = await git(
    path,
    ['log', '--no-walk=unsorted', '--stdin', '-z', `--format=${FORMAT}`],
    {
      input: `${oids.join('\n')}\n`,
    },
  )
  const fields = text.split('\0')
  return oids.map((_, index) => parseCommit(fields.slice(index * 10, index * 10 + 10)))
}

function parseCommit(fields: readonly string[]): CommitFacts {
  const [oid = '', treeOid = '', parents = ''] = fields
  return {
    oid,
    treeOid,
    parents: parents.split(' ').filter((parent) => parent !== ''),
    author: signature(fields.slice(3, 6)),
    committer: signature(fields.slice(6, 9)),
    message: (fields[9] ?? '').trimEnd(),
  }
}

const signature = ([name = '', email = '', date = '']: readonly string[]): Signature => ({
  name,
  email,
  date: `${new Date(date).toISOString().slice(0, 19)}Z`,
})

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
