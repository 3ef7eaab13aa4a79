import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { planKills, VICTIMS } from '../../daemon/demo/crash-plan.ts'
import { environmentOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { waitUntil } from '../support/processes.ts'
import { type Finished, openProgramRig, PROGRAM, type ProgramRig } from '../support/program-rig.ts'
import { newestRun, QUIET } from '../support/program-views.ts'

/** A write that was cut off is only repeated when its time is over, which may be half a minute. */
const CRASH_TIMEOUT_MS = 120_000

type CrashedDemo = Readonly<{
  kills: readonly Readonly<{ process: string; pid: number; stage: string | null }>[]
}>

const ESCAPE = '\u001B'

/** Starts a program on a terminal of its own and hands on what it prints there. */
const ON_A_TERMINAL =
  'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

describe('does the demo show the whole job?', () => {
  let dir: string
  let env: Record<string, string>

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'demo-test-'))
    mkdirSync(join(dir, 'tmp'))
    mkdirSync(join(dir, 'home'))
    env = {
      PATH: process.env['PATH'] ?? '',
      HOME: join(dir, 'home'),
      LANG: 'C.UTF-8',
      TERM: 'xterm',
      TMPDIR: join(dir, 'tmp'),
    }
  })
  afterEach(async () => {
    try {
      await waitUntil('all processes have left', () => processesLeft().length === 0, 5000)
      expect(readdirSync(join(dir, 'tmp'))).toEqual([])
      expect(readdirSync(join(dir, 'home'))).toEqual([])
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  const processesLeft = (): readonly number[] =>
    listProcesses()
      .filter(({ pid, isZombie }) => pid !== process.pid && !isZombie)
      .filter(({ pid }) => Object.values(environmentOf(pid) ?? {}).some((v) => v.includes(dir)))
      .map(({ pid }) => pid)

  const start = async (program: string, ...args: readonly string[]): Promise<Finished> =>
    new Promise((resolve) => {
      const child = execFile(program, args, { env, cwd: dir }, (_, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, stdout, stderr })
      })
      child.stdin?.end()
    })

  const demo = async (...args: readonly string[]): Promise<Finished> =>
    start(process.execPath, PROGRAM, 'demo', ...args)

  const git = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('git', args, { env })).stdout

  const inOrder = (text: string, ...parts: readonly string[]): void => {
    const places = parts.map((part) => text.indexOf(part))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  }

  test('it ends with the pull request, the comment, the issue and the test that passes', async () => {
    const { code, stdout, stderr } = await demo()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toContain(ESCAPE)
    inOrder(
      stdout,
      'octo/timesheet#1: ',
      "the project's tests fail: FAILED (failures=1)",
      'claimed the issue',
      'started the worker under its supervisor',
      'Read the task:',
      'the worker succeeded',
      'pushed the branch',
      'opened pull request #2',
      'closed the issue',
      'Pull request #2: fix(report): ',
      'Closes #1',
      'diff --git a/timesheet.py b/timesheet.py',
      "the project's tests pass: OK",
      'Issue #1 is closed, in phase awaiting_review',
      'automation-bot: Pull request #2 is ready for review.',
      'nothing changed: 1 pull request(s), 1 comment(s)',
    )
  })

  test('with --keep everything stays in a folder, which may exist, and a second demo does not spoil it', async () => {
    const kept = join(dir, 'kept')
    mkdirSync(kept)
    writeFileSync(join(kept, 'notes.txt'), 'mine')
    const { code, stdout } = await demo('--keep', 'kept', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      version: '1.0.0',
      phase: 'awaiting_review',
      pull: 2,
      issueState: 'closed',
      comments: 1,
      testPasses: true,
      keptIn: kept,
    })
    expect(readFileSync(join(kept, 'notes.txt'), 'utf8')).toBe('mine')

    const bare = join(kept, 'github', 'git', 'octo', 'timesheet.git')
    const refs = await git('-C', bare, 'for-each-ref', '--format=%(refname:short)')
    const [branch = '', ...others] = refs.trim().split('\n')
    expect(branch).toMatch(/^automation\/issue-1-[0-9a-z]{26}$/)
    expect(others).toEqual(['main'])
    const log = await git('-C', bare, 'log', '--format=%an <%ae>', `main..${branch}`)
    expect(log).toBe('Caduceus Daemon <caduceus@daemon.local>\n')
    const names = async (commit: string): Promise<string> =>
      git('-C', bare, 'ls-tree', '-r', '--name-only', commit)
    expect(await names(branch)).toBe(await names('main'))
    expect(await git('-C', bare, 'diff', '--name-only', `main..${branch}`)).toBe('timesheet.py\n')

    const again = await demo('--keep', kept)
    expect(again.code).toBe(2)
    expect(again.stderr).toContain(`${kept} holds an earlier demo; choose another folder.`)
    expect(await git('-C', bare, 'for-each-ref', '--format=%(refname:short)')).toBe(refs)
  })

  test('--investigate, on a terminal, ends with findings instead of a pull request', async () => {
    const command = [process.execPath, PROGRAM, 'demo', '--investigate']
    const { code, stdout } = await start('python3', '-c', ON_A_TERMINAL, ...command)
    expect(code).toBe(0)
    expect(stdout).toContain(`${ESCAPE}[`)
    expect(stdout).toMatch(/Issue #1 is closed, in phase done/)
    expect(stdout).toContain('automation-bot: ')
    expect(stdout).toContain('nothing changed: 0 pull request(s), 1 comment(s)')
  })

  test('--dry-run ends with the report and leaves GitHub alone', async () => {
    const { code, stdout } = await demo('--dry-run')
    expect(code).toBe(0)
    inOrder(stdout, '.dry-run.md', '# Dry run', 'Issue #1 is open, in phase previewed')
    expect(stdout).toContain('labels: 🤖 auto-fix')
    expect(stdout).toContain('nothing changed: 0 pull request(s), 0 comment(s)')
  })

  const ONCE = { branches: 1, pullRequests: 1, comments: 1, labelChanges: 1, closes: 1 }

  test.each([3, 17])(
    '--crash with seed %i kills the daemon again and again, and all is there exactly once',
    async (seed) => {
      const { code, stdout, stderr } = await demo('--crash', '--seed', String(seed), '--json')
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const report = JSON.parse(stdout) as CrashedDemo
      expect(report).toMatchObject({
        phase: 'awaiting_review',
        issueState: 'closed',
        comments: 1,
        testPasses: true,
        seed,
        counts: ONCE,
      })
      expect(report.kills.length).toBeGreaterThanOrEqual(3)
      expect(report.kills.length).toBeLessThanOrEqual(12)
      expect(report.kills.map(({ stage }) => stage)).toContain('launching')
      const killed = new Set(report.kills.map((kill) => kill.process))
      expect([...killed]).toEqual(expect.arrayContaining(['tick', 'runner']))
      expect(new Set(report.kills.map(({ pid }) => pid)).size).toBe(report.kills.length)
    },
    CRASH_TIMEOUT_MS,
  )

  test(
    '--crash tells each kill, who took over, its seed, and what is there in the end',
    async () => {
      const { code, stdout, stderr } = await demo('--crash', '--investigate')
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/again in the same way with --seed \d+\n/)
      const kills =
        stdout.match(/✗ killed the (tick|runner|supervisor) \(pid \d+\) while it \w/g) ?? []
      expect(kills.length).toBeGreaterThanOrEqual(2)
      inOrder(
        stdout,
        '✗ killed the runner',
        'the next tick took the run over at stage ',
        'Issue #1 is closed, in phase done',
        `After ${kills.length} kills GitHub has, exactly once`,
        '0 branches, 0 pull requests, 1 comment, 1 label change, 1 close',
      )
    },
    CRASH_TIMEOUT_MS,
  )

  test('whatever the seed, 8 to 11 kills are planned, the same each time, and at most two supervisors', () => {
    for (let seed = 0; seed < 500; seed += 1) {
      const processes = planKills(seed).flatMap(({ victim }) => VICTIMS[victim].processes)
      const supervisors = processes.filter((name) => name === 'supervisor').length
      const isRight = processes.length >= 8 && processes.length <= 11 && supervisors <= 2
      expect({ seed, isRight }).toEqual({ seed, isRight: true })
      expect(planKills(seed)).toEqual(planKills(seed))
    }
  })

  test('--crash goes neither with a worker that fails nor with a dry run, and a seed only with it', async () => {
    for (const args of [
      ['--crash', '--fail'],
      ['--crash', '--dry-run'],
      ['--seed', '1'],
    ]) {
      const { code, stdout, stderr } = await demo(...args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain('--crash')
    }
  })

  test('interrupted, it ends what it started and leaves nothing behind', async () => {
    for (const args of [[], ['--crash', '--seed', '1']]) {
      const child = spawn(process.execPath, [PROGRAM, 'demo', ...args], { env, cwd: dir })
      let told = ''
      child.stdout.on('data', (chunk: Buffer) => {
        told += chunk.toString()
      })
      const ended = once(child, 'exit')
      await waitUntil('a run is under way', () => told.includes('a detached runner took over'))
      child.kill('SIGINT')
      expect(await ended).toEqual([1, null])
      await waitUntil('nothing is left', () => processesLeft().length === 0)
    }
  })

  test('--fail shows each attempt of the retry budget, and the issue that failed', async () => {
    const { code, stdout } = await demo('--fail')
    expect(code).toBe(0)
    inOrder(
      stdout,
      'attempt 1 of 3 failed; the next one is due at ',
      'attempt 2 of 3 failed; the next one is due at ',
      'Issue #1 is open, in phase failed',
    )
    expect(stdout.match(/The worker ended with exit code 1\./g)).toHaveLength(3)
  })
})

const BRIDGE = join(import.meta.dirname, '..', '..', 'plugin-assets', 'worker-bridge.py')
const HARNESS = join(import.meta.dirname, '..', 'fixtures', 'bin', 'opencode')

/** What the fake harness noted about how it was called. */
type Call = Readonly<{
  argv: readonly string[]
  cwd: string
  pwd: string
  variables: readonly string[]
  stdin: string
  descriptor3: boolean
  files: readonly string[]
  prompt: string
}>

describe('does the reference bridge work under the daemon?', () => {
  let rig: ProgramRig

  beforeAll(async () => {
    rig = await openProgramRig({ config: { worker_command: BRIDGE, max_retries_per_issue: 1 } })
    copyFileSync(HARNESS, join(rig.dir, 'bin', 'opencode'))
  })
  afterAll(async () => {
    await rig.close()
  })

  const script = (...steps: readonly (readonly unknown[])[]): void => {
    rig.env['OPENCODE_FAKE_SCRIPT'] = JSON.stringify(steps)
  }
  const transcript = (): string =>
    readFileSync(rig.layout.run(newestRun(rig).runId).transcript, 'utf8')

  test('it hands the prompt to the harness, and the result becomes a pull request', async () => {
    const record = join(rig.dir, 'home', 'call.json')
    rig.env['OPENCODE_FAKE_RECORD'] = record
    script(
      ['print', 'Looking around.'],
      ['complain', 'Careful.'],
      ['write', 'app.txt', 'mended\n'],
      ['write', 'new file.txt', 'new\n'],
      ['print', 'Done.'],
      ['result'],
    )
    const number = await rig.openIssue({ title: 'Mend it', body: null })
    expect(await rig.tick()).toEqual(QUIET)
    delete rig.env['OPENCODE_FAKE_RECORD']
    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    expect(transcript()).toBe('Looking around.\nCareful.\nDone.\n')

    const { treePath, runId, branch } = newestRun(rig)
    const call = JSON.parse(readFileSync(record, 'utf8')) as Call
    const prompt = join(treePath, 'worker-prompt.md')
    expect(call).toMatchObject({
      argv: [
        'run',
        expect.stringContaining(prompt),
        '--agent',
        'gentle-orchestrator',
        '--title',
        `Run ${runId}`,
        '--file',
        prompt,
      ],
      cwd: treePath,
      pwd: treePath,
      stdin: 'null',
      descriptor3: true,
      prompt: expect.stringContaining('Mend it'),
    })
    expect(call.files).toEqual(
      expect.arrayContaining(['app.txt', 'worker-context.json', 'worker-prompt.md']),
    )
    expect(call.variables.filter((name) => name.includes('TOKEN'))).toEqual([])

    const { title, body, pull } = await rig.control('readIssue', {
      repo: rig.repo,
      number: rig.entry(number)?.pull?.number ?? 0,
    })
    expect({ title, head: pull?.headBranch }).toEqual({
      title: 'fix(core): do what the issue asks for',
      head: branch,
    })
    expect(body).toContain('Did what the issue asks for.')
    const changed = await rig.git('-C', rig.origin, 'diff', '--name-only', '-z', 'main', branch)
    expect(changed).toBe('app.txt\0new file.txt\0')
  })

  test.each([
    [
      'that ends with 0 but leaves no result',
      [['print', 'Nothing.']],
      3,
      'left no worker-result.json',
    ],
    ['that fails after it left a result', [['result'], ['exit', 9]], 9, ''],
    ['that is ended by a signal', [['result'], ['kill', 9]], 137, ''],
  ] as const)('a harness %s is a failed attempt', async (_, steps, code, said) => {
    script(...steps)
    const number = await rig.openIssue()
    expect((await rig.tick()).code).toBe(1)
    expect(rig.entry(number)).toMatchObject({
      phase: 'failed',
      lastError: { message: `The worker ended with exit code ${code}.` },
    })
    expect(transcript()).toContain(said)
  })

  test('a harness that is not installed is told in the transcript', async () => {
    rmSync(join(rig.dir, 'bin', 'opencode'))
    const folders = (rig.env['PATH'] ?? '').split(':')
    rig.env['PATH'] = folders.filter((folder) => !existsSync(join(folder, 'opencode'))).join(':')
    const number = await rig.openIssue()
    expect((await rig.tick()).code).toBe(1)
    expect(rig.entry(number)?.lastError?.message).toBe('The worker ended with exit code 127.')
    expect(transcript()).toContain('worker-bridge: the harness was not found;')
  })
})
