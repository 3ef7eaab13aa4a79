import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'

const TOKEN = ['gh', 'p_', 'c'.repeat(36)].join('')
const PASTED = ['sk', 'p'.repeat(30)].join('-')

type Shown = Readonly<{
  path: string
  section: string | null
  values: readonly Readonly<{ key: string; value: unknown; origin: string }>[]
}>

describe('what do the config commands show and check?', () => {
  let rig: ProgramRig
  let given: Readonly<{ env: Record<string, string>; config: object }>

  const path = (): string => join(rig.dir, 'config.yaml')
  const configure = (keys: object): void =>
    writeFileSync(path(), JSON.stringify({ ...given.config, ...keys }))
  const jsonOf = async <T>(...args: readonly string[]): Promise<T> => {
    const { stdout, stderr } = await rig.run(...args, '--json')
    expect(stderr).toBe('')
    return JSON.parse(stdout) as T
  }

  beforeAll(async () => {
    rig = await openProgramRig({ clone: false })
    const config = JSON.parse(readFileSync(path(), 'utf8')) as object
    given = { env: { ...rig.env }, config }
  })
  beforeEach(() => {
    for (const name of Object.keys(rig.env)) delete rig.env[name]
    Object.assign(rig.env, given.env)
    configure({})
  })
  afterAll(async () => {
    // None of them needs or makes any state.
    expect(existsSync(rig.layout.stateDir)).toBe(false)
    await rig.close()
  })

  test('config show has every key with its value in force and where it comes from', async () => {
    configure({ poll_interval_seconds: 60, workdir_base: '~/code', dry_run: false })
    rig.env['CADUCEUS_DRY_RUN'] = 'yes'
    const { code, stdout } = await rig.run('config', 'show')
    expect(code).toBe(0)
    const [head, ...lines] = stdout.trimEnd().split('\n')
    expect(head).toBe(`# ${path()}`)
    expect(lines).toEqual(
      expect.arrayContaining([
        'watched_repos: ["octo/app"]',
        'poll_interval_seconds: 60',
        `workdir_base: "${join(rig.dir, 'home', 'code')}"`,
        'dry_run: true  # environment',
        'close_issue: "finalize"  # default',
        'worker_timeout_seconds: 3600  # default',
        'max_issues_per_tick: 4  # default',
        `log_path: "${rig.layout.log}"  # default`,
        'github_token: null  # default',
      ]),
    )
    const { path: file, section, values } = await jsonOf<Shown>('config', 'show')
    expect({ file, section }).toEqual({ file: path(), section: null })
    const { properties } = await jsonOf<{ properties: object }>('config', 'schema')
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(values.map(({ key }) => key)))
    expect(values).toContainEqual({ key: 'dry_run', value: true, origin: 'environment' })
    expect(lines).toHaveLength(values.length)
  })

  test('config show never shows a token, wherever it was put', async () => {
    configure({
      github_token: TOKEN,
      worker_command: [join(rig.dir, 'bridge'), `--key=${PASTED}`],
      worker_instruction: `Use ${TOKEN}.`,
    })
    for (const args of [
      ['config', 'show'],
      ['config', 'show', '--json'],
    ]) {
      const { code, stdout, stderr } = await rig.run(...args)
      expect(code).toBe(0)
      for (const secret of [TOKEN, PASTED, rig.token]) expect(stdout + stderr).not.toContain(secret)
      expect(stdout).toContain('<redacted>')
    }
  })

  test('config show names the section of a configuration inside another', async () => {
    const home = join(rig.dir, 'hermes')
    mkdirSync(home)
    const file = join(home, 'config.yaml')
    writeFileSync(file, 'model: x\ncaduceus:\n  watched_repos: [octo/app]\n')
    delete rig.env['CADUCEUS_CONFIG']
    rig.env['HERMES_HOME'] = home
    const { code, stdout } = await rig.run('config', 'show')
    expect(code).toBe(0)
    expect(stdout).toContain(`# ${file} (section caduceus)\n`)
    expect(stdout).toContain(`worker_command: "${home}/caduceus/worker-bridge.py"  # default\n`)
    expect(stdout).toContain(`state_dir: "${home}/`)
  })

  test('config validate accepts, with warnings and the exit code 0', async () => {
    configure({ watched_repos: [], fancy: 1 })
    const { code, stdout } = await rig.run('config', 'validate')
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      path(),
      expect.stringMatching(/^ {2}warning: fancy: found an unknown key; wanted: /),
      expect.stringMatching(/^ {2}warning: watched_repos: found an empty list; wanted: /),
      'The configuration is valid.',
      '',
    ])
    expect(await jsonOf('config', 'validate')).toMatchObject({
      valid: true,
      path: path(),
      error: null,
      problems: [],
      warnings: [{ path: 'fancy' }, { path: 'watched_repos' }],
    })
  })

  test('config validate refuses with all problems and the exit code 1, and shows no token', async () => {
    configure({
      poll_interval_seconds: 0,
      api_base: 'http://example.com',
      github_token: `${TOKEN} x`,
    })
    const { code, stdout } = await rig.run('config', 'validate')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ {2}problem: poll_interval_seconds: found 0; wanted: at least 1\./m)
    expect(stdout).toMatch(/^ {2}problem: api_base: /m)
    expect(stdout).toMatch(/^ {2}problem: github_token: found a value that is not shown; /m)
    expect(stdout).toMatch(/The configuration would not load\.\n$/)
    expect(stdout).not.toContain(TOKEN)

    const json = await rig.run('config', 'validate', '--json')
    expect(json.code).toBe(1)
    const { valid, problems } = JSON.parse(json.stdout) as {
      valid: boolean
      problems: readonly { path: string }[]
    }
    expect(valid).toBe(false)
    expect(problems.map((problem) => problem.path).sort()).toEqual([
      'api_base',
      'github_token',
      'poll_interval_seconds',
    ])
  })

  test('config validate says why when there is nothing to check', async () => {
    writeFileSync(path(), 'a: [')
    const malformed = await rig.run('config', 'validate')
    expect(malformed.code).toBe(1)
    expect(malformed.stdout).toContain(`${path()} cannot be read: line 1, column`)
    rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'none.yaml')
    const missing = await rig.run('config', 'validate', '--json')
    expect(missing.code).toBe(1)
    expect(JSON.parse(missing.stdout)).toMatchObject({
      valid: false,
      path: null,
      error: expect.stringContaining('there is no such file'),
      problems: [],
    })
  })

  test('config schema is the JSON schema of the configuration and needs none', async () => {
    rig.env['CADUCEUS_CONFIG'] = join(rig.dir, 'none.yaml')
    const { code, stdout } = await rig.run('config', 'schema')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: 'http://json-schema.org/draft-07/schema#',
      properties: { watched_repos: { type: 'array' }, executor_mode: { default: 'trusted_host' } },
    })
    expect(await jsonOf('config', 'schema')).toEqual(JSON.parse(stdout))
  })

  test('a command that does not exist is a usage error', async () => {
    for (const args of [['config', 'nothing'], ['config', 'show', '--nothing'], ['nothing']]) {
      const { code, stdout, stderr } = await rig.run(...args)
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).not.toBe('')
    }
  })
})
