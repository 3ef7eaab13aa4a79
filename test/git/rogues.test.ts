import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import type { CapturedTree, FetchedBase, Git, RunTree } from '../../daemon/core/ports.ts'
import { escapingLinks } from '../../daemon/git/refuse-traps.ts'
import { validateTree } from '../../daemon/publish/validate-tree.ts'
import { POLICY } from '../publish/publish-world.ts'
import {
  type Canary,
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeCanary,
  makeGitScene,
  WIDGETS,
  writeAt,
} from '../support/git-scene.ts'

// A gallery of workers that tamper with git, each a real process in a real tree of a run. Whatever they
// do, nothing they planted is run by the daemon, and what is published is what lies in their files.

const ROGUE = resolve(import.meta.dirname, '../fixtures/bin/git-rogue')
const POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n'

/** The deed, and – where an ordinary git falls for it – the call of git in the tree that runs the canary. */
const HARMLESS = [
  ['fsmonitor', 'status'],
  ['hooks-path', 'commit --allow-empty -m x'],
  ['ssh-command', 'ls-remote ssh://host.invalid/x'],
  ['editor', 'commit --allow-empty'],
  ['pager'],
  ['other-worktree'],
  ['attributes-file', 'add -A'],
  ['excludes-file'],
  ['external-diff', 'diff'],
  ['diff-command', 'diff'],
  ['textconv', 'diff'],
  ['clean-filter', 'add -A'],
  ['smudge-filter', 'checkout -f HEAD -- README.md'],
  ['process-filter', 'add -A'],
  ['lfs-filter', 'add --renormalize big.bin'],
  ['merge-driver'],
  ['signing', 'commit --allow-empty -m x'],
  ['credential-helper'],
  ['instead-of', 'ls-remote /x'],
  ['push-instead-of', 'push /x HEAD'],
  ['include', 'status'],
  ['include-if', 'status'],
  ['alias', 'x'],
  ['ext-remote', 'ls-remote origin'],
  ['pack-commands', 'ls-remote origin'],
  ['other-programs'],
  ['other-format'],
  ['broken-config'],
  ['hooks', 'commit --allow-empty -m x'],
  ['git-is-a-file', 'status'],
  ['git-is-a-link', 'status'],
  ['git-is-a-pipe'],
  ['git-is-gone'],
  ['index-garbage'],
  ['head-garbage'],
  ['head-elsewhere'],
  ['head-detached'],
  ['moved-refs'],
  ['replaced-objects'],
  ['grafts'],
  ['alternates'],
  ['linked-worktree', 'status'],
  ['module-directory', '-C mod status'],
  ['submodule', '-C mod status'],
  ['nested-beside-files', '-C lib status'],
  ['nested-ignored', '-C ignored/nested status'],
  ['excludes'],
  ['index-flags'],
  ['sparse-checkout'],
  ['commits'],
  ['pushes'],
  ['environment-files'],
  ['packed-objects'],
  ['names'],
  ['colliding-names'],
  ['links-inside'],
  ['hard-links'],
  ['rules'],
  ['executable'],
  ['sockets'],
  ['lfs-pointer'],
] as const satisfies readonly (readonly [deed: string, provokedBy?: string])[]

/** The deed, and what the daemon says of it; the work stays where it is. */
const REFUSED = [
  ['nested', '"nested" is a repository of its own'],
  ['gitlink', '"nested" is a repository of its own'],
  ['pipe-for-file', '"lib/a.txt" is a fifo'],
  ['socket-for-file', '"lib/a.txt" is a socket'],
  ['pipe-for-ignores', '".gitignore" is a fifo'],
  ['pipe-for-attributes', '"new/.gitattributes" is a fifo'],
  ['pipe-in-nested', '"n/.git/HEAD" is a fifo'],
  ['pipe-in-ignored', '"ignored/n/.git/HEAD" is a fifo'],
  ['pipe-in-submodule', '"mod/.git/HEAD" is a fifo'],
  ['pipe-elsewhere', '"sub/.git" leads to a repository whose HEAD is no file'],
  ['nested-is-a-link', '"sub/.git" is a link'],
  ['sparse-rules', '"lib/.gitignore" has 1099511627776 bytes; at most 10485760 are read'],
  ['encoding', "failed to encode 'README.md' from nonsense to UTF-8"],
  ['upper-case-git', '".GIT/config" would be a git directory'],
  ['short-name-git', '"a/GIT~1/config" would be a git directory'],
  ['spaced-git', '"a/.git ./config" would be a git directory'],
  ['unseen-git', 'would be a git directory'],
  ['backslash-git', 'git takes no path like a/.git\\config'],
  ['lfs-content', null],
  ['absolute-link', '"l" links to outside the tree'],
  ['link-upwards', '"lib/l" links to outside the tree'],
  ['link-into-git', '"lib/l" links to outside the tree'],
  ['link-chain', '"a" links to outside the tree'],
  ['link-through-link', '"l" links to outside the tree'],
  ['link-through-base', '"l" links to outside the tree'],
  ['link-through-case', '"l" links to outside the tree'],
  ['base-link-turned', '"via" links to outside the tree'],
  ['too-deep', 'could not open directory'],
] as const satisfies readonly (readonly [deed: string, reason: string | null])[]

describe('a worker that tampers with git', () => {
  let scene: GitScene
  let git: Git
  let base: FetchedBase
  let canary: Canary
  let submodule: string
  let pristine: Files
  let untouched: Readonly<Record<string, Files>>

  beforeAll(async () => {
    scene = makeGitScene()
    const other = join(scene.root, 'other')
    writeAt(join(scene.root, 'outside/foreign'), 'not of the tree\n')
    writeAt(join(other, 'run.sh'), '#!/bin/sh\n', 0o755)
    for (const [path, target] of BASE_LINKS) {
      mkdirSync(dirname(join(other, path)), { recursive: true })
      symlinkSync(target, join(other, path))
    }
    scene.push({
      'README.md': 'hello\n',
      'lib/a.txt': 'a\n',
      'big.bin': POINTER,
      '.gitattributes': '*.bin filter=lfs -text\n',
      '.gitignore': 'ignored/\n',
    })
    scene.addSubmodule('mod')
    git = scene.open({ timeoutMs: 30_000 })
    base = await git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), 'develop')
    submodule = scene.run(scene.origin, 'rev-parse', 'develop:mod')
    const tree = await createTree('pristine')
    pristine = { ...filesOf(tree.path), '.git/config': read(join(tree.path, '.git/config')) }
    await git.removeTree(tree)
    untouched = surroundings()
  })
  beforeEach(() => {
    canary = makeCanary()
    // One that does not wait for its input: as an ssh it would be waited for.
    const note = join(dirname(canary.program), 'note')
    writeAt(canary.program, `#!/bin/sh\necho "$0 $*" >> ${note}\n`, 0o755)
  })
  afterEach(() => {
    canary.remove()
    rmSync(join(scene.root, 'outside/evil'), { recursive: true, force: true })
  })
  afterAll(() => scene.remove())

  const createTree = async (name: string): Promise<RunTree> =>
    git.createTree(base, {
      runId: name,
      path: join(scene.root, 'state/worktrees', name),
      indexPath: join(scene.root, `state/runs/${name}.index`),
      branch: branchOf(name),
    })

  /** What the daemon and the operator own; only objects and the refs of runs may come to the store. */
  const surroundings = (): Readonly<Record<string, Files>> => ({
    clone: allOf(scene.clone),
    home: allOf(join(scene.root, 'home')),
    store: allOf(base.storePath, /^objects\/|^refs\/runs\//),
  })

  function misbehave(tree: RunTree, deed: string): void {
    execFileSync(ROGUE, [deed], {
      cwd: tree.path,
      env: {
        ...scene.environment,
        CANARY: canary.program,
        OUTSIDE: join(scene.root, 'outside'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
    })
  }

  /** As the engine does it: what is judged is what is committed. */
  async function capture(tree: RunTree): Promise<CapturedTree> {
    const captured = await git.captureTree(tree, CONTROL_FILES)
    validateTree(captured, POLICY, tree.path)
    return captured
  }

  async function publish(tree: RunTree, deed: string): Promise<string> {
    const captured = await capture(tree)
    // A run that was adopted does it again.
    expect(await capture(tree)).toEqual(captured)
    const oid = await git.commitTree(tree.storePath, {
      treeOid: captured.treeOid,
      parentOid: tree.baseOid,
      message: 'Change it\n',
      author: { name: 'A', email: 'a@example.org' },
      dateSeconds: 1_700_000_000,
      keepAs: `refs/runs/${deed}`,
    })
    expect(await git.remoteBranch(tree.storePath, branchOf(deed), base.remote)).toBe(null)
    await git.pushNewBranch(tree.storePath, oid, branchOf(deed), base.remote)
    expect(await git.remoteBranch(tree.storePath, branchOf(deed), base.remote)).toBe(oid)
    return oid
  }

  /** What the origin has, as `filesOf` shows a folder. */
  function published(oid: string): Files {
    const records = scene.run(scene.origin, 'ls-tree', '-r', '-z', oid).split('\0').filter(Boolean)
    return Object.fromEntries(
      records.map((record) => {
        const [, mode = '', id = '', path = ''] = /^(\d+) \w+ (\w+)\t(.+)$/s.exec(record) ?? []
        return [path, `${mode} ${id}`]
      }),
    )
  }

  function provoke(tree: RunTree, args: string): void {
    try {
      execFileSync('git', args.split(' '), {
        cwd: tree.path,
        env: scene.environment,
        stdio: 'ignore',
        timeout: 20_000,
      })
    } catch {
      // Git fails when the canary is no filter, hook or helper; that it was run is what counts.
    }
  }

  // Not as a list: jest takes a parameter beyond a short row for its callback.
  const rows = HARMLESS.map(([deed, provokedBy]) => ({ deed, provokedBy: provokedBy ?? null }))

  test.each(rows)(
    '$deed: nothing planted is run, and exactly its files are published',
    async ({ deed, provokedBy }) => {
      const tree = await createTree(deed)
      for (const name of CONTROL_FILES) writeAt(join(tree.path, name), 'control')
      misbehave(tree, deed)
      const left = filesOf(tree.path)
      expect(left['new.txt']).not.toBe(undefined)
      const oid = await publish(tree, deed)
      expect(published(oid)).toEqual({ ...left, mod: `160000 ${submodule}` })
      expect(scene.run(scene.origin, 'rev-parse', `${oid}^@`)).toBe(base.oid)

      const next = await createTree(`${deed}-next`)
      expect({
        ...filesOf(next.path),
        '.git/config': read(join(next.path, '.git/config')),
      }).toEqual(pristine)
      expect(canary.hasSung()).toBe(false)
      if (provokedBy !== null) {
        provoke(tree, provokedBy)
        expect(canary.hasSung()).toBe(true)
      }
      for (const { path, indexPath } of [tree, next]) {
        await git.removeTree({ path, indexPath })
        expect([path, indexPath].filter((gone) => existsSync(gone))).toEqual([])
      }
      expect(surroundings()).toEqual(untouched)
    },
  )

  test('all-settings: every setting, hook and attribute at once changes nothing either', async () => {
    const tree = await createTree('all-settings')
    misbehave(tree, 'all-settings')
    const left = filesOf(tree.path)
    const oid = await publish(tree, 'all-settings')
    expect(published(oid)).toEqual({ ...left, mod: `160000 ${submodule}` })
    await git.describeDifference(tree.storePath, tree.baseOid, oid, 10_000)
    expect(canary.hasSung()).toBe(false)
    provoke(tree, 'status')
    expect(canary.hasSung()).toBe(true)
    await git.removeTree(tree)
    expect(surroundings()).toEqual(untouched)
  })

  test.each(REFUSED)('%s: is refused, in time, and nothing leaves', async (deed, reason) => {
    const tree = await createTree(deed)
    misbehave(tree, deed)
    const found = await faultOf(capture(tree))
    const code = deed === 'lfs-content' ? 'git/stored-form' : 'worker/tree-unusable'
    expect(found).toMatchObject({ code, details: { tree: tree.path } })
    if (reason !== null) expect(found?.details['reason']).toContain(reason)
    expect(await faultOf(capture(tree))).toMatchObject({ code, message: found?.message })
    expect(read(join(tree.path, 'new.txt'))).toBe('new\n')
    expect(await git.remoteBranch(tree.storePath, branchOf(deed), base.remote)).toBe(null)
    expect(canary.hasSung()).toBe(false)
    await git.removeTree(tree)
    expect(existsSync(tree.path)).toBe(false)
    expect(surroundings()).toEqual(untouched)
  })

  test('a worker finds no remote to push to', async () => {
    const tree = await createTree('no-remote')
    misbehave(tree, 'pushes')
    expect(read(join(tree.path, 'pushed'))).toMatch(/^(?:[1-9]\d* ?){4}\n$/)
    expect(scene.run(scene.origin, 'for-each-ref', '--format=%(refname)')).not.toContain(
      branchOf('no-remote'),
    )
    await git.removeTree(tree)
  })
})

describe('a link of a written tree', () => {
  const one = (path: string, target: string): readonly string[] =>
    escapingLinks([{ path, target }], [path])

  test.each([
    ['l', '/absolute'],
    ['l', '..'],
    ['l', '../x'],
    ['a/l', '../../x'],
    ['a/b/l', `${'../'.repeat(3)}x`],
    ['a/l', './../.././x'],
    ['l', 'a/../../x'],
    ['l', '.git/config'],
    ['a/l', '../.GIT/config'],
    ['l', 'sub/.git/config'],
    ['l', 'sub/.git/../x'],
  ])('leads out by itself: %s → %s', (path, target) => {
    expect(one(path, target)).toEqual([path])
  })

  test.each([
    ['l', 'x'],
    ['l', '.'],
    ['l', 'l/../l'],
    ['a/l', '..'],
    ['a/b/l', '../../x'],
    ['l', 'a/../x'],
    ['l', '...'],
    ['l', '.gitignore'],
    ['a/l', '..x/y'],
    ['a/l', '../b//./c/'],
  ])('stays inside: %s → %s', (path, target) => {
    expect(one(path, target)).toEqual([])
  })

  const linksOf = (table: Readonly<Record<string, string>>): { path: string; target: string }[] =>
    Object.entries(table).map(([path, target]) => ({ path, target }))

  test('that goes out at the base too, by the same way, is the project’s own', () => {
    const table = { ext: '/opt', up: '../x', by: 'ext/file', mine: 'lib' }
    expect(escapingLinks(linksOf(table), ['mine'])).toEqual([])
    expect(escapingLinks(linksOf({ ...table, mine: 'ext/file' }), ['mine'])).toEqual(['mine'])
    expect(escapingLinks(linksOf(table), ['ext'])).toEqual(['ext', 'by'])
  })

  test('that was held inside by a link which is gone is named', () => {
    const up = linksOf({ l: `d/e/${'../'.repeat(3)}x` })
    expect(escapingLinks(up, ['d/e'])).toEqual(['l'])
    expect(escapingLinks(up, ['d/f'])).toEqual([])
  })

  test('is found in bytes that are no text', () => {
    const odd = { 'd/\xc3\xa9': '..', l: 'd/\xc3\xa9/../out\xff' }
    expect(escapingLinks(linksOf(odd), ['l'])).toEqual(['l'])
  })

  test('in a maze that grows with every step is judged in a bounded time', () => {
    const doubling: [string, string][] = Array.from({ length: 60 }, (_, n) => [
      `a${n}`,
      `a${n + 1}/a${n + 1}`,
    ])
    expect(escapingLinks(linksOf(Object.fromEntries(doubling)), ['a0'])).toEqual([])
    const bothCases = ['x', 'X'].flatMap((name) =>
      Array.from({ length: 40 }, (_, n): [string, string] => [
        `${name}${n}`,
        `x${n + 1}/.././x${n + 1}`,
      ]),
    )
    const table = linksOf(Object.fromEntries(bothCases))
    const started = performance.now()
    expect(escapingLinks(table, ['x0']).length).toBeGreaterThan(0)
    expect(performance.now() - started).toBeLessThan(20_000)
  })

  test('is named wherever a real file system leaves the folder by it', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const part = fc.constantFrom('a', 'b', 'c', '..', '..', '.')
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
    const target = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
    const folders = mkdtempSync(join(tmpdir(), 'links-'))
    let number = 0
    let left = 0
    fc.assert(
      fc.property(fc.dictionary(path, target, { minKeys: 2, maxKeys: 8 }), (wanted) => {
        number += 1
        const root = join(folders, `${number}/x/y/z`)
        mkdirSync(root, { recursive: true })
        const made = linksOf(wanted).filter((link) => plantLink(root, link))
        const out = made.filter((link) => leavesFolder(root, link.path)).map((link) => link.path)
        left += out.length
        const all = made.map((link) => link.path)
        expect(escapingLinks(made, all)).toEqual(expect.arrayContaining(out))
      }),
      { numRuns: 400 },
    )
    rmSync(folders, { recursive: true })
    expect(left).toBeGreaterThan(50)
  })

  function plantLink(root: string, link: Readonly<{ path: string; target: string }>): boolean {
    try {
      // Only where no other link is on the way: git has no entry below a link.
      const folder = dirname(join(root, link.path))
      mkdirSync(folder, { recursive: true })
      if (realpathSync.native(folder) !== realpathSync.native(root) + folder.slice(root.length))
        return false
      symlinkSync(link.target, join(root, link.path))
      return true
    } catch {
      return false
    }
  }

  function leavesFolder(root: string, path: string): boolean {
    try {
      return relative(realpathSync.native(root), realpathSync.native(join(root, path))).startsWith(
        '..',
      )
    } catch {
      return false // leads nowhere
    }
  }
})

const branchOf = (name: string): string => `automation/issue-7-${name}`

/** Links of the base: into itself, out of the tree, and past a folder that a worker may turn into a link. */
const BASE_LINKS = [
  ['links/root', '..'],
  ['links/away', '../../elsewhere'],
  ['via', 'lib/../README.md'],
] as const

/** Path → mode and object id, as git would store it. */
type Files = Readonly<Record<string, string>>

/** Files and links of a checkout, by a way of our own; without git directories and what is never published. */
function filesOf(root: string): Files {
  const isOurs = (path: string): boolean =>
    CONTROL_FILES.some((name) => name === path) || /^(?:mod|ignored)\/|(?:^|\/)\.git\//.test(path)
  return Object.fromEntries(
    entriesOf(root)
      .filter((path) => !isOurs(path) && !/(?:^|\/)\.git$/.test(path))
      .flatMap((path) => {
        const status = lstatSync(join(root, path))
        if (status.isSymbolicLink()) {
          return [[path, `120000 ${blobId(Buffer.from(readlinkSync(join(root, path))))}`]]
        }
        if (!status.isFile()) return []
        const mode = (status.mode & 0o100) === 0 ? '100644' : '100755'
        return [[path, `${mode} ${blobId(readFileSync(join(root, path)))}`]]
      }),
  )
}

/** Everything below a folder but folders, with its content. */
function allOf(root: string, except = /^$/): Files {
  return Object.fromEntries(
    entriesOf(root)
      .filter((path) => !except.test(path))
      .map((path) => {
        const status = lstatSync(join(root, path))
        const content = status.isFile() ? blobId(readFileSync(join(root, path))) : 'no file'
        return [path, `${status.mode.toString(8)} ${content}`]
      }),
  )
}

function entriesOf(root: string, below = ''): readonly string[] {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    return entry.isDirectory() ? entriesOf(root, path) : [path]
  })
}

function blobId(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

function read(path: string): string {
  return readFileSync(path, 'utf8')
}
