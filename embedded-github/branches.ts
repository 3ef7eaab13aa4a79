// The branches of a bare repository. Clients push to it and fetch from it by path, so they are read again for
// every request: from the files of refs where that is enough, without a process.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { git } from './run-git.ts'

// git-check-ref-format(1), the rules that matter for a name used in a path.
const FORBIDDEN = /[\0-\x20\x7f ~^:?*[\\]|\.\.|@\{|\/\/|\/\.|^[./-]|[./]$|\.lock(?:\/|$)/

/** Whether git could have a branch of that name. */
export function isBranchName(name: string): boolean {
  return name !== '' && name !== '@' && name.length <= 250 && !FORBIDDEN.test(name)
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
