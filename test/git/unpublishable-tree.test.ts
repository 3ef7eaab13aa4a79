import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { CapturedTree, RunTree, TreeChange } from '../../daemon/core/ports.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import {
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeGitScene,
  writeAt,
} from '../support/git-scene.ts'

let scene: GitScene
let tree: RunTree

let count = 0

/** Another tree, of the base or of the base with more files in it. */
async function checkOut(files?: Readonly<Record<string, string | Buffer>>): Promise<void> {
  count += 1
  const branch = files === undefined ? 'develop' : `with-files-${count}`
  if (files !== undefined) scene.push(files, branch)
  tree = await scene.checkOut(`run-${count}`, branch)
}

beforeAll(() => {
  scene = makeGitScene({ 'README.md': 'hello\n', 'lib/a.txt': 'a\n', 'lib/b.txt': 'b\n' })
})
beforeEach(async () => checkOut())
afterAll(() => scene.remove())

const at = (name: string): string => join(tree.path, name)
const capture = async (): Promise<CapturedTree> => scene.git.captureTree(tree, CONTROL_FILES)
const brief = ({ changes }: CapturedTree): readonly string[] =>
  changes.map(({ path, status }: TreeChange) => `${status} ${path}`)

describe('what cannot be published', () => {
  const unusable = async (): Promise<unknown> =>
    (await faultOf(capture()))?.details['reason'] ?? null

  test('a pipe in place of a file is refused by name, one beside the files is no matter', async () => {
    execFileSync('mkfifo', [at('beside')])
    expect(await unusable()).toBe(null)
    rmSync(at('lib/a.txt'))
    execFileSync('mkfifo', [at('lib/a.txt')])
    expect(await unusable()).toBe('"lib/a.txt" is a fifo')
  })

  test('a repository of its own is refused, with or without a commit, new or in place of a file', async () => {
    scene.run(tree.path, 'init', '-q', 'nested')
    expect(await unusable()).toBe('"nested" is a repository of its own')
    rmSync(at('nested'), { recursive: true })
    rmSync(at('lib/a.txt'))
    scene.run(tree.path, 'init', '-q', 'lib/a.txt')
    expect(await unusable()).toBe('"lib/a.txt" is a repository of its own')
    scene.run(at('lib/a.txt'), 'commit', '-q', '--allow-empty', '-m', 'x')
    expect(await unusable()).toBe('"lib/a.txt" is a repository of its own')
  })

  test('a repository made where the base has files is no obstacle: its files are the base’s', async () => {
    scene.run(tree.path, 'init', '-q', 'lib')
    writeAt(at('lib/new.txt'), 'new')
    expect(brief(await capture())).toEqual(['added lib/new.txt'])
  })

  test.each(['.GIT/config', 'a/.Git', 'a/.gi\u200ct/config', 'git~1/x', '.git./x', '.git ::$DATA'])(
    'a name that some file system takes for .git is refused: %s',
    async (name) => {
      writeAt(at(name), 'x')
      expect(await unusable()).toContain('would be a git directory')
    },
  )

  test('a huge file with nothing in it is refused before it is read', async () => {
    const fd = openSync(at('sparse'), 'w')
    ftruncateSync(fd, 2 ** 40)
    closeSync(fd)
    const started = performance.now()
    expect(await unusable()).toContain('"sparse" has 1099511627776 bytes')
    expect(performance.now() - started).toBeLessThan(5_000)
  })

  test('more files or bytes than are read are refused', async () => {
    const limits = { maxFiles: 3, maxFileBytes: 100, maxTotalBytes: 150 }
    const git = scene.open({ captureLimits: limits })
    for (const name of ['1', '2']) writeAt(at(name), 'x'.repeat(80))
    expect(await faultOf(git.captureTree(tree, CONTROL_FILES))).toMatchObject({
      code: 'worker/tree-unusable',
      message: expect.stringContaining('160 bytes'),
    })
    for (const name of ['3', '4']) writeAt(at(name), '')
    expect(await faultOf(git.captureTree(tree, CONTROL_FILES))).toMatchObject({
      message: expect.stringContaining('4 files differ'),
    })
  })

  test('a tree that was replaced by a link is refused', async () => {
    renameSync(tree.path, `${tree.path}-moved`)
    symlinkSync(scene.root, tree.path)
    expect(await faultOf(capture())).toMatchObject({
      code: 'worker/tree-unusable',
      details: { tree: tree.path },
    })
  })

  test('a link named .gitmodules, which git does not take, is not passed over in silence', async () => {
    symlinkSync('README.md', at('.gitmodules'))
    expect(await unusable()).toContain('.gitmodules')
  })

  test('new content of a large file is refused unless it is a pointer', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n'
    await checkOut({
      '.gitattributes': '*.bin filter=lfs -text\nsecret/** filter=git-crypt\n',
      'a.bin': pointer,
    })
    writeAt(at('b.bin'), pointer.replace('size 3', 'size 4'))
    writeAt(at('empty.bin'), '')
    expect(brief(await capture())).toEqual(['added b.bin', 'added empty.bin'])
    writeAt(at('a.bin'), 'the content itself')
    expect(await faultOf(capture())).toMatchObject({
      code: 'git/stored-form',
      details: { path: 'a.bin', filter: 'lfs' },
    })
    writeAt(at('a.bin'), pointer)
    writeAt(at('secret/key'), 'in clear')
    expect(await faultOf(capture())).toMatchObject({
      code: 'git/stored-form',
      details: { filter: 'git-crypt' },
    })
  })
})

describe('submodules', () => {
  beforeAll(() => {
    const sub = join(scene.root, 'sub')
    scene.run(scene.root, 'init', '-q', sub)
    scene.run(sub, 'commit', '-q', '--allow-empty', '-m', 'sub')
    const oid = scene.run(sub, 'rev-parse', 'HEAD')
    const other = join(scene.root, 'other')
    scene.run(other, 'checkout', '-q', '-f', '--detach', 'develop')
    scene.run(other, 'update-index', '--add', '--cacheinfo', `160000,${oid},mod/sub`)
    scene.run(other, 'commit', '-q', '-m', 'submodule')
    scene.run(other, 'push', '-q', 'origin', 'HEAD:refs/heads/with-submodule')
    scene.run(other, 'checkout', '-q', '-f', 'develop')
  })
  beforeEach(async () => {
    tree = await scene.checkOut(`sub-${count}`, 'with-submodule')
  })

  test('stay at the base, untouched or not, and touched ones are named', async () => {
    writeAt(at('README.md'), 'x')
    expect(await capture()).toMatchObject({ changes: [{ path: 'README.md' }], submodulesKept: [] })
    scene.run(at('mod'), 'clone', '-q', join(scene.root, 'sub'), 'sub')
    scene.run(at('mod/sub'), 'commit', '-q', '--allow-empty', '-m', 'moved')
    expect(await capture()).toMatchObject({
      changes: [{ path: 'README.md' }],
      submodulesKept: ['mod/sub'],
    })
    rmSync(at('mod/sub'), { recursive: true })
    expect(await capture()).toMatchObject({
      changes: [{ path: 'README.md' }],
      submodulesKept: ['mod/sub'],
    })
    mkdirSync(at('mod/sub'))
    writeAt(at('mod/sub/file'), 'x')
    expect(await capture()).toMatchObject({
      changes: [{ path: 'README.md' }],
      submodulesKept: ['mod/sub'],
    })
  })

  test('with a file in the way are refused', async () => {
    rmSync(at('mod'), { recursive: true })
    writeAt(at('mod'), 'file')
    expect(await faultOf(capture())).toMatchObject({ code: 'worker/tree-unusable' })
  })
})

describe('what may not be read', () => {
  // Root may read everything, so the capture runs as somebody else there.
  const uid = process.getuid?.() === 0 ? 65_534 : undefined
  let program: ReturnType<typeof bundleFixture>

  beforeAll(() => {
    program = bundleFixture('capture-tree')
    chmodSync(dirname(program.path), 0o755)
  })
  afterEach(() => giveTo(0))
  afterAll(() => program.remove())

  function giveTo(owner: number): void {
    if (uid !== undefined) execFileSync('chown', ['-R', String(owner), scene.root])
  }

  function captureAsOther(): string {
    giveTo(uid ?? 0)
    const args = [program.path, tree.path, tree.indexPath, tree.storePath, tree.baseOid]
    const env = { PATH: scene.environment['PATH'] }
    return execFileSync(process.execPath, args, { env, uid, encoding: 'utf8' })
  }

  test.each([
    ['a new folder', 'closed', () => mkdirSync(at('closed'))],
    ['a folder of the base', 'lib', () => {}],
    ['a changed file', 'README.md', () => writeAt(at('README.md'), 'changed')],
    ['a new file', 'new.txt', () => writeAt(at('new.txt'), 'new')],
  ])('is refused, not passed over: %s', (_, name, prepare) => {
    prepare()
    chmodSync(at(name), 0)
    const said = captureAsOther()
    expect(said).toContain('worker/tree-unusable')
    expect(said).toContain('Permission denied')
    chmodSync(at(name), 0o755)
    expect(captureAsOther()).toBe(name.includes('.') ? name : '')
  })
})
