// One real bare repository per repository of the embedded GitHub. Clients push to it and fetch from it by
// path, so its branches are read anew for every request: from the files of refs where that is enough,
// without a process.

import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { git } from './git-command.ts'

// git-check-ref-format(1), the rules that matter for a name used in a path.
const FORBIDDEN = /[\0-\x20\x7f ~^:?*[\\]|\.\.|@\{|\/\/|\/\.|^[./-]|[./]$|\.lock(?:\/|$)/

/** Whether git could have a branch of that name. */
export function isBranchName(name: string): boolean {
  return name !== '' && name !== '@' && name.length <= 250 && !FORBIDDEN.test(name)
}

/** Makes an empty repository whose unborn branch is `defaultBranch`. Faults: git/failed. */
export async function createBare(path: string, defaultBranch: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  await git(path, ['init', '--quiet', '--bare', '--template=', `--initial-branch=${defaultBranch}`])
  keepQuiet(path)
}

/** Makes a repository with the branches of another, which may be any git repository on this machine. Faults: git/failed. */
export async function copyBare(path: string, from: string, defaultBranch: string): Promise<void> {
  await createBare(path, defaultBranch)
  await git(path, [
    'fetch',
    '--quiet',
    '--no-write-fetch-head',
    '--',
    from,
    '+refs/heads/*:refs/heads/*',
  ])
}

/** No work behind the scenes: a repository at rest does not change. */
function keepQuiet(path: string): void {
  appendFileSync(join(path, 'config'), '[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n')
}

/** Makes a branch the one that clones begin with. Faults: git/failed. */
export async function setDefaultBranch(path: string, branch: string): Promise<void> {
  await git(path, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`])
}

/** The commit a branch points to, or null. No process is started. */
export function readBranch(path: string, branch: string): string | null {
  if (!isBranchName(branch)) return null
  const ref = `refs/heads/${branch}`
  const loose = readText(join(path, ref))?.trim() ?? ''
  return isOid(loose) ? loose : packedRef(path, ref)
}

/** Every branch with the commit it points to. Faults: git/failed. */
export async function listBranches(path: string): Promise<Readonly<Record<string, string>>> {
  const text = await git(path, [
    'for-each-ref',
    '--format=%(objectname) %(refname:strip=2)',
    'refs/heads/',
  ])
  const lines = text.split('\n').filter((line) => line !== '')
  return Object.fromEntries(lines.map((line) => [line.slice(41), line.slice(0, 40)]))
}

/** Points a branch to a commit; null removes it. Faults: git/failed. */
export async function setBranch(path: string, branch: string, oid: string | null): Promise<void> {
  const ref = `refs/heads/${branch}`
  await git(path, oid === null ? ['update-ref', '-d', ref] : ['update-ref', ref, oid])
}

/** Makes sure a commit of a fork is in this repository too, as GitHub's `refs/pull/<n>/head`. Faults: git/failed. */
export async function fetchPullHead(
  path: string,
  from: string,
  branch: string,
  number: number,
): Promise<void> {
  const refs = `+refs/heads/${branch}:refs/pull/${number}/head`
  await git(path, ['fetch', '--quiet', '--no-write-fetch-head', '--', from, refs])
}

function isOid(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text)
}

function packedRef(path: string, ref: string): string | null {
  const lines = readText(join(path, 'packed-refs'))?.split('\n') ?? []
  const line = lines.find(
    (candidate) => candidate.endsWith(` ${ref}`) && candidate.length === 41 + ref.length,
  )
  return line?.slice(0, 40) ?? null
}

/** null when there is no such file: absent, or a folder of that name. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
