import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
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
  RUN_BRANCH,
  writeAt,
} from '../support/git-scene.ts'

const POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n'

describe('a run’s tree', () => {
  let scene: GitScene

  beforeEach(() => {
    scene = makeGitScene({ 'README.md': 'hello\n', 'src/a b.txt': 'a\n' })
  })
  afterEach(() => scene.remove())

  test('holds the base, checked out, with nothing but a git directory added', async () => {
    const tree = await scene.checkOut()
    expect(readdirSync(tree.path).sort()).toEqual(['.git', 'README.md', 'src'])
    expect(readFileSync(join(tree.path, 'src/a b.txt'), 'utf8')).toBe('a\n')
    expect(tree.baseOid).toBe(scene.run(scene.origin, 'rev-parse', 'develop'))
  })

  test('keeps executable bits, links, line ends by attribute, and large file pointers', async () => {
    const other = join(scene.root, 'other')
    writeAt(join(other, 'run.sh'), '#!/bin/sh\n', 0o755)
    symlinkSync('README.md', join(other, 'link'))
    scene.push({
      '.gitattributes': '*.bat eol=crlf\n*.bin filter=lfs -text\n',
      'go.bat': 'echo\n',
      'big.bin': POINTER,
    })
    const { path } = await scene.checkOut()
    expect(lstatSync(join(path, 'run.sh')).mode & 0o111).not.toBe(0)
    expect(lstatSync(join(path, 'README.md')).mode & 0o111).toBe(0)
    expect(readlinkSync(join(path, 'link'))).toBe('README.md')
    expect(readFileSync(join(path, 'go.bat'), 'utf8')).toBe('echo\r\n')
    expect(readFileSync(join(path, 'big.bin'), 'utf8')).toBe(POINTER)
  })

  test('leaves the folders of submodules empty', async () => {
    scene.addSubmodule('lib/sub')
    expect(readdirSync(join((await scene.checkOut()).path, 'lib/sub'))).toEqual([])
  })

  test('lets a worker see a clean branch of its own, its history, and no remote', async () => {
    scene.push({ 'b.txt': 'b' })
    const { path } = await scene.checkOut()
    for (const name of CONTROL_FILES) writeAt(join(path, name), 'control')
    expect(scene.run(path, 'status', '--porcelain=v1', '--branch')).toBe(`## ${RUN_BRANCH}`)
    expect(scene.run(path, 'rev-list', '--count', 'HEAD')).toBe('2')
    expect(scene.run(path, 'remote')).toBe('')
    expect(scene.run(path, 'for-each-ref', '--format=%(refname)')).toBe(`refs/heads/${RUN_BRANCH}`)
  })

  test('lets a harness commit, also where the operator signs everything and has no name', async () => {
    writeAt(
      join(scene.root, 'home/.gitconfig'),
      '[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n',
    )
    const { path } = await scene.checkOut()
    writeAt(join(path, 'new.txt'), 'new')
    scene.run(path, 'add', '-A')
    scene.run(path, 'commit', '-q', '-m', 'mine')
    expect(scene.run(path, 'log', '-1', '--format=%an')).toBe('Caduceus Daemon')
  })

  test('writes nothing of the worker’s into the store', async () => {
    const tree = await scene.checkOut()
    const stored = (): string =>
      scene.run(tree.storePath, 'count-objects', '-v') + scene.run(tree.storePath, 'for-each-ref')
    const before = stored()
    writeAt(join(tree.path, 'new.txt'), 'new')
    scene.run(tree.path, 'add', '-A')
    scene.run(tree.path, 'commit', '-q', '-m', 'mine')
    scene.run(tree.path, 'gc', '-q', '--prune=now')
    expect(stored()).toBe(before)
  })

  test('is left alone when it is whole, and made anew when it is not', async () => {
    const { path, indexPath } = await scene.checkOut()
    writeAt(join(path, 'work.txt'), 'paid for')
    await scene.checkOut()
    expect(existsSync(join(path, 'work.txt'))).toBe(true)
    rmSync(indexPath)
    await scene.checkOut()
    expect(existsSync(join(path, 'work.txt'))).toBe(false)
    expect(existsSync(indexPath)).toBe(true)
  })

  test('is checked out several times from one store', async () => {
    const names = ['one', 'two', 'three', 'four']
    const trees = await Promise.all(names.map(async (name) => scene.checkOut(name)))
    for (const { path } of trees) expect(scene.run(path, 'status', '--porcelain')).toBe('')
  })

  test('is removed with its index, however the worker left it', async () => {
    const { path, indexPath } = await scene.checkOut()
    const outside = join(scene.root, 'outside')
    writeAt(join(outside, 'kept'), '')
    symlinkSync(outside, join(path, 'out'))
    mkdirSync(join(path, 'closed/inner'), { recursive: true })
    chmodSync(join(path, 'closed'), 0)
    writeAt(`${indexPath}.working-1`, '')
    const log = indexPath.replace(/index$/, 'log')
    writeAt(log, '')
    await scene.git.removeTree({ path, indexPath })
    await scene.git.removeTree({ path, indexPath })
    expect([path, indexPath, `${indexPath}.working-1`].filter(existsSync)).toEqual([])
    expect([log, join(outside, 'kept')].filter(existsSync)).toHaveLength(2)
  })
})

describe('a tree that a worker left', () => {
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

    test.each([
      '.GIT/config',
      'a/.Git',
      'a/.gi\u200ct/config',
      'git~1/x',
      '.git./x',
      '.git ::$DATA',
    ])('a name that some file system takes for .git is refused: %s', async (name) => {
      writeAt(at(name), 'x')
      expect(await unusable()).toContain('would be a git directory')
    })

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
      await checkOut({
        '.gitattributes': '*.bin filter=lfs -text\nsecret/** filter=git-crypt\n',
        'a.bin': POINTER,
      })
      writeAt(at('b.bin'), POINTER.replace('size 3', 'size 4'))
      writeAt(at('empty.bin'), '')
      expect(brief(await capture())).toEqual(['added b.bin', 'added empty.bin'])
      writeAt(at('a.bin'), 'the content itself')
      expect(await faultOf(capture())).toMatchObject({
        code: 'git/stored-form',
        details: { path: 'a.bin', filter: 'lfs' },
      })
      writeAt(at('a.bin'), POINTER)
      writeAt(at('secret/key'), 'in clear')
      expect(await faultOf(capture())).toMatchObject({
        code: 'git/stored-form',
        details: { filter: 'git-crypt' },
      })
    })
  })

  describe('what may not be read', () => {
    // Root may read everything, so the capture runs as somebody else there.
    const uid = process.getuid?.() === 0 ? 65_534 : undefined
    let program: ReturnType<typeof bundleFixture>

    beforeAll(() => {
      program = bundleFixture('git-actor')
      chmodSync(dirname(program.path), 0o755)
    })
    afterEach(() => giveTo(0))
    afterAll(() => program.remove())

    function giveTo(owner: number): void {
      if (uid !== undefined) execFileSync('chown', ['-R', String(owner), scene.root])
    }

    function captureAsOther(): string {
      giveTo(uid ?? 0)
      const args = ['capture', tree.path, tree.indexPath, tree.storePath, tree.baseOid]
      const env = { PATH: scene.environment['PATH'] }
      return execFileSync(process.execPath, [program.path, ...args], { env, uid, encoding: 'utf8' })
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
})
