// One real bare repository per repository of the embedded GitHub.

import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { git } from './run-git.ts'

/** Makes an empty repository whose unborn branch is `defaultBranch`. Faults: git/failed. */
export async function createBare(path: string, defaultBranch: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  await git(path, ['init', '--quiet', '--bare', '--template=', `--initial-branch=${defaultBranch}`])
  silenceGit(path)
}

/**
 * Makes a repository with the branches of another, which may be any git repository on this machine.
 * Faults: git/failed.
 */
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
function silenceGit(path: string): void {
  appendFileSync(join(path, 'config'), '[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n')
}

/** Makes a branch the one that clones begin with. Faults: git/failed. */
export async function setDefaultBranch(path: string, branch: string): Promise<void> {
  await git(path, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`])
}
