import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import {
  appendLine,
  closeDescriptor,
  copyFile,
  ensureDirectory,
  fileStatus,
  isDirectory,
  isExecutableFile,
  listDirectory,
  openToAppend,
  readFileBounded,
  removeFile,
  removePath,
  writeFileAtomic,
} from '../../daemon/sys/files.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'

const NOBODY = 65534

let program: ReturnType<typeof bundleFixture>
let root: string
let path: string

beforeAll(() => {
  program = bundleFixture('sys-actor')
})

afterAll(() => program.remove())

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'files-'))
  path = join(root, 'file')
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

const modeOf = (file: string): number => statSync(file).mode & 0o777
const fifoAt = (file: string): void => void execFileSync('mkfifo', [file])
const ioFault = (reason: string): unknown =>
  expect.objectContaining({ code: 'sys/io', details: expect.objectContaining({ reason }) })

describe('reading', () => {
  test('a file up to the bound is read whole, one byte more is refused', () => {
    writeFileSync(path, 'x'.repeat(10_000))
    expect(readFileBounded(path, 10_000)?.toString()).toBe('x'.repeat(10_000))
    expect(() => readFileBounded(path, 9_999)).toThrow(ioFault('too large'))
    writeFileSync(path, '')
    expect(readFileBounded(path, 0)?.length).toBe(0)
  })

  test('absence is a value', () => {
    expect(readFileBounded(path, 10)).toBeNull()
    writeFileSync(path, '')
    expect(readFileBounded(join(path, 'below'), 10)).toBeNull()
  })

  test.each([
    ['a folder', 'not a regular file', (at: string) => mkdirSync(at)],
    ['a pipe', 'not a regular file', fifoAt],
    ['a link', 'a symbolic link', (at: string) => symlinkSync('/etc/hostname', at)],
    ['a dangling link', 'a symbolic link', (at: string) => symlinkSync('nowhere', at)],
  ])('%s is refused at once', (_, reason, make) => {
    make(path)
    expect(() => readFileBounded(path, 100)).toThrow(ioFault(reason))
  })

  test('a device is refused, and a sparse giant is not read', () => {
    expect(() => readFileBounded('/dev/zero', 100)).toThrow(ioFault('not a regular file'))
    writeFileSync(path, '')
    truncateSync(path, 2 ** 40)
    expect(() => readFileBounded(path, 1024 ** 2)).toThrow(ioFault('too large'))
  })

  test('files that tell no size are read to their end, within the bound', () => {
    const text = readFileBounded(`/proc/${process.pid}/status`, 100_000)?.toString()
    expect(text).toContain('Threads:')
    expect(() => readFileBounded(`/proc/${process.pid}/status`, 100)).toThrow(ioFault('too large'))
  })
})

describe('replacing', () => {
  test('content and permissions are exactly those given, whatever was there', () => {
    writeFileAtomic(path, 'first')
    expect(modeOf(path)).toBe(0o600)
    chmodSync(path, 0o400)
    writeFileAtomic(path, new Uint8Array([104, 105]), 0o755)
    expect(readFileSync(path, 'utf8')).toBe('hi')
    expect(modeOf(path)).toBe(0o755)
    expect(readdirSync(root)).toEqual(['file'])
  })

  test('a link at the path is refused and its target untouched', () => {
    const target = join(root, 'target')
    writeFileSync(target, 'kept')
    symlinkSync(target, path)
    expect(() => writeFileAtomic(path, 'new')).toThrow(ioFault('a symbolic link'))
    expect(() => copyFile(target, path)).toThrow(ioFault('a symbolic link'))
    expect(readFileSync(target, 'utf8')).toBe('kept')
  })

  test('a folder or a pipe at the path is refused', () => {
    mkdirSync(path)
    expect(() => writeFileAtomic(path, 'new')).toThrow(ioFault('not a regular file'))
    fifoAt(join(root, 'pipe'))
    expect(() => writeFileAtomic(join(root, 'pipe'), '')).toThrow(ioFault('not a regular file'))
  })

  test('a failed replacement leaves the old content and no temporary file', () => {
    writeFileAtomic(path, 'old')
    expect(() => writeFileAtomic(join(root, 'absent', 'file'), 'x')).toThrow('ENOENT')
    expect(() => writeFileAtomic(join(root, 'n'.repeat(250)), 'x')).toThrow('ENAMETOOLONG')
    // A limit on the size of files cuts the write in the middle, as a full disk does.
    const argv = ['-c', 'ulimit -f 64 && exec "$@"', 'sh', process.execPath, program.path]
    const limited = spawnSync('sh', [...argv, 'write-once', path, '300000'])
    expect(limited.stdout.toString()).toContain('EFBIG')
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(root)).toEqual(['file'])
  })

  test('a copy has the bytes and permissions of its source', () => {
    writeFileSync(path, 'source')
    chmodSync(path, 0o640)
    const copy = join(root, 'copy')
    copyFile(path, copy)
    writeFileSync(path, 'changed')
    copyFile(path, copy)
    expect(readFileSync(copy, 'utf8')).toBe('changed')
    expect(modeOf(copy)).toBe(0o640)
    expect(() => copyFile(join(root, 'absent'), copy)).toThrow('ENOENT')
    expect(readdirSync(root).sort()).toEqual(['copy', 'file'])
  })
})

describe('folders', () => {
  test('missing folders are made with the mode, present ones kept', () => {
    const deep = join(root, 'a', 'b', 'c')
    ensureDirectory(deep)
    expect(modeOf(deep)).toBe(0o700)
    expect(modeOf(join(root, 'a'))).toBe(0o700)
    chmodSync(deep, 0o750)
    ensureDirectory(`${deep}/`)
    expect(modeOf(deep)).toBe(0o750)
  })

  test('a link or a file in the place of a folder is refused', () => {
    symlinkSync(root, path)
    expect(() => ensureDirectory(path)).toThrow(ioFault('a symbolic link'))
    writeFileSync(join(root, 'plain'), '')
    expect(() => ensureDirectory(join(root, 'plain'))).toThrow('EEXIST')
  })

  test('names are listed in order; an absent folder has none', () => {
    for (const name of ['b', 'a', 'c']) writeFileSync(join(root, name), '')
    expect(listDirectory(root)).toEqual(['a', 'b', 'c'])
    expect(listDirectory(path)).toEqual([])
    expect(() => listDirectory(join(root, 'a'))).toThrow('ENOTDIR')
  })
})

describe('looking', () => {
  test('the kind of each thing is told without following links', () => {
    writeFileSync(path, 'four')
    symlinkSync(path, join(root, 'link'))
    fifoAt(join(root, 'pipe'))
    expect(fileStatus(path)).toMatchObject({ kind: 'file', size: 4, mode: modeOf(path) })
    expect(fileStatus(root)?.kind).toBe('directory')
    expect(fileStatus(join(root, 'link'))?.kind).toBe('symlink')
    expect(fileStatus(join(root, 'pipe'))?.kind).toBe('other')
    expect(fileStatus(join(path, 'below'))).toBeNull()
    expect(fileStatus(join(root, 'absent'))).toBeNull()
  })

  test('only a regular file with permission is executable', () => {
    expect(isExecutableFile(process.execPath)).toBe(true)
    writeFileSync(path, '', { mode: 0o644 })
    expect(isExecutableFile(path)).toBe(false)
    expect(isExecutableFile(root)).toBe(false)
    expect(isExecutableFile(join(root, 'absent'))).toBe(false)
    expect([isDirectory(root), isDirectory(path), isDirectory(join(root, 'x'))]).toEqual([
      true,
      false,
      false,
    ])
  })
})

describe('appending', () => {
  test('lines are added to a private file; a link is refused', () => {
    appendLine(path, 'one')
    appendLine(path, 'two')
    const fd = openToAppend(path)
    writeFileSync(fd, 'three\n')
    closeDescriptor(fd)
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n')
    expect(modeOf(path)).toBe(0o600)
    symlinkSync(path, join(root, 'link'))
    expect(() => appendLine(join(root, 'link'), 'x')).toThrow('ELOOP')
  })
})

describe('removing', () => {
  test('absent things are removed already', async () => {
    removeFile(path)
    await removePath(path)
    writeFileSync(path, '')
    removeFile(path)
    expect(existsSync(path)).toBe(false)
  })

  test('a link is removed, never what it leads to', async () => {
    const outside = join(root, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'kept'), '')
    const tree = join(root, 'tree')
    mkdirSync(tree)
    symlinkSync(outside, join(tree, 'link'))
    await removePath(tree)
    symlinkSync(outside, path)
    await removePath(path)
    expect([existsSync(tree), existsSync(path)]).toEqual([false, false])
    expect(readdirSync(outside)).toEqual(['kept'])
  })

  test('folders nobody may write, and a nest too deep to name, are removed by their owner', () => {
    // Permissions do not bind root, so the whole happens as another user.
    chmodSync(root, 0o777)
    const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    const { stdout } = spawnSync(
      process.execPath,
      [program.path, 'remove-stubborn', join(root, 'tree')],
      user,
    )
    expect(stdout.toString()).toBe('planted\nremoved\n')
    expect(readdirSync(root)).toEqual([])
  })
})
