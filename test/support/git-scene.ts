import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FetchedBase, Git, RunTree } from '../../daemon/core/ports.ts'
import { type GitOptions, openGit } from '../../daemon/git/open-git.ts'
import { systemClock } from '../../daemon/sys/clock.ts'

export const WIDGETS = { owner: 'Acme', name: 'Widgets' } as const
export const CONTROL_FILES = [
  'worker-prompt.md',
  'worker-context.json',
  'worker-result.json',
] as const
export const RUN_BRANCH = 'automation/issue-7-01hzz'

/** A bare origin, the operator's clone of it, and the adapter under test, all in one folder. */
export type GitScene = Readonly<{
  root: string
  /** The bare repository `acme/widgets.git`; its default branch is `develop`. */
  origin: string
  clone: string
  storageRoot: string
  environment: Readonly<Record<string, string>>
  git: Git
  /** Runs git for the test, as the operator would. */
  run(folder: string, ...args: readonly string[]): string
  /** Commits files by way of another clone; a null deletes. Other branches begin at the default one. */
  push(files: Readonly<Record<string, string | Buffer | null>>, branch?: string): string
  /** Makes a repository with a file `s.txt` and adds it to the default branch as a submodule; its path. */
  addSubmodule(name: string): string
  /** The adapter with other options or variables. */
  open(options?: Partial<GitOptions>, variables?: Readonly<Record<string, string>>): Git
  /** Fetches the base and checks out a tree. */
  checkOut(name?: string, branch?: string): Promise<RunTree & Readonly<{ base: FetchedBase }>>
  remove(): void
}>

export function makeGitScene(
  files: Readonly<Record<string, string | Buffer>> = { 'README.md': 'hello\n' },
): GitScene {
  const root = mkdtempSync(join(tmpdir(), 'git scene '))
  const inside = (...names: string[]): string => join(root, ...names)
  const environment = { PATH: process.env['PATH'] ?? '', HOME: inside('home') }
  writeAt(inside('home/.gitconfig'), '[user]\n\tname = Op\n\temail = op@example.org\n')
  const run = (folder: string, ...args: readonly string[]): string =>
    execFileSync('git', args, {
      cwd: folder,
      env: { ...environment, GIT_CONFIG_NOSYSTEM: '1' },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 64 * 1024 * 1024,
    }).trimEnd()
  const origin = inside('hub/acme/widgets.git')
  const other = inside('other')
  run(root, 'init', '-q', '--bare', '-b', 'develop', origin)
  run(root, 'init', '-q', '-b', 'develop', other)
  run(other, 'remote', 'add', 'origin', origin)
  const push: GitScene['push'] = (changes, branch = 'develop') => {
    if (branch !== 'develop') run(other, 'checkout', '-q', '-f', '--detach', 'develop')
    for (const [name, content] of Object.entries(changes)) {
      if (content === null) rmSync(join(other, name), { recursive: true })
      else writeAt(join(other, name), content)
    }
    run(other, 'add', '-A', '-f')
    run(other, 'commit', '-q', '--allow-empty', '-m', 'a change')
    run(other, 'push', '-q', '--force', 'origin', `HEAD:refs/heads/${branch}`)
    const oid = run(other, 'rev-parse', 'HEAD')
    if (branch !== 'develop') run(other, 'checkout', '-q', '-f', 'develop')
    return oid
  }
  push(files)
  const addSubmodule: GitScene['addSubmodule'] = (name) => {
    const sub = inside('sub')
    run(root, 'init', '-q', sub)
    writeAt(join(sub, 's.txt'), 's')
    run(sub, 'add', '-A')
    run(sub, 'commit', '-q', '-m', 'sub')
    run(other, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', sub, name)
    push({})
    return sub
  }
  const clone = inside('work', WIDGETS.owner, WIDGETS.name)
  run(root, 'clone', '-q', origin, clone)
  const open: GitScene['open'] = (options = {}, variables = {}) =>
    openGit(
      { clock: systemClock, environment: { ...environment, ...variables } },
      {
        workdirBase: inside('work'),
        storageRoot: inside('state/repos'),
        apiBase: 'http://127.0.0.1:9',
        timeoutMs: 60_000,
        controlFiles: CONTROL_FILES,
        ...options,
      },
    )
  const git = open()
  const checkOut: GitScene['checkOut'] = async (name = 'run', branch = 'develop') => {
    const base = await git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), branch)
    const tree = await git.createTree(base, {
      runId: name,
      path: inside('state/worktrees/acme/widgets', name),
      indexPath: inside(`state/runs/${name}.index`),
      branch: RUN_BRANCH,
    })
    return { ...tree, base }
  }
  return {
    root,
    origin,
    clone,
    storageRoot: inside('state/repos'),
    environment,
    git,
    run,
    push,
    addSubmodule,
    open,
    checkOut,
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Writes a file and the folders above it. */
export function writeAt(path: string, content: string | Buffer, mode?: number): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  if (mode !== undefined) chmodSync(path, mode)
}

/** A program that notes in a file that it was run. Its path has no space: many settings are shell words. */
export type Canary = Readonly<{ program: string; hasSung(): boolean; remove(): void }>

export function makeCanary(): Canary {
  const folder = mkdtempSync(join(tmpdir(), 'canary-'))
  const program = join(folder, 'canary')
  const note = join(folder, 'note')
  writeAt(program, `#!/bin/sh\necho "$0 $*" >> ${note}\ncat\n`, 0o755)
  return {
    program,
    hasSung: () => existsSync(note),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The code and details of the fault a promise rejects with; null when it resolves. */
export async function faultOf(
  promise: Promise<unknown>,
): Promise<Readonly<{ code: string; message: string; details: Record<string, unknown> }> | null> {
  try {
    await promise
    return null
  } catch (error) {
    // Tests look at faults as data.
    return error as { code: string; message: string; details: Record<string, unknown> }
  }
}
