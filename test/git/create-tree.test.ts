import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  CONTROL_FILES,
  type GitScene,
  makeGitScene,
  RUN_BRANCH,
  writeAt,
} from '../support/git-scene.ts'

const POINTER = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n'

let scene: GitScene

beforeEach(() => {
  scene = makeGitScene({ 'README.md': 'hello\n', 'src/a b.txt': 'a\n' })
})
afterEach(() => scene.remove())

describe('a run’s tree', () => {
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
    const sub = join(scene.root, 'sub')
    scene.run(scene.root, 'init', '-q', sub)
    scene.run(sub, 'commit', '-q', '--allow-empty', '-m', 'sub')
    scene.run(
      join(scene.root, 'other'),
      '-c',
      'protocol.file.allow=always',
      'submodule',
      '--quiet',
      'add',
      sub,
      'lib/sub',
    )
    scene.push({})
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
    const before =
      scene.run(tree.storePath, 'count-objects', '-v') + scene.run(tree.storePath, 'for-each-ref')
    writeAt(join(tree.path, 'new.txt'), 'new')
    scene.run(tree.path, 'add', '-A')
    scene.run(tree.path, 'commit', '-q', '-m', 'mine')
    scene.run(tree.path, 'gc', '-q', '--prune=now')
    expect(
      scene.run(tree.storePath, 'count-objects', '-v') + scene.run(tree.storePath, 'for-each-ref'),
    ).toBe(before)
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
