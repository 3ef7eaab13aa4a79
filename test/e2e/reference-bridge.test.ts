import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import { newestRun, QUIET } from '../support/program-views.ts'

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
