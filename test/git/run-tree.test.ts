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
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { CapturedTree, RunTree, TreeChange } from '../../daemon/core/ports.ts'
import {
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeGitScene,
  RUN_BRANCH,
  writeAt,
} from '../support/git-scene.ts'
import { bundleFixture, waitUntil } from '../support/processes.ts'

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
      program = bundleFixture('daemon-actor')
      chmodSync(dirname(program.path), 0o755)
    })
    afterEach(() => giveTo(0))
    afterAll(() => program.remove())

    function giveTo(owner: number): void {
      if (uid !== undefined) execFileSync('chown', ['-R', String(owner), scene.root])
    }

    function captureAsOther(): string {
      giveTo(uid ?? 0)
      const args = ['capture-tree', tree.path, tree.indexPath, tree.storePath, tree.baseOid]
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

describe('capturing a tree', () => {
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
  const content = ({ treeOid }: CapturedTree, path: string): string =>
    scene.run(tree.storePath, 'cat-file', '-p', `${treeOid}:${path}`)

  describe('the captured tree', () => {
    test('of an untouched tree is the base', async () => {
      const captured = await capture()
      expect(captured).toMatchObject({ changes: [], submodulesKept: [] })
      expect(captured.treeOid).toBe(scene.run(scene.origin, 'rev-parse', 'develop^{tree}'))
    })

    test('has what was added, changed, deleted, and turned into something else', async () => {
      writeAt(at('README.md'), 'hello world\n')
      rmSync(at('lib/a.txt'))
      rmSync(at('lib/b.txt'))
      symlinkSync('../README.md', at('lib/b.txt'))
      writeAt(at('new dir/deep/x'), 'x'.repeat(1000))
      const captured = await capture()
      expect(brief(captured)).toEqual([
        'modified README.md',
        'deleted lib/a.txt',
        'type-changed lib/b.txt',
        'added new dir/deep/x',
      ])
      expect(captured.changes[2]).toMatchObject({
        newMode: '120000',
        linkTarget: '../README.md',
        size: 12,
      })
      expect(captured.changes[3]).toMatchObject({
        oldMode: '000000',
        newMode: '100644',
        linkTarget: null,
        size: 1000,
      })
      expect(content(captured, 'README.md')).toBe('hello world')
    })

    test('is the same however often it is captured, and leaves no file behind', async () => {
      writeAt(at('new.txt'), 'new')
      const before = readdirSync(dirname(tree.indexPath))
      expect(await capture()).toEqual(await capture())
      expect(readdirSync(dirname(tree.indexPath))).toEqual(before)
    })

    test('has a file changed within the second of the checkout, to the same size', async () => {
      // Most builds of git compare whole seconds, so only the index's own time tells such a change.
      await waitUntil('the part of a second', () => Date.now() % 1000 < 100)
      tree = await scene.checkOut('same-second')
      writeFileSync(at('README.md'), 'HELLO\n')
      const second = Math.floor(Date.now() / 1000)
      await waitUntil('the part of a second', () => Date.now() / 1000 > second + 1)
      expect(brief(await capture())).toEqual(['modified README.md'])
    })

    test('has a file whose time was put back', async () => {
      writeFileSync(at('README.md'), 'HELLO\n')
      utimesSync(at('README.md'), 1, 1)
      expect(brief(await capture())).toEqual(['modified README.md'])
    })

    test('has folders that became files, and files that became folders', async () => {
      rmSync(at('lib'), { recursive: true })
      writeAt(at('lib'), 'file')
      rmSync(at('README.md'))
      writeAt(at('README.md/x'), 'x')
      expect(brief(await capture())).toEqual([
        'deleted README.md',
        'added README.md/x',
        'added lib',
        'deleted lib/a.txt',
        'deleted lib/b.txt',
      ])
    })

    test('never follows a link that took the place of a folder', async () => {
      renameSync(at('lib'), join(scene.root, 'outside'))
      symlinkSync(join(scene.root, 'outside'), at('lib'))
      const captured = await capture()
      expect(brief(captured)).toEqual(['added lib', 'deleted lib/a.txt', 'deleted lib/b.txt'])
      expect(captured.changes[0]?.linkTarget).toBe(join(scene.root, 'outside'))
    })

    test('has executable bits', async () => {
      chmodSync(at('README.md'), 0o755)
      expect((await capture()).changes).toMatchObject([
        { path: 'README.md', oldMode: '100644', newMode: '100755' },
      ])
    })

    test('leaves out what .gitignore names, and keeps what the base has in spite of it', async () => {
      await checkOut({ '.gitignore': 'build/\n*.log\n', 'build/kept.txt': 'old\n' })
      writeAt(at('build/kept.txt'), 'new\n')
      writeAt(at('build/other'), '')
      writeAt(at('x.log'), '')
      expect(brief(await capture())).toEqual(['modified build/kept.txt'])
    })

    test('takes names with spaces, newlines, leading hyphens and quotes, and bytes that are no text', async () => {
      const names = [' ', '-rf', 'a\nb', '"q"', 'ü\t', ':(top)x', '#c']
      for (const name of names) writeAt(at(name), name)
      const odd = Buffer.concat([Buffer.from(`${tree.path}/`), Buffer.from([0x66, 0xff, 0xfe])])
      writeFileSync(odd, 'odd')
      const captured = await capture()
      expect(captured.changes.map(({ path }) => path).sort()).toEqual(
        [...names, 'f\\xff\\xfe'].sort(),
      )
      expect(captured.changes.map(({ size }) => size).every((size) => size > 0)).toBe(true)
      const listed = execFileSync('git', [
        '-C',
        tree.storePath,
        'ls-tree',
        '-z',
        '--name-only',
        captured.treeOid,
      ])
      expect(listed.includes(Buffer.from([0x66, 0xff, 0xfe, 0]))).toBe(true)
    })

    test('takes changed and executable files with such names', async () => {
      await checkOut({ 'a\nb': 'one\n', '"q"': 'one\n', ü: 'one\n' })
      writeAt(at('a\nb'), 'two\n')
      writeAt(at('"q"'), 'two\n')
      chmodSync(at('ü'), 0o755)
      expect(brief(await capture())).toEqual(['modified "q"', 'modified a\nb', 'modified ü'])
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
      expect(await capture()).toMatchObject({
        changes: [{ path: 'README.md' }],
        submodulesKept: [],
      })
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

  describe('line ends', () => {
    const ATTRIBUTES = '*.bat text eol=crlf\n*.txt text\n'

    test('come back as they went: an unchanged file is no change', async () => {
      await checkOut({ '.gitattributes': ATTRIBUTES, 'go.bat': 'echo\n' })
      writeFileSync(at('go.bat'), 'echo\r\n')
      expect(brief(await capture())).toEqual([])
      writeFileSync(at('go.bat'), 'echo two\r\n')
      const captured = await capture()
      expect(brief(captured)).toEqual(['modified go.bat'])
      expect(content(captured, 'go.bat')).toBe('echo two')
    })

    test('of a base that breaks its own attributes are not mended in files nobody changed', async () => {
      const other = join(scene.root, 'other')
      // Committed before the attribute, so the blob keeps its carriage returns.
      scene.run(
        other,
        'checkout',
        '-q',
        '--detach',
        scene.push({ 'old.txt': 'one\r\ntwo\r\n' }, 'crlf'),
      )
      writeAt(join(other, '.gitattributes'), ATTRIBUTES)
      scene.run(other, 'add', '.gitattributes')
      scene.run(other, 'commit', '-q', '-m', 'attributes')
      scene.run(other, 'push', '-q', 'origin', 'HEAD:crlf')
      scene.run(other, 'checkout', '-q', '-f', 'develop')
      tree = await scene.checkOut('crlf', 'crlf')
      utimesSync(at('old.txt'), 1, 1)
      writeAt(at('README.md'), 'changed\n')
      expect(brief(await capture())).toEqual(['modified README.md'])
      chmodSync(at('old.txt'), 0o755)
      expect((await capture()).changes).toMatchObject([
        { path: 'README.md' },
        { path: 'old.txt', newMode: '100755', size: 10 },
      ])
    })
  })

  describe('control files', () => {
    test('never reach the tree; one that the base has is restored', async () => {
      await checkOut({ 'worker-result.json': 'of the project\n', 'x-worker-result.json': 'old\n' })
      for (const name of CONTROL_FILES) writeAt(at(name), 'control')
      writeAt(at('x-worker-result.json'), 'new\n')
      writeAt(at('sub/worker-result.json'), 'deep\n')
      const captured = await capture()
      expect(brief(captured)).toEqual([
        'added sub/worker-result.json',
        'modified x-worker-result.json',
      ])
      expect(content(captured, 'worker-result.json')).toBe('of the project')
      rmSync(at('worker-result.json'))
      expect(await capture()).toEqual(captured)
    })
  })

  describe('large changes', () => {
    test('2,000 files of 5 MB among 6,000 are captured whole', async () => {
      const names = Array.from({ length: 6_000 }, (_, n) => `d${n % 60}/f${n}`)
      const files = names.map((name, n) => `M 100644 inline ${name}\ndata ${`${n}`.length}\n${n}\n`)
      const commit = 'commit refs/heads/large\ncommitter Op <op@example.org> 1 +0000\ndata 0\n'
      execFileSync('git', ['fast-import', '--quiet'], {
        cwd: scene.origin,
        input: commit + files.join(''),
      })
      tree = await scene.checkOut('large', 'large')
      for (const name of names.slice(0, 2_000)) writeAt(at(name), name.padEnd(2_600, 'x'))
      const captured = await capture()
      expect(captured.changes).toHaveLength(2_000)
      expect(captured.changes.reduce((sum, { size }) => sum + size, 0)).toBe(5_200_000)
      const { storePath, baseOid } = tree
      const text = await scene.git.describeDifference(storePath, baseOid, captured.treeOid, 100_000)
      expect(Buffer.byteLength(text)).toBe(100_000)
      expect(text).toContain('[cut at 100000 bytes]')
    })
  })
})
