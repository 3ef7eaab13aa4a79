import { describe, expect, test } from '@jest/globals'
import { isRecentEnough, parseGitVersion } from '../../daemon/git/git-version.ts'
import { parseSettings } from '../../daemon/git/operator-settings.ts'
import { PROFILES, settingsEnvironment } from '../../daemon/git/profile.ts'
import { parseSimpleConfig } from '../../daemon/git/simple-config.ts'
import { sshCommand } from '../../daemon/git/ssh-command.ts'

const NO_SSH = { environmentCommand: null, configuredCommand: null, program: null, variant: null }

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

describe('the ssh command', () => {
  test.each([
    [{}, 'ssh -oBatchMode=yes'],
    [{ environmentCommand: 'ssh -i key' }, 'ssh -i key -oBatchMode=yes'],
    [{ configuredCommand: '"/opt/my ssh/ssh" -i key' }, '"/opt/my ssh/ssh" -i key -oBatchMode=yes'],
    [
      { environmentCommand: 'one', configuredCommand: 'two', program: 'three' },
      'one -oBatchMode=yes',
    ],
    [{ configuredCommand: 'two', program: 'three' }, 'two -oBatchMode=yes'],
    [{ program: "/opt/it's/ssh" }, "'/opt/it'\\''s/ssh' -oBatchMode=yes"],
    [{ program: '/usr/bin/plink' }, '/usr/bin/plink -batch'],
    [{ configuredCommand: 'PLINK.EXE -v' }, 'PLINK.EXE -v -batch'],
    [{ program: 'wrapper', variant: 'simple' }, 'wrapper'],
    [{ program: 'wrapper', variant: 'auto' }, 'wrapper -oBatchMode=yes'],
  ])('of %j is %s', (settings, expected) => {
    expect(sshCommand({ ...NO_SSH, ...settings })).toBe(expected)
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

describe('the version of git', () => {
  test.each([
    ['git version 2.39.5', true],
    ['git version 2.32.0 (Apple Git-132)', true],
    ['git version 2.31.9', false],
    ['git version 3.0.1.windows.1', true],
  ])('%s is recent enough: %s', (output, expected) => {
    const version = parseGitVersion(output)
    expect(version !== null && isRecentEnough(version)).toBe(expected)
  })

  test('is not read out of anything else', () => {
    expect(parseGitVersion('busybox')).toBe(null)
  })
})
