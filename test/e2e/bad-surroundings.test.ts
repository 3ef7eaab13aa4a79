import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { openScriptedServer } from '../support/github-rig.ts'
import { GOOD_BRIDGE, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import { errorsOf, QUIET, refusalOf, tickLater } from '../support/program-views.ts'

let rig: ProgramRig

describe('what does a configuration that cannot be used do?', () => {
  let given: Readonly<{ env: Record<string, string>; config: object }>
  const path = (): string => join(rig.dir, 'config.yaml')
  const configure = (keys: object): void =>
    writeFileSync(path(), JSON.stringify({ ...given.config, ...keys }))

  beforeAll(async () => {
    rig = await openProgramRig()
    given = {
      env: { ...rig.env },
      config: JSON.parse(readFileSync(path(), 'utf8')) as object,
    }
  })
  afterEach(() => {
    expect(existsSync(rig.layout.stateDir)).toBe(false)
    for (const name of Object.keys(rig.env)) delete rig.env[name]
    Object.assign(rig.env, given.env)
    configure({})
  })
  afterAll(async () => {
    await rig.close()
  })

  test('malformed YAML is refused with its place, by every command alike', async () => {
    writeFileSync(path(), 'watched_repos: [octo/app\nstate_dir: x')
    const refusal = await refusalOf(rig, 'run')
    expect(refusal).toContain(`The configuration ${path()} cannot be read: line 2, column 1: `)
    expect(refusal).toContain('then run: caduceus config validate')
    expect(await refusalOf(rig, 'status')).toBe(refusal)
  })

  test('everything that is wrong is told at once, each with what is wanted', async () => {
    configure({
      poll_interval_seconds: -1,
      executor_mode: 'none',
      watched_repos: ['a', 'octo/app'],
      ticket_label_code: 'x',
      ticket_label_investigation: 'X',
      protected_paths: ['/etc'],
      worker_env_allowlist: ['GITHUB_*'],
    })
    const refusal = await refusalOf(rig, 'run')
    expect(refusal).toContain(`${path()} has 6 problem(s)`)
    for (const problem of [
      'poll_interval_seconds: found -1; wanted: at least 1.',
      'executor_mode: found "none"; wanted: one of trusted_host, oci.',
      'watched_repos[0]: found "a"; wanted: owner/name',
      'ticket_label_investigation: found "X"; wanted: a label other than ticket_label_code',
      'protected_paths[0]: found "/etc"; wanted: a glob relative to the top',
      'worker_env_allowlist[0]: found "GITHUB_*"; wanted: nothing that could hand',
    ])
      expect(refusal).toContain(problem)
  })

  test('with --json a refusal is an object with code, message and next step', async () => {
    configure({ poll_interval_seconds: 'often' })
    const { code, stdout, stderr } = await rig.run('run', '--json')
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({
      error: {
        code: 'config/invalid',
        message: expect.stringContaining('poll_interval_seconds: found "often"'),
        next: 'Mend them, then run: caduceus config validate',
      },
    })
  })

  test('containers are refused and never replaced by the host', async () => {
    configure({ executor_mode: 'oci', sandbox: { image: `a/b@sha256:${'0'.repeat(64)}` } })
    expect(await refusalOf(rig, 'run')).toMatch(
      /^executor_mode oci is not available in this version\./,
    )
  })

  test('without any configuration the places looked at are named', async () => {
    delete rig.env['CADUCEUS_CONFIG']
    expect(await refusalOf(rig, 'run')).toBe(
      `No configuration was found (looked at ${rig.dir}/home/.config/caduceus/config.yaml). Run "caduceus setup", which writes one, or name a file with CADUCEUS_CONFIG.`,
    )
  })

  test.each([
    ['HERMES_HOME', '', 'HERMES_HOME is empty; wanted: an absolute path.'],
    ['CADUCEUS_CONFIG', '', 'CADUCEUS_CONFIG is empty; wanted: the path of a configuration file.'],
    ['CADUCEUS_CONFIG', '/nowhere/config.yaml', 'there is no such file'],
    ['CADUCEUS_DRY_RUN', 'perhaps', 'CADUCEUS_DRY_RUN: found "perhaps"; wanted: one of'],
  ])('%s=%j is refused', async (name, value, problem) => {
    rig.env[name] = value
    expect(await refusalOf(rig, 'run')).toContain(problem)
  })

  test('a state directory that is a link is refused, and what it names stays empty', async () => {
    const [link, target] = [join(rig.dir, 'link'), join(rig.dir, 'target')]
    mkdirSync(target)
    symlinkSync(target, link)
    configure({ state_dir: link })
    expect(await refusalOf(rig, 'run')).toContain('which is a symbolic link; wanted: a folder')
    expect(await refusalOf(rig, 'status')).toContain('which is a symbolic link; wanted: a folder')
    expect(readdirSync(target)).toEqual([])
  })
})

describe('what does a setup that works only in part do?', () => {
  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('an unknown key is ignored and told in status and log, with the key it may stand for', async () => {
    rig.setConfig({ poll_interval_secs: 5, fancy: 1 })
    expect(await rig.tick()).toEqual(QUIET)
    expect((await rig.status()).report?.configuration_warnings).toEqual([
      expect.stringContaining(
        'poll_interval_secs: found an unknown key; wanted: poll_interval_seconds.',
      ),
      expect.stringContaining('fancy: found an unknown key;'),
    ])
    const warned = rig.log().filter(({ event }) => event === 'configuration warning')
    expect(warned.map(({ path }) => path)).toEqual(['poll_interval_secs', 'fancy'])
  })

  test('a repository without a clone of its own is not polled; status says why, until it has one', async () => {
    rmSync(rig.clone, { recursive: true })
    const { git, clone } = rig
    const steps = [
      { mend: async () => undefined, error: `octo/app has no clone at ${clone}.` },
      { mend: async () => mkdirSync(clone), error: `${clone} is not a git repository.` },
      {
        mend: async () => git('-C', clone, 'init', '--quiet'),
        error: `The clone ${clone} has no remote named origin.`,
      },
      {
        mend: async () =>
          git('-C', clone, 'remote', 'add', 'origin', 'https://127.0.0.1/octo/other'),
        error: `The clone ${clone} has origin https://127.0.0.1/octo/other, not octo/app on 127.0.0.1.`,
      },
    ]
    for (const { mend, error } of steps) {
      await mend()
      await rig.control('clearRequests')
      expect(await rig.tick()).toEqual(QUIET)
      expect(await errorsOf(rig)).toEqual([`octo/app: ${error}`])
      expect((await rig.control('readRequests', {})).total).toBe(0)
    }
    await git('-C', clone, 'remote', 'set-url', 'origin', rig.origin)
    expect(await rig.tick()).toEqual(QUIET)
    expect(await errorsOf(rig)).toEqual([])
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('a bridge that cannot be started costs no attempt; the run comes when it can', async () => {
    const program = join(rig.dir, 'bridge')
    const steps = [
      {
        mend: () => rmSync(program),
        readiness: 'missing',
        error: `The worker command ${program} does not exist.`,
      },
      {
        mend: () => writeFileSync(program, GOOD_BRIDGE, { mode: 0o644 }),
        readiness: 'not-executable',
        error: `The worker command ${program} is not an executable file.`,
      },
      {
        mend: () => {
          writeFileSync(program, '#!/nowhere/interpreter\n')
          chmodSync(program, 0o755)
        },
        readiness: 'present',
        error: `${program} could not be started: its interpreter is missing.`,
      },
    ]
    for (const { mend, readiness, error } of steps) {
      mend()
      expect(await tickLater(rig)).toEqual(QUIET)
      expect(rig.entry(1)).toMatchObject({ phase: 'queued', attempts: 0 })
      expect(await errorsOf(rig)).toEqual([`octo/app#1: ${error}`])
      expect((await rig.status()).report?.readiness.bridge).toBe(readiness)
    }
    rig.setBridge(GOOD_BRIDGE)
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(1)).toMatchObject({ phase: 'awaiting_review', degraded: null })
    expect(await errorsOf(rig)).toEqual([])
  })

  test('a remote that asks for credentials is not waited for: nobody is there to answer', async () => {
    const asking = await openScriptedServer((_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    })
    const ssh = join(rig.dir, 'bin', 'ssh')
    writeFileSync(ssh, `#!/bin/sh\necho "$*" >>${rig.dir}/home/ssh\nexit 255\n`, {
      mode: 0o755,
    })
    const setOrigin = async (url: string): Promise<unknown> =>
      rig.git('-C', rig.clone, 'remote', 'set-url', 'origin', url)
    try {
      for (const url of [`${asking.url}/octo/app.git`, 'git@127.0.0.1:octo/app.git']) {
        await setOrigin(url)
        const startedAt = performance.now()
        expect(await tickLater(rig)).toEqual(QUIET)
        expect(performance.now() - startedAt).toBeLessThan(30_000)
        expect(rig.entry(1)).toMatchObject({ phase: 'queued', attempts: 0 })
        expect(rig.entry(1)?.lastError?.code).toMatch(/^git\//)
      }
    } finally {
      await asking.close()
    }
    expect(asking.seen.length).toBeGreaterThan(0)
    expect(readFileSync(join(rig.dir, 'home', 'ssh'), 'utf8')).toContain('-oBatchMode=yes')
    await setOrigin(rig.origin)
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('a log that cannot be written is told and stops no run', async () => {
    rig.setConfig({ log_path: join(rig.dir, 'home') })
    const { code, stdout, stderr } = await rig.tick()
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toContain(`${join(rig.dir, 'home')} failed: `)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('a log whose folder cannot be made is refused', async () => {
    rig.setConfig({ log_path: join(rig.dir, 'config.yaml', 'log') })
    expect(await refusalOf(rig, 'run')).toContain(join(rig.dir, 'config.yaml'))
  })
})

describe('what does a GitHub that cannot be used do?', () => {
  afterEach(async () => {
    await rig.close()
  })

  let token: string

  beforeEach(async () => {
    rig = await openProgramRig()
    token = rig.token
    await rig.openIssue()
  })

  /** Fails, says so once, is remembered, and is over when mended. */
  const failsUntilMended = async (problem: string, mend: () => void): Promise<void> => {
    expect(await refusalOf(rig, 'run', '--now', '--wait')).toContain(problem)
    expect(await errorsOf(rig)).toEqual([expect.stringContaining(problem)])
    expect((await rig.status()).report?.last_outcome).toBe('failed')
    mend()
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(await errorsOf(rig)).toEqual([])
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  }

  test('without a token each place it may come from is named, and gh that is not there', async () => {
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    await failsUntilMended(
      'No GitHub token was found (github_token is not set; CADUCEUS_GITHUB_TOKEN is not set; GITHUB_TOKEN is not set; gh is not installed).',
      () => {
        rig.env['GITHUB_TOKEN'] = token
      },
    )
  })

  test('a queued issue is not claimed as long as there is no token', async () => {
    rig.setConfig({ max_issues_per_tick: 1 })
    rig.setBridge('#!/bin/sh\nexit 1\n')
    await rig.tick()
    expect(rig.entry(1)).toMatchObject({ phase: 'queued', attempts: 1 })
    const runs = rig.journals().length
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.clock.advance(3_600_000)
    expect(await refusalOf(rig, 'run', '--now', '--wait')).toMatch(/^No GitHub token was found/)
    expect(rig.entry(1)?.phase).toBe('queued')
    expect(rig.journals()).toHaveLength(runs)
  })

  test('a token that GitHub rejects is told with its status', async () => {
    rig.env['CADUCEUS_GITHUB_TOKEN'] = ['gh', 'p_', 'a'.repeat(36)].join('')
    await failsUntilMended('GitHub rejected the token (401).', () => {
      rig.env['CADUCEUS_GITHUB_TOKEN'] = token
    })
  })

  test('a token with a blank in it is never sent', async () => {
    rig.env['CADUCEUS_GITHUB_TOKEN'] = `${token} x`
    await failsUntilMended('The GitHub token holds a character that no token has', () => {
      rig.env['CADUCEUS_GITHUB_TOKEN'] = token
    })
  })

  test('the token of gh is used when there is no other', async () => {
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    const gh = join(rig.dir, 'bin', 'gh')
    writeFileSync(gh, `#!/bin/sh\n[ "$1 $2" = "auth token" ] && echo ${token}\n`)
    chmodSync(gh, 0o755)
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('a GitHub that is down is told, and the work is done when it is back', async () => {
    rig.setConfig({ api_base: `http://127.0.0.1:${await closedPort()}` })
    await failsUntilMended('GitHub could not be reached for GET /repos/octo/app/issues: ', () =>
      rig.setConfig({ api_base: rig.apiBase }),
    )
  })

  /** A port of this machine on which nobody listens. */
  async function closedPort(): Promise<number> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    await new Promise((resolve) => server.close(resolve))
    return typeof address === 'object' && address !== null ? address.port : 0
  }
})

describe('what do stored files do that cannot be used?', () => {
  afterEach(async () => {
    await rig.close()
  })

  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
    await rig.tick()
  })

  const FILES = ['queue', 'meta'] as const
  const DIAGNOSTICS = { queue: 'corrupt_queue', meta: 'corrupt_state' } as const

  test.each(FILES)(
    'a truncated %s is refused and left as it is; its bytes are kept once',
    async (file) => {
      const path = rig.layout[file]
      const bytes = readFileSync(path).subarray(0, 40)
      writeFileSync(path, bytes)
      const status = await rig.run('status')
      expect(status).toMatchObject({ code: 1, stderr: '' })
      expect(status.stdout).toContain(`${path} is not readable as state: it is not valid JSON.`)
      expect(copiesOf(path)).toEqual([])

      const refusal = await refusalOf(rig, 'run')
      const [copy = ''] = copiesOf(path)
      expect(refusal).toBe(
        `${path} is not readable as state: it is not valid JSON. Its bytes were kept as ${copy}. Restore the file from a backup, or move it away to begin with an empty state.`,
      )
      expect(await refusalOf(rig, 'run')).toBe(refusal)
      expect(copiesOf(path)).toEqual([copy])
      for (const kept of [path, copy]) expect(readFileSync(kept)).toEqual(bytes)

      const json = await rig.run('status', '--json')
      expect(json.code).toBe(1)
      expect(JSON.parse(json.stdout)).toMatchObject({
        diagnostic: DIAGNOSTICS[file],
        message: expect.stringContaining(copy),
        report: null,
      })
    },
  )

  test.each(FILES)(
    'a %s of another format is not taken for corrupt, nor for empty',
    async (file) => {
      const path = rig.layout[file]
      const good = readFileSync(path, 'utf8')
      const [, known] = /"version":(\d+)/.exec(good) ?? []
      const others = [
        [
          '{"version":1,"entries":{}}',
          `${path} has format 1, written by the original implementation. Use another state_dir`,
        ],
        [
          good.replace(/"version":\d+/, '"version":999'),
          `${path} has format 999; this version knows ${known}. Install the newer version that wrote it.`,
        ],
      ] as const
      for (const [text, message] of others) {
        writeFileSync(path, text)
        for (const command of ['run', 'status'])
          expect(await refusalOf(rig, command)).toContain(message)
        const json = await rig.run('status', '--json')
        expect(json.code).toBe(1)
        expect(JSON.parse(json.stdout)).toMatchObject({
          error: { message: message.slice(0, message.lastIndexOf('. ') + 1) },
        })
        expect(readFileSync(path, 'utf8')).toBe(text)
        expect(copiesOf(path)).toEqual([])
      }
      writeFileSync(path, good)
      expect(await rig.tick()).toEqual(QUIET)
    },
  )

  const copiesOf = (path: string): readonly string[] =>
    readdirSync(rig.layout.stateDir)
      .map((name) => join(rig.layout.stateDir, name))
      .filter((other) => other.startsWith(`${path}.corrupt-`))
})
