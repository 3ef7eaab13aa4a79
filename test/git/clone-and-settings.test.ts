import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Git } from '../../daemon/core/ports.ts'
import { parseSimpleConfig } from '../../daemon/git/inspect-clone.ts'
import { openGit } from '../../daemon/git/open-git.ts'
import {
  cloneUrl,
  originHost,
  provesRepository,
  showUrl,
  splitCredentials,
} from '../../daemon/git/origin.ts'
import { PROFILES, settingsEnvironment } from '../../daemon/git/profile.ts'
import { parseSettings } from '../../daemon/git/remote-access.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { faultOf, writeAt } from '../support/git-scene.ts'

describe('inspecting a clone', () => {
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
    execFileSync('git', args, {
      env: { ...environment, GIT_CONFIG_NOSYSTEM: '1' },
      stdio: 'ignore',
    })
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
        details: {
          found: 'https://github.com.attacker.example/acme/widgets',
          wanted: 'github.com',
        },
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
})

describe('settings of git', () => {
  const REPOSITORY = { owner: 'Acme', name: 'widgets.js' } as const
  const PUBLIC = 'https://api.github.com'

  const proves = (url: string, apiBase = PUBLIC): boolean =>
    provesRepository(url, REPOSITORY, apiBase)

  describe('an origin URL', () => {
    test.each([
      'https://github.com/acme/widgets.js.git',
      'https://github.com/acme/widgets.js',
      'https://github.com/ACME/Widgets.JS/',
      'https://GitHub.com/acme/widgets.js',
      'https://me@github.com/acme/widgets.js.git',
      'https://me:p%40ss@github.com:443/acme/widgets.js.git',
      'git@github.com:acme/widgets.js.git',
      'git@github.com:/acme/widgets.js.git',
      'github.com:acme/widgets.js',
      'ssh://git@github.com/acme/widgets.js.git',
      'ssh://git@github.com:22/acme/widgets.js.git',
      'ssh://git@ssh.github.com:443/acme/widgets.js.git',
      'git+ssh://git@github.com/acme/widgets.js',
      'git://github.com/acme/widgets.js.git',
    ])('is the repository: %s', (url) => {
      expect(proves(url)).toBe(true)
    })

    test.each([
      'https://github.com.attacker.example/acme/widgets.js.git',
      'https://github.com-attacker.example/acme/widgets.js',
      'git@github.com-attacker:acme/widgets.js.git',
      'git@github.com.attacker:acme/widgets.js.git',
      'git@work-github:acme/widgets.js.git',
      'https://github.com@attacker.example/acme/widgets.js',
      'https://github.com:443@attacker.example/acme/widgets.js',
      'https://me@attacker.example@github.com/acme/widgets.js',
      'https://github.com\\@attacker.example/acme/widgets.js',
      'https://attacker.example#@github.com/acme/widgets.js',
      'https://attacker.example?@github.com/acme/widgets.js',
      'https://attacker.example/github.com/acme/widgets.js',
      'https://github.com/acme/widgets.js?x',
      'https://github%2ecom/acme/widgets.js',
      'https://gıthub.com/acme/widgets.js',
      'https://ｇithub.com/acme/widgets.js',
      'https://github.com./acme/widgets.js',
      ' https://github.com/acme/widgets.js',
      'https://github.com/acme/widgets.js\n',
      'http://github.com/acme/widgets.js',
      'file://github.com/acme/widgets.js',
      'ext::sh -c github.com:acme/widgets.js',
      'https://github.com/acme/widgets',
      'https://github.com/acme/widgets.js.git.git',
      'https://github.com/acme/other/../widgets.js',
      'https://github.com/x/acme/widgets.js',
      'https://github.com//acme/widgets.js',
      'https://github.com/acme%2Fwidgets.js',
      'https://github.com',
      '/srv/acme/widgets.js',
      'acme/widgets.js',
      '-oProxyCommand=x:acme/widgets.js',
      '',
    ])('is not proved to be the repository: %s', (url) => {
      expect(proves(url)).toBe(false)
    })

    test('belongs to the host of its API', () => {
      const enterprise = 'https://git.example.com/api/v3'
      expect(proves('https://git.example.com/acme/widgets.js', enterprise)).toBe(true)
      expect(proves('git@git.example.com:acme/widgets.js', enterprise)).toBe(true)
      expect(proves('https://github.com/acme/widgets.js', enterprise)).toBe(false)
      expect(proves('https://git.example.com.evil/acme/widgets.js', enterprise)).toBe(false)
      expect(
        proves('https://tenant.ghe.com/acme/widgets.js', 'https://api.tenant.ghe.com/api/v3'),
      ).toBe(true)
    })

    test.each(['http://127.0.0.1:8080', 'http://localhost:1/api', 'http://[::1]:1'])(
      'of any kind is right at a loopback API when it ends in the repository: %s',
      (apiBase) => {
        for (const url of [
          '/tmp/a b/acme/widgets.js.git',
          'file:///tmp/acme/widgets.js',
          'http://127.0.0.1:8080/acme/widgets.js.git',
          '../hub/Acme/widgets.js',
          'git@anywhere:acme/widgets.js',
        ]) {
          expect([url, proves(url, apiBase)]).toEqual([url, true])
        }
        for (const url of [
          '/tmp/acme/other',
          '/tmp/acme-widgets.js',
          'widgets.js',
          '/tmp/acme/widgets.js/sub',
        ]) {
          expect([url, proves(url, apiBase)]).toEqual([url, false])
        }
      },
    )
  })

  describe('what the operator is shown', () => {
    test('is where to clone from', () => {
      expect(cloneUrl(REPOSITORY, PUBLIC)).toBe('https://github.com/Acme/widgets.js.git')
      expect(cloneUrl(REPOSITORY, 'https://git.example.com:8443/api/v3')).toBe(
        'https://git.example.com:8443/Acme/widgets.js.git',
      )
      expect(cloneUrl(REPOSITORY, 'http://127.0.0.1:80/')).toBe(
        'http://127.0.0.1/Acme/widgets.js.git',
      )
      expect(originHost(PUBLIC)).toBe('github.com')
    })

    test('never has a user, a password, a query or a control character in it', () => {
      expect(showUrl('https://me:p@ss@host/o/r?token=x')).toBe('https://host/o/r')
      expect(showUrl('git@host:o/r')).toBe('git@host:o/r')
      expect(showUrl('a\u001b[31m')).toBe('a?[31m')
      expect(showUrl('x'.repeat(500))).toHaveLength(201)
    })
  })

  describe('credentials in a URL', () => {
    test('become a header, so that no argument shows them', () => {
      const split = splitCredentials('https://me:p%40ss@github.com/o/r')
      expect(split).toEqual({
        url: 'https://github.com/o/r',
        header: `Authorization: Basic ${Buffer.from('me:p@ss').toString('base64')}`,
        secret: 'p%40ss',
      })
    })

    test('are found in place of the user too', () => {
      const token = 'ghp'.concat('_', 'a'.repeat(36))
      expect(splitCredentials(`https://${token}@github.com/o/r`)).toMatchObject({
        url: 'https://github.com/o/r',
        secret: token,
      })
    })

    test.each([
      'https://github.com/o/r',
      'https://me@github.com/o/r',
      'ssh://git:x@github.com/o/r',
      'git@github.com:o/r',
      '/a:b@c',
    ])('are left where there is no password: %s', (url) => {
      expect(splitCredentials(url)).toEqual({ url, header: null, secret: null })
    })
  })

  const OPERATOR = {
    PATH: '/bin',
    HOME: '/home/op',
    SSH_AUTH_SOCK: '/agent',
    https_proxy: 'http://proxy',
    GIT_SSH_COMMAND: 'ssh -v',
    GIT_SSL_CAINFO: '/ca',
    GIT_CONFIG_GLOBAL: '/home/op/other.gitconfig',
    GIT_DIR: '/elsewhere',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.sshCommand',
    GIT_CONFIG_VALUE_0: 'x',
    GIT_CONFIG_PARAMETERS: "'core.sshCommand'='x'",
    GIT_TRACE: '1',
    GITHUB_TOKEN: 'a',
    GH_TOKEN: 'b',
    CADUCEUS_GITHUB_TOKEN: 'c',
  } as const

  describe('the environment of git', () => {
    test('on a tree has a path and no home, no configuration and nothing of the operator’s', () => {
      const env = PROFILES.tree.environment(OPERATOR)
      expect(env).toMatchObject({
        PATH: '/bin',
        HOME: '/nonexistent',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_SYSTEM: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        LC_ALL: 'C',
      })
      for (const name of [
        'SSH_AUTH_SOCK',
        'https_proxy',
        'GIT_SSH_COMMAND',
        'GIT_DIR',
        'GITHUB_TOKEN',
      ]) {
        expect(env).not.toHaveProperty(name)
      }
    })

    test.each(['network', 'operator'] as const)(
      'in the %s profile reaches servers as the operator does, without tokens',
      (name) => {
        const env = PROFILES[name].environment(OPERATOR)
        expect(env).toMatchObject({
          HOME: '/home/op',
          SSH_AUTH_SOCK: '/agent',
          https_proxy: 'http://proxy',
          GIT_SSL_CAINFO: '/ca',
          GIT_TERMINAL_PROMPT: '0',
          GCM_INTERACTIVE: 'never',
          SSH_ASKPASS_REQUIRE: 'never',
          GIT_CONFIG_GLOBAL: name === 'network' ? '/dev/null' : '/home/op/other.gitconfig',
        })
        for (const gone of [
          'GIT_DIR',
          'GIT_CONFIG_COUNT',
          'GIT_TRACE',
          'GITHUB_TOKEN',
          'GH_TOKEN',
          'CADUCEUS_GITHUB_TOKEN',
        ]) {
          expect(env).not.toHaveProperty(gone)
        }
      },
    )

    test.each(['tree', 'network', 'operator'] as const)(
      'in the %s profile holds no settings of its own, and objects are what their ids say',
      (name) => {
        const env = PROFILES[name].environment(OPERATOR)
        expect(Object.keys(env).filter((key) => /^GIT_CONFIG_[CKVP]/.test(key))).toEqual([])
        expect(env).toMatchObject({ GIT_NO_REPLACE_OBJECTS: '1' })
      },
    )

    test('carries settings in order, also repeated ones', () => {
      expect(
        settingsEnvironment([
          ['a.b', '1'],
          ['a.b', ''],
        ]),
      ).toEqual({
        GIT_CONFIG_COUNT: '2',
        GIT_CONFIG_KEY_0: 'a.b',
        GIT_CONFIG_VALUE_0: '1',
        GIT_CONFIG_KEY_1: 'a.b',
        GIT_CONFIG_VALUE_1: '',
      })
      expect(settingsEnvironment([])).toEqual({})
    })

    test('gets settings as git prints them', () => {
      expect(parseSettings('http.x.extraheader\nA: b\nc\0http.sslverify\0a.b\n\0')).toEqual([
        ['http.x.extraheader', 'A: b\nc'],
        ['http.sslverify', 'true'],
        ['a.b', ''],
      ])
    })
  })

  describe('a configuration file', () => {
    test('as git writes it is read', () => {
      const text =
        '# c\n[core]\n\tbare = false\n\tignorecase\n[remote "origin"]\r\n\turl = https://h/o/r.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[Branch "Main"]\n\tREMOTE=origin \n[remote "origin"]\n\turl = two\n'
      expect(Object.fromEntries(parseSimpleConfig(text) ?? [])).toEqual({
        'core.bare': ['false'],
        'core.ignorecase': ['true'],
        'remote.origin.url': ['https://h/o/r.git', 'two'],
        'remote.origin.fetch': ['+refs/heads/*:refs/remotes/origin/*'],
        'branch.Main.remote': ['origin'],
      })
    })

    test.each([
      ['an include', '[include]\n\tpath = x\n'],
      ['a conditional include', '[includeIf "gitdir:x"]\n\tpath = x\n'],
      ['an extension', '[extensions]\n\tworktreeConfig = true\n'],
      ['a rewriting of URLs', '[url "x"]\n\tinsteadOf = y\n'],
      ['quotes', '[a]\n\tb = "c"\n'],
      ['an escape', '[a]\n\tb = c\\\n d\n'],
      ['a comment after a value', '[a]\n\tb = c # d\n'],
      ['a value beside its section', '[a] b = c\n'],
      ['the old way to write a section', '[a.b]\n\tc = d\n'],
      ['a value without a section', 'b = c\n'],
      ['anything else', '[a\n'],
    ])('with %s is left to git', (_, text) => {
      expect(parseSimpleConfig(text)).toBe(null)
    })
  })
})
