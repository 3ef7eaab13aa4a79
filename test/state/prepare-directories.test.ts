import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { prepareDirectories } from '../../daemon/state/prepare-directories.ts'

describe('which directories are prepared', () => {
  let root: string
  let stateDir: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'prepare-'))
    stateDir = join(root, 'deep', 'state')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const refusal = (path: string, reason: RegExp): object =>
    expect.objectContaining({
      code: 'state/directory-refused',
      details: { path, reason: expect.stringMatching(reason) },
    })
  const thrown = (): unknown => {
    try {
      prepareDirectories(stateDir)
    } catch (error) {
      return error
    }
    return null
  }

  test('the state directory and what lies in it are made for the owner only', () => {
    prepareDirectories(stateDir)
    expect(readdirSync(stateDir).sort()).toEqual(['cache', 'claims', 'repos', 'runs', 'worktrees'])
    for (const name of ['.', ...readdirSync(stateDir)]) {
      expect(statSync(join(stateDir, name)).mode & 0o777).toBe(0o700)
    }
  })

  test('a second time changes nothing', () => {
    prepareDirectories(stateDir)
    chmodSync(stateDir, 0o750)
    writeFileSync(join(stateDir, 'runs', 'kept'), '')
    prepareDirectories(stateDir)
    expect(statSync(stateDir).mode & 0o777).toBe(0o750)
    expect(existsSync(join(stateDir, 'runs', 'kept'))).toBe(true)
  })

  test('a symbolic link is refused, wherever it leads, and nothing is made behind it', () => {
    const target = join(root, 'target')
    mkdirSync(join(root, 'deep'))
    symlinkSync(target, stateDir)
    expect(thrown()).toEqual(refusal(stateDir, /symbolic link/))
    mkdirSync(target)
    expect(thrown()).toEqual(refusal(stateDir, /symbolic link/))
    expect(readdirSync(target)).toEqual([])
    stateDir = `${stateDir}/`
    expect(thrown()).toEqual(refusal(stateDir.slice(0, -1), /symbolic link/))
  })

  test('a link or file in the place of a sub-directory is refused', () => {
    mkdirSync(stateDir, { recursive: true })
    symlinkSync(root, join(stateDir, 'claims'))
    expect(thrown()).toEqual(refusal(join(stateDir, 'claims'), /symbolic link/))
    rmSync(join(stateDir, 'claims'))
    writeFileSync(join(stateDir, 'claims'), '')
    expect(thrown()).toEqual(refusal(join(stateDir, 'claims'), /not a directory/))
  })

  test('a directory of another user is refused, and nothing is made in it', () => {
    const isRoot = process.geteuid?.() === 0
    if (isRoot) {
      mkdirSync(stateDir, { recursive: true })
      chownSync(stateDir, 65_534, 65_534)
    } else {
      stateDir = '/'
    }
    expect(thrown()).toEqual(refusal(stateDir, isRoot ? /with id 65534/ : /with id 0/))
    if (isRoot) expect(readdirSync(stateDir)).toEqual([])
  })
})
