import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { CapturedTree, RunTree, TreeChange } from '../../daemon/core/ports.ts'
import {
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeGitScene,
  writeAt,
} from '../support/git-scene.ts'
import { waitUntil } from '../support/wait-until.ts'

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
