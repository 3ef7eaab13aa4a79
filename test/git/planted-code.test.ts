import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { RunTree } from '../../daemon/core/ports.ts'
import {
  type Canary,
  CONTROL_FILES,
  type GitScene,
  makeCanary,
  makeGitScene,
  RUN_BRANCH,
  WIDGETS,
  writeAt,
} from '../support/git-scene.ts'

const HOOKS = [
  'pre-commit',
  'prepare-commit-msg',
  'commit-msg',
  'post-commit',
  'post-checkout',
  'post-index-change',
  'pre-push',
  'reference-transaction',
  'post-merge',
  'pre-auto-gc',
  'fsmonitor-watchman',
]

let scene: GitScene
let canary: Canary

beforeEach(() => {
  scene = makeGitScene({
    'README.md': 'hello\n',
    'lib/a.txt': 'a\n',
    'big.bin': 'x\n',
    '.gitignore': 'ignored/\n',
  })
  canary = makeCanary()
})
afterEach(() => {
  scene.remove()
  canary.remove()
})

/** Every way to make git run a program, in one configuration file. */
function poison(folder: string): string {
  for (const name of HOOKS) {
    writeAt(join(folder, name), '', 0o755)
    rmSync(join(folder, name))
    symlinkSync(canary.program, join(folder, name))
  }
  const run = canary.program
  return `
[core]
	fsmonitor = "${run}"
	hooksPath = "${folder}"
	pager = "${run}"
	sshCommand = "${run}"
	editor = "${run}"
	gitProxy = "${run}"
	alternateRefsCommand = "${run}"
	untrackedCache = true
	attributesFile = "${folder}/attributes"
[filter "evil"]
	clean = "${run}"
	smudge = "${run}"
	process = "${run}"
	required = true
[filter "lfs"]
	clean = "${run}"
	smudge = "${run}"
	process = "${run}"
	required = true
[diff]
	external = "${run}"
[diff "evil"]
	command = "${run}"
	textconv = "${run}"
[merge "evil"]
	driver = "${run}"
[credential]
	helper = "!'${run}'"
[commit]
	gpgSign = true
[gpg]
	program = "${run}"
[uploadpack]
	packObjectsHook = "${run}"
[push]
	gpgSign = if-asked
	followTags = true
[submodule]
	recurse = true
`
}

const ATTRIBUTES = '* filter=evil diff=evil merge=evil\n*.bin filter=lfs\n'

async function publish(tree: RunTree): Promise<string> {
  const { git } = scene
  const captured = await git.captureTree(tree, CONTROL_FILES)
  await git.describeDifference(tree.storePath, tree.baseOid, captured.treeOid, 10_000)
  const oid = await git.commitTree(tree.storePath, {
    treeOid: captured.treeOid,
    parentOid: tree.baseOid,
    message: 'Change it\n',
    author: { name: 'A', email: 'a@example.org' },
    dateSeconds: 1_700_000_000,
    keepAs: 'refs/runs/one',
  })
  await git.pushNewBranch(tree.storePath, oid, RUN_BRANCH)
  expect(await git.remoteBranch(tree.storePath, RUN_BRANCH)).toBe(oid)
  return oid
}

describe('code planted by a worker', () => {
  test('in its own repository, attributes and hooks never runs (C28, C29)', async () => {
    const tree = await scene.checkOut()
    writeAt(join(tree.path, '.gitattributes'), ATTRIBUTES)
    writeAt(join(tree.path, '.git/info/attributes'), ATTRIBUTES)
    writeAt(join(tree.path, '.git/config'), poison(join(tree.path, '.git/hooks')))
    writeAt(join(tree.path, 'README.md'), 'changed\n')
    writeAt(join(tree.path, 'new.bin'), '')
    const oid = await publish(tree)
    expect(canary.hasSung()).toBe(false)
    expect(scene.run(scene.origin, 'cat-file', '-p', `${oid}:README.md`)).toBe('changed')
    // The canary can sing.
    expect(() => scene.run(tree.path, 'add', '-A')).toThrow('add -A')
    expect(canary.hasSung()).toBe(true)
  })

  test('in the configuration of a submodule or a nested repository never runs (P§5)', async () => {
    const sub = scene.addSubmodule('mod')
    const tree = await scene.checkOut()
    for (const name of ['mod', 'lib', 'ignored/nested']) {
      if (name !== 'lib') scene.run(tree.path, 'clone', '-q', sub, name)
      else scene.run(tree.path, 'init', '-q', name)
      const nested = join(tree.path, name)
      writeAt(join(nested, '.gitattributes'), ATTRIBUTES)
      writeAt(
        join(nested, '.git/config'),
        `[core]\n\tbare = false\n\tworktree = "${nested}"${poison(join(nested, '.git/hooks'))}`,
      )
      writeAt(join(nested, 's.txt'), 'changed')
    }
    const oid = await publish(tree)
    expect(canary.hasSung()).toBe(false)
    expect(
      scene.run(scene.origin, 'diff-tree', '-r', '--name-only', tree.baseOid, oid).split('\n'),
    ).toEqual(['lib/.gitattributes', 'lib/s.txt'])
    scene.run(tree.path, '-C', 'mod', 'status')
    expect(canary.hasSung()).toBe(true)
  })

  test('behind a .git that is a file is not even looked at', async () => {
    const tree = await scene.checkOut()
    const evil = join(scene.root, 'evil')
    scene.run(scene.root, 'init', '-q', evil)
    writeAt(join(evil, '.git/config'), poison(join(evil, '.git/hooks')))
    rmSync(join(tree.path, '.git'), { recursive: true })
    writeAt(join(tree.path, '.git'), `gitdir: ${evil}/.git\n`)
    writeAt(join(tree.path, 'README.md'), 'changed\n')
    await publish(tree)
    expect(canary.hasSung()).toBe(false)
  })
})

describe('what a worker did to its repository', () => {
  test('does not count: its commits are squashed, its index, refs and objects are not believed', async () => {
    const tree = await scene.checkOut()
    writeAt(join(tree.path, 'one.txt'), 'one')
    scene.run(tree.path, 'add', '-A')
    scene.run(tree.path, 'commit', '-q', '-m', 'one')
    writeAt(join(tree.path, 'two.txt'), 'two')
    scene.run(tree.path, 'add', '-A')
    scene.run(tree.path, 'commit', '-q', '-m', 'two')
    scene.run(tree.path, 'rm', '-q', '--cached', 'README.md')
    scene.run(tree.path, 'update-index', '--assume-unchanged', 'lib/a.txt')
    writeAt(join(tree.path, 'lib/a.txt'), 'changed\n')
    scene.run(tree.path, 'checkout', '-q', '--orphan', 'elsewhere')
    writeAt(join(tree.path, '.git/objects/info/alternates'), '/nonexistent\n')
    writeAt(join(tree.path, '.git/HEAD'), 'garbage')
    rmSync(join(tree.path, '.git/refs'), { recursive: true })
    const oid = await publish(tree)
    const show = (...args: string[]): string => scene.run(scene.origin, ...args)
    expect(show('rev-list', '--count', `${tree.baseOid}..${oid}`)).toBe('1')
    expect(show('diff-tree', '-r', '--name-status', tree.baseOid, oid).split('\n')).toEqual([
      'M\tlib/a.txt',
      'A\tone.txt',
      'A\ttwo.txt',
    ])
  })

  test('is gone for the next run', async () => {
    const tree = await scene.checkOut()
    writeAt(join(tree.path, '.git/config'), poison(join(tree.path, '.git/hooks')))
    const next = await scene.checkOut('next')
    expect(scene.run(next.path, 'config', '--local', '--list')).not.toContain('canary')
    expect(canary.hasSung()).toBe(false)
  })
})

describe('the operator’s own configuration', () => {
  test('runs nothing on a worker’s tree, signs nothing and is not hung up by a passphrase (C27)', async () => {
    scene.push({ '.gitattributes': '*.md filter=evil\n' }, 'with-filter')
    writeAt(join(scene.root, 'home/.gitconfig'), poison(join(scene.root, 'home/hooks')))
    writeAt(join(scene.root, 'home/hooks/attributes'), ATTRIBUTES)
    const tree = await scene.checkOut('run', 'with-filter')
    writeAt(join(tree.path, 'README.md'), 'changed\n')
    const oid = await publish(tree)
    expect(scene.run(scene.origin, 'cat-file', '-p', oid)).not.toContain('gpgsig')
    expect(canary.hasSung()).toBe(false)
  })

  test('in the environment neither leads git elsewhere nor reaches it with a token', async () => {
    const elsewhere = join(scene.root, 'elsewhere')
    scene.run(scene.root, 'init', '-q', elsewhere)
    const git = scene.open(
      {},
      {
        GIT_DIR: join(elsewhere, '.git'),
        GIT_WORK_TREE: elsewhere,
        GIT_INDEX_FILE: join(elsewhere, 'index'),
        GIT_OBJECT_DIRECTORY: join(elsewhere, 'objects'),
        GIT_ALTERNATE_OBJECT_DIRECTORIES: elsewhere,
        GIT_NAMESPACE: 'x',
        GIT_CONFIG_PARAMETERS: "'core.bare=true'",
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'remote.origin.url',
        GIT_CONFIG_VALUE_0: elsewhere,
        GIT_EXTERNAL_DIFF: canary.program,
        GIT_TRACE: join(scene.root, 'trace'),
      },
    )
    const base = await git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), 'develop')
    const tree = await git.createTree(base, {
      runId: 'x',
      path: join(scene.root, 'state/tree'),
      indexPath: join(scene.root, 'state/index'),
      branch: RUN_BRANCH,
    })
    writeAt(join(tree.path, 'README.md'), 'changed\n')
    const captured = await git.captureTree(tree, CONTROL_FILES)
    expect(captured.changes).toMatchObject([{ path: 'README.md' }])
    expect(
      await git.describeDifference(tree.storePath, tree.baseOid, captured.treeOid, 10_000),
    ).toContain('+changed')
    expect(canary.hasSung()).toBe(false)
  })
})
