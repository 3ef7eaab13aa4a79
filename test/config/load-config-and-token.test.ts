import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parseApiBase } from '../../daemon/config/api-base.ts'
import { HERMES_KEYS } from '../../daemon/config/find-source.ts'
import { inspectConfig, type LoadedConfig, loadConfig } from '../../daemon/config/load-config.ts'
import { type ResolvedToken, resolveToken } from '../../daemon/config/resolve-token.ts'
import { asFault, type Fault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { findProgram, runProcess } from '../../daemon/sys/run-process.ts'
import {
  CONFIG_FILES,
  type ConfigRig,
  makeConfigRig,
  problemsOf,
  warningsOf,
} from '../support/config-rig.ts'
import { waitUntil } from '../support/processes.ts'

let rig: ConfigRig
afterEach(() => rig.remove())

describe('loading the configuration', () => {
  const STANDALONE = '.config/caduceus/config.yaml'
  const OURS = 'watched_repos: [octocat/hello]\nworker_command: /bridge\n'
  beforeEach(() => {
    rig = makeConfigRig()
  })

  const load = (env: Readonly<Record<string, string>> = {}): LoadedConfig =>
    loadConfig(CONFIG_FILES, rig.env(env))

  function faultOf(env: Readonly<Record<string, string>> = {}): Fault {
    try {
      load(env)
    } catch (error) {
      return asFault(error)
    }
    expect('a fault').toBe('thrown')
    return asFault(null)
  }

  describe('where the configuration is found', () => {
    test('CADUCEUS_CONFIG decides over the other places', () => {
      const path = rig.write('my own.yaml', OURS)
      rig.write(STANDALONE, OURS)
      expect(load({ CADUCEUS_CONFIG: path }).source).toEqual({ path, section: null })
      expect(load({ CADUCEUS_CONFIG: '~/my own.yaml' }).source.path).toBe(path)
    })

    test('CADUCEUS_CONFIG naming no file is fatal even when other sources exist', () => {
      rig.write(STANDALONE, OURS)
      const missing = faultOf({ CADUCEUS_CONFIG: rig.path('none.yaml') })
      expect(missing.code).toBe('config/unreadable')
      expect(missing.message).toContain('none.yaml')
      expect(faultOf({ CADUCEUS_CONFIG: rig.home }).details['reason']).toBe('not a regular file')
      expect(faultOf({ CADUCEUS_CONFIG: '' }).code).toBe('config/environment')
    })

    test('the section of the Hermes configuration comes before the standalone file', () => {
      const path = rig.write('hermes/config.yaml', 'model: m\ncaduceus:\n  dry_run: true\n')
      rig.write(STANDALONE, OURS)
      const loaded = load({ HERMES_HOME: rig.path('hermes') })
      expect(loaded.source).toEqual({ path, section: 'caduceus' })
      expect(loaded.config.dryRun).toBe(true)
    })

    test('other keys beside the section are nobody’s business', () => {
      rig.write('hermes/config.yaml', 'anything: {at: all}\ncaduceus: {watched_repos: [a/b]}\n')
      expect(load({ HERMES_HOME: rig.path('hermes') }).warnings).toEqual([])
    })

    test.each(HERMES_KEYS)(
      'a Hermes file (%s) without our section falls through if it can',
      (key) => {
        const hermes = rig.write('hermes/config.yaml', `${key}: x\nwatched_repos: [a/b]\n`)
        const env = { HERMES_HOME: rig.path('hermes') }
        const missing = faultOf(env)
        expect(missing.code).toBe('config/no-section')
        expect(missing.message).toContain('"caduceus:"')
        expect(missing.message).toContain(hermes)
        const path = rig.write(STANDALONE, OURS)
        expect(load(env).source).toEqual({ path, section: null })
      },
    )

    test.each(['', '# nothing yet\n', 'display: dark\n', '- a list\n'])(
      'a Hermes file that holds nothing of ours (%j) falls through',
      (text) => {
        rig.write('hermes/config.yaml', text)
        const path = rig.write(STANDALONE, OURS)
        expect(load({ HERMES_HOME: rig.path('hermes') }).source.path).toBe(path)
      },
    )

    test('without a Hermes file the standalone one is used', () => {
      const path = rig.write(STANDALONE, `caduceus:\n  ${OURS.replace('\n', '\n  ')}`)
      const loaded = load({ HERMES_HOME: rig.path('hermes') })
      expect(loaded.source).toEqual({ path, section: 'caduceus' })
    })

    test('a standalone file of Hermes’s shape names the missing section', () => {
      rig.write(STANDALONE, 'model: m\n')
      expect(faultOf().code).toBe('config/no-section')
    })

    test('HERMES_HOME empty or relative is an error, whatever else is there', () => {
      const CADUCEUS_CONFIG = rig.write('own.yaml', OURS)
      rig.write(STANDALONE, OURS)
      for (const HERMES_HOME of ['', 'relative/path', '~/hermes']) {
        const found = faultOf({ HERMES_HOME, CADUCEUS_CONFIG })
        expect(found.code).toBe('config/environment')
        expect(found.details['name']).toBe('HERMES_HOME')
      }
    })

    test('when there is none, the places that were looked at are named', () => {
      const found = faultOf({ HERMES_HOME: rig.path('hermes') })
      expect(found.code).toBe('config/not-found')
      expect(found.message).toContain(rig.path('hermes', 'config.yaml'))
      expect(found.message).toContain(rig.path(STANDALONE))
      expect(inspectConfig(CONFIG_FILES, {}).kind).toBe('invalid')
    })

    test('a configuration linked into place is read where it lies', () => {
      const path = rig.write('dotfiles/caduceus.yaml', OURS)
      mkdirSync(rig.path('.config/caduceus'), { recursive: true })
      symlinkSync(path, rig.path(STANDALONE))
      expect(load().source.path).toBe(rig.path(STANDALONE))
    })
  })

  describe('what is no configuration', () => {
    test.each([
      '',
      '# only a comment\n',
      '- a\n- b\n',
      'just text\n',
      'caduceus:\n',
      'caduceus: [a]\n',
    ])('a file that is empty or no mapping (%j) is one problem', (text) => {
      rig.write(STANDALONE, text)
      const inspection = inspectConfig(CONFIG_FILES, rig.env())
      expect(problemsOf(inspection)).toEqual([
        expect.objectContaining({ path: '(document)', wanted: 'a mapping of keys to values' }),
      ])
    })

    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    test.each([
      ['bytes that are not UTF-8', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]), /UTF-8/],
      ['UTF-16', Buffer.from('\uFEFFwatched_repos: []\n', 'utf16le'), /UTF-8/],
      ['malformed YAML', `a: 1\ngithub_token: "${token}\nb: 'x\n`, /line \d+, column \d+/],
      ['a key given twice', 'dry_run: true\ndry_run: false\n', /line 2, column 1/],
      ['two documents', 'dry_run: true\n---\ndry_run: false\n', /line 2/],
      ['a file that is too large', '#'.repeat(LIMITS.configurationBytes + 1), /too large/],
      ['nesting without end', '['.repeat(200_000), /./],
      ['an unknown alias', 'watched_repos: *nobody\n', /./],
      [
        'aliases that expand without measure',
        `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f']
          .map((name, index) => {
            const before = String.fromCharCode(name.charCodeAt(0) - 1)
            return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(',')}]${index < 4 ? '' : '\n'}`
          })
          .join('\n')}`,
        /alias/,
      ],
    ])('%s is told clearly', (_, content, reason) => {
      const path = rig.write(STANDALONE, content)
      const found = faultOf()
      expect(found.code).toBe('config/unreadable')
      expect(found.details['path']).toBe(path)
      expect(String(found.details['reason'])).toMatch(reason)
      expect(found.message + JSON.stringify(found.details)).not.toContain(token)
    })

    test('a byte order mark and keys that are lists do no harm', () => {
      rig.write(STANDALONE, `\uFEFF${OURS}? [a, b]\n: 1\n`)
      expect(load().warnings).toHaveLength(1)
    })
  })

  describe('paths', () => {
    function loaded(document: unknown, env: Readonly<Record<string, string>> = {}): LoadedConfig {
      const inspection = rig.inspect(document, env)
      if (inspection.kind === 'invalid') throw inspection.fault
      return inspection.loaded
    }

    const paths = (document: unknown): readonly string[] =>
      problemsOf(rig.inspect({ worker_command: '/b', ...Object(document) })).map(({ path }) => path)

    test('a leading ~ is the home folder, an embedded one a character', () => {
      const { config } = loaded({ worker_command: '/b', state_dir: '~', workdir_base: '/a/~/b' })
      expect(config.stateDir).toBe(rig.home)
      expect(config.workdirBase).toBe('/a/~/b')
    })

    test('relative ones count from the folder of the file', () => {
      const { config } = loaded({ worker_command: '/b', workdir_base: 'clones/here' })
      expect(config.workdirBase).toBe(rig.path('.config/caduceus/clones/here'))
    })

    test('another person’s home, a NUL and a ~ without HOME are problems', () => {
      expect(paths({ state_dir: '~root/x', log_path: 'a\0b' })).toEqual(['state_dir', 'log_path'])
      const CADUCEUS_CONFIG = rig.write('own.yaml', 'worker_command: /b\n')
      const problems = problemsOf(rig.inspect({}, { HOME: '', CADUCEUS_CONFIG }))
      expect(problems.map(({ path }) => path)).toEqual(['state_dir', 'workdir_base'])
    })

    test('state_dir may be a folder or nothing, not a file or a link', () => {
      mkdirSync(rig.path('folder'))
      symlinkSync(rig.path('folder'), rig.path('link'))
      rig.write('file', '')
      for (const name of ['folder', 'absent'])
        expect(paths({ state_dir: rig.path(name) })).toEqual([])
      for (const name of ['file', 'link']) {
        const problems = problemsOf(
          rig.inspect({ worker_command: '/b', state_dir: rig.path(name) }),
        )
        expect(problems.map(({ path }) => path)).toEqual(['state_dir'])
      }
    })

    test('repo_storage_root is private where it exists, and never a link', () => {
      mkdirSync(rig.path('folder'))
      symlinkSync(rig.path('folder'), rig.path('link'))
      const repo_storage_root = rig.path('folder')
      for (const mode of [0o755, 0o750, 0o500]) {
        chmodSync(repo_storage_root, mode)
        const [problem] = problemsOf(rig.inspect({ worker_command: '/b', repo_storage_root }))
        expect(problem?.wanted).toBe('mode 0700')
        expect(problem?.found).toContain(`0${mode.toString(8)}`)
      }
      chmodSync(repo_storage_root, 0o700)
      expect(paths({ repo_storage_root })).toEqual([])
      expect(paths({ repo_storage_root: rig.path('link') })).toEqual(['repo_storage_root'])
    })

    test('a token in a file that others may read is warned about', () => {
      const text = 'worker_command: /b\nwatched_repos: [a/b]\ngithub_token: abc\n'
      const CADUCEUS_CONFIG = rig.write('own.yaml', text, 0o644)
      expect(warningsOf(rig.inspect({}, { CADUCEUS_CONFIG })).map(({ path }) => path)).toEqual([
        'github_token',
      ])
      chmodSync(CADUCEUS_CONFIG, 0o600)
      expect(warningsOf(rig.inspect({}, { CADUCEUS_CONFIG }))).toEqual([])
    })
  })
})

describe('which token is used', () => {
  beforeEach(() => {
    rig = makeConfigRig()
    mkdirSync(rig.path('bin'))
  })

  type Given = Readonly<{
    githubToken?: string
    env?: Readonly<Record<string, string>>
    apiBase?: string
    timeoutMs?: number
  }>

  const resolve = ({ githubToken, env, apiBase, timeoutMs }: Given = {}): Promise<ResolvedToken> =>
    resolveToken(
      { findProgram, runProcess },
      {
        githubToken: githubToken ?? null,
        apiBase: parseApiBase(apiBase ?? 'https://api.github.com').value,
      },
      rig.env({ PATH: `${rig.path('bin')}:/usr/bin:/bin`, ...env }),
      timeoutMs,
    )

  const faultOf = async (given: Given = {}): Promise<Fault> =>
    resolve(given).then(
      () => asFault(null),
      (error: unknown) => asFault(error),
    )

  const gh = (script: string): string => rig.write('bin/gh', `#!/bin/sh\n${script}\n`, 0o755)

  test('the first of the chain that is not blank', async () => {
    gh('echo from-gh')
    const all = { CADUCEUS_GITHUB_TOKEN: ' second ', GITHUB_TOKEN: 'third' }
    expect(await resolve({ githubToken: ' first\n', env: all })).toEqual({
      token: 'first',
      source: 'github_token',
    })
    expect(await resolve({ githubToken: ' \t', env: all })).toEqual({
      token: 'second',
      source: 'CADUCEUS_GITHUB_TOKEN',
    })
    expect(await resolve({ env: { ...all, CADUCEUS_GITHUB_TOKEN: '' } })).toEqual({
      token: 'third',
      source: 'GITHUB_TOKEN',
    })
    expect(await resolve({ env: { CADUCEUS_GITHUB_TOKEN: ' ', GITHUB_TOKEN: '\n' } })).toEqual({
      token: 'from-gh',
      source: 'gh',
    })
  })

  test.each([['github_token'], ['CADUCEUS_GITHUB_TOKEN'], ['GITHUB_TOKEN'], ['gh']])(
    'a malformed one (%s) is refused, not passed over, and stands in no error',
    async (source) => {
      const bad = 'half\x07secret'
      gh(source === 'gh' ? String.raw`printf 'half\007secret'` : 'echo other')
      const found = await faultOf(
        source === 'github_token' ? { githubToken: bad } : { env: { [source]: bad } },
      )
      expect(found.code).toBe('token/malformed')
      expect(found.details['source']).toBe(source)
      expect(found.message + found.next + JSON.stringify(found.details)).not.toContain('secret')
    },
  )

  test('gh gets little of the environment, nothing on stdin and the name of the server', async () => {
    gh('{ /usr/bin/env; echo "argv=$*"; cat; } > "$HOME/seen"; echo a-token')
    const env = {
      USER: 'u',
      XDG_CONFIG_HOME: '/x',
      GH_CONFIG_DIR: '/g',
      GH_TOKEN: 'not-yours',
      GH_HOST: 'elsewhere',
      SECRET_THING: 's',
    }
    await resolve({ env, apiBase: 'https://ghe.example.com/api/v3' })
    const seen = readFileSync(rig.path('seen'), 'utf8').trimEnd().split('\n')
    const names = seen
      .map((line) => line.split('=')[0])
      .filter((name) => !SHELL_NAMES.includes(name))
    expect(new Set(names)).toEqual(
      new Set(['GH_CONFIG_DIR', 'HOME', 'PATH', 'USER', 'XDG_CONFIG_HOME', 'argv']),
    )
    expect(seen).toContain('argv=auth token --hostname ghe.example.com')
  })

  test('a gh that fails tells its exit code and nothing it wrote', async () => {
    gh('echo leaked-secret >&2; echo leaked-secret; exit 4')
    const found = await faultOf()
    expect(found.code).toBe('token/not-found')
    expect(found.message).toContain('gh auth token ended with 4')
    expect(JSON.stringify([found, found.message, found.cause])).not.toContain('leaked-secret')
  })

  test.each(['exit 0', 'echo', 'printf "  \\n"'])(
    'a gh that prints nothing (%s) fails',
    async (script) => {
      gh(script)
      expect((await faultOf()).message).toContain('gh auth token printed nothing')
    },
  )

  test('a gh that hangs is ended at the deadline, with what it started', async () => {
    gh('echo $$ > "$HOME/pid"; sleep 600 & echo $! >> "$HOME/pid"; wait')
    const found = await faultOf({ timeoutMs: 300 })
    expect(found.message).toContain('gave no answer within 0.3 s')
    const pids = readFileSync(rig.path('pid'), 'utf8').trim().split('\n').map(Number)
    expect(pids).toHaveLength(2)
    for (const pid of pids) await waitUntil('its end', () => identifyProcess(pid) === null)
  })

  test('a gh that cannot be started is one that gave nothing', async () => {
    rig.write('bin/gh', '#!/no/such/interpreter\n', 0o755)
    expect((await faultOf()).message).toContain('gh could not be started')
  })

  test('when there is none, everything that was tried is told', async () => {
    const env = { PATH: rig.path('bin'), GITHUB_TOKEN: ' ' }
    expect((await faultOf({ env })).details['tried']).toBe(
      'github_token is not set; CADUCEUS_GITHUB_TOKEN is not set; GITHUB_TOKEN is blank; gh is not installed',
    )
  })

  /** What shells add to their environment by themselves. */
  const SHELL_NAMES: readonly (string | undefined)[] = ['PWD', 'SHLVL', '_', 'OLDPWD']
})
