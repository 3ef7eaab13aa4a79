import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Git } from '../../daemon/core/ports.ts'
import { openGit } from '../../daemon/git/open-git.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { faultOf, writeAt } from '../support/git-scene.ts'

const REPOSITORY = { owner: 'Acme', name: 'widgets' } as const
const RIGHT = 'https://github.com/acme/widgets.git'

let root: string
let clone: string
let environment: Record<string, string>

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'clone of '))
  clone = join(root, 'work/Acme/widgets')
  environment = { PATH: process.env['PATH'] ?? '', HOME: join(root, 'home') }
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** With `noGit` the adapter has no git to ask, so what it answers it read by itself. */
function open(noGit = false, apiBase = 'https://api.github.com'): Git {
  const env = noGit ? { ...environment, PATH: '/nonexistent' } : environment
  return openGit(
    { clock: systemClock, environment: env },
    {
      workdirBase: join(root, 'work'),
      storageRoot: join(root, 'state'),
      apiBase,
      timeoutMs: 20_000,
      controlFiles: [],
    },
  )
}

function run(...args: readonly string[]): void {
  execFileSync('git', args, { env: { ...environment, GIT_CONFIG_NOSYSTEM: '1' }, stdio: 'ignore' })
}

function makeClone(url: string | null = RIGHT): void {
  rmSync(clone, { recursive: true, force: true })
  run('init', '-q', clone)
  if (url !== null) run('-C', clone, 'remote', 'add', 'origin', url)
}

function setGlobal(text: string): void {
  writeAt(join(root, 'home/.gitconfig'), text)
}

describe('a clone', () => {
  test('with the right origin is proved without starting git', async () => {
    makeClone()
    expect(await open(true).inspectClone(REPOSITORY)).toMatchObject({
      path: clone,
      originUrl: RIGHT,
      shallowOrPartial: false,
    })
  })

  test('may be dirty, have other remotes and branches, and still needs no git', async () => {
    makeClone()
    run('-C', clone, 'remote', 'add', 'fork', 'https://github.com/other/widgets')
    run('-C', clone, 'config', 'branch.main.remote', 'origin')
    writeAt(join(clone, 'dirty.txt'), '')
    writeAt(join(clone, '.git/index.lock'), '')
    expect(await open(true).inspectClone(REPOSITORY)).toMatchObject({ path: clone })
  })

  test('may be reached through a link', async () => {
    makeClone()
    mkdirSync(join(root, 'linked'))
    symlinkSync(join(root, 'work/Acme'), join(root, 'linked/Acme'))
    const git = openGit(
      { clock: systemClock, environment },
      {
        workdirBase: join(root, 'linked'),
        storageRoot: root,
        apiBase: 'https://api.github.com',
        timeoutMs: 20_000,
        controlFiles: [],
      },
    )
    expect(await git.inspectClone(REPOSITORY)).toMatchObject({
      path: join(root, 'linked/Acme/widgets'),
    })
  })

  test('that is missing, also as a dangling link, says how to get it', async () => {
    rmSync(clone, { recursive: true, force: true })
    const missing = {
      code: 'clone/missing',
      details: { repo: 'Acme/widgets', path: clone, url: 'https://github.com/Acme/widgets.git' },
      next: `Clone it there: git clone https://github.com/Acme/widgets.git '${clone}'`,
    }
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject(missing)
    mkdirSync(join(root, 'work/Acme'), { recursive: true })
    symlinkSync('/nonexistent', clone)
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject(missing)
    rmSync(clone)
  })

  test('is not looked for in the folders above', async () => {
    makeClone()
    rmSync(join(clone, '.git'), { recursive: true })
    run('init', '-q', join(root, 'work'))
    run('-C', join(root, 'work'), 'remote', 'add', 'origin', RIGHT)
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/not-a-repository',
    })
    rmSync(join(root, 'work/.git'), { recursive: true })
  })

  test('that is broken, or a file, is no repository', async () => {
    makeClone()
    rmSync(join(clone, '.git/HEAD'))
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/not-a-repository',
    })
    rmSync(clone, { recursive: true })
    writeAt(clone, '')
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/not-a-repository',
    })
    rmSync(clone)
  })

  test('without an origin, or with a wrong one, says how to mend it and shows no secret', async () => {
    makeClone(null)
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/no-origin',
    })
    makeClone('https://me:pa55word@github.com.attacker.example/acme/widgets')
    const found = await faultOf(open().inspectClone(REPOSITORY))
    expect(found).toMatchObject({
      code: 'clone/wrong-origin',
      details: { found: 'https://github.com.attacker.example/acme/widgets', wanted: 'github.com' },
      next: `Correct it: git -C '${clone}' remote set-url origin https://github.com/Acme/widgets.git`,
    })
    expect(JSON.stringify(found) + found?.message).not.toContain('pa55word')
  })

  test('must be of the host the API belongs to', async () => {
    makeClone('git@git.example.com:acme/widgets.git')
    expect(
      await open(true, 'https://git.example.com/api/v3').inspectClone(REPOSITORY),
    ).toMatchObject({ path: clone })
    const found = await faultOf(open().inspectClone(REPOSITORY))
    expect(found).toMatchObject({ code: 'clone/wrong-origin' })
  })

  test('is known to be shallow or partial', async () => {
    makeClone()
    writeAt(join(clone, '.git/shallow'), '')
    expect(await open(true).inspectClone(REPOSITORY)).toMatchObject({ shallowOrPartial: true })
    makeClone()
    run('-C', clone, 'config', 'remote.origin.promisor', 'true')
    expect(await open(true).inspectClone(REPOSITORY)).toMatchObject({ shallowOrPartial: true })
  })
})

describe('what only git can say', () => {
  test('an origin in an included file is found', async () => {
    makeClone(null)
    writeAt(join(clone, '.git/more'), `[remote "origin"]\n\turl = ${RIGHT}\n`)
    run('-C', clone, 'config', 'include.path', 'more')
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
  })

  test('an included file that names another origin first is not overlooked', async () => {
    makeClone(null)
    writeAt(
      join(clone, '.git/more'),
      '[remote "origin"]\n\turl = https://github.com/evil/widgets\n',
    )
    run('-C', clone, 'config', 'include.path', 'more')
    run('-C', clone, 'config', '--add', 'remote.origin.url', RIGHT)
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/wrong-origin',
    })
  })

  test('a rewritten URL counts as it is written and as it is used', async () => {
    setGlobal('[url "https://github.com/"]\n\tinsteadOf = gh:\n')
    makeClone('gh:acme/widgets')
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: 'gh:acme/widgets' })
    setGlobal('')
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/wrong-origin',
    })
    setGlobal(`[url "${root}/mirror/"]\n\tinsteadOf = https://github.com/\n`)
    makeClone()
    expect(await open(true).inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
    setGlobal('')
  })

  test('a URL for pushing must be the same repository', async () => {
    makeClone()
    run('-C', clone, 'remote', 'set-url', '--push', 'origin', 'git@github.com:acme/widgets.git')
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
    run('-C', clone, 'remote', 'set-url', '--push', 'origin', 'git@github.com:me/widgets.git')
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'clone/wrong-origin',
      details: { found: 'git@github.com:me/widgets.git' },
    })
  })

  test('linked worktrees, bare clones and clones with SHA-256 are read right', async () => {
    const main = join(root, 'main')
    run('init', '-q', main)
    run('-C', main, 'remote', 'add', 'origin', RIGHT)
    run(
      '-C',
      main,
      '-c',
      'user.name=x',
      '-c',
      'user.email=x',
      'commit',
      '-q',
      '--allow-empty',
      '-m',
      'x',
    )
    rmSync(clone, { recursive: true, force: true })
    run('-C', main, 'worktree', 'add', '-q', clone)
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
    rmSync(clone, { recursive: true })
    run('clone', '-q', '--bare', main, clone)
    run('-C', clone, 'remote', 'set-url', 'origin', RIGHT)
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
    rmSync(clone, { recursive: true })
    run('init', '-q', '--object-format=sha256', clone)
    run('-C', clone, 'remote', 'add', 'origin', RIGHT)
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
  })

  test('a clone owned by somebody else is read, without touching safe.directory (C31)', async () => {
    makeClone()
    run('-C', clone, 'config', 'include.path', 'nowhere')
    if (process.getuid?.() === 0) chownSync(join(clone, '.git'), 12_345, 12_345)
    expect(await open().inspectClone(REPOSITORY)).toMatchObject({ originUrl: RIGHT })
  })

  test('a configuration git cannot read is told in git’s words', async () => {
    makeClone()
    writeFileSync(join(clone, '.git/config'), '[remote "origin"\n')
    expect(await faultOf(open().inspectClone(REPOSITORY))).toMatchObject({
      code: 'git/failed',
      message: expect.stringContaining('bad config line'),
    })
  })

  test('a git that is missing or too old is said so', async () => {
    makeClone('gh:acme/widgets')
    expect(await faultOf(open(true).inspectClone(REPOSITORY))).toMatchObject({
      code: 'sys/spawn-failed',
    })
    writeAt(join(root, 'old/git'), '#!/bin/sh\necho git version 2.25.1\n', 0o755)
    const git = openGit(
      { clock: systemClock, environment: { ...environment, PATH: join(root, 'old') } },
      {
        workdirBase: join(root, 'work'),
        storageRoot: root,
        apiBase: 'https://api.github.com',
        timeoutMs: 20_000,
        controlFiles: [],
      },
    )
    expect(await faultOf(git.inspectClone(REPOSITORY))).toMatchObject({
      code: 'git/too-old',
      details: { found: '2.25.1' },
    })
  })
})
