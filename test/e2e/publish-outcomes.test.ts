import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { Phase } from '../../daemon/core/queue-state.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import {
  bridge,
  type Finished,
  LABELS,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import {
  branchesOf,
  bridgeByIssue,
  gatedBridge,
  openGate,
  readWorld,
  reportOf,
  resultOf,
  startedWorkers,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }
const ALL_AT_ONCE = { worker_parallelism: 8, max_runs_per_repo: 0 }
const EDIT = "open('app.txt', 'a').write('mended\\n')"

describe('what becomes of a finished worker’s work?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig(options)
  }
  afterEach(async () => {
    await rig.close()
  })

  const issue = async (number: number) => rig.control('readIssue', { repo: rig.repo, number })

  test('a forbidden word anywhere in the texts stops everything before the first write, and the work is kept', async () => {
    const fields = [
      { pull_request_title: 'fix: as Hermes wanted' },
      { summary: 'Written by OpenCode.' },
      { commit_message: 'fix: mend it\n\nCo-authored-by: Gentle-AI' },
      { artifacts: { tool: { name: 'engram' } } },
    ]
    await open({
      config: ALL_AT_ONCE,
      bridge: bridgeByIssue({
        1: `${EDIT}\n${resultOf(fields[0] ?? {})}`,
        2: `${EDIT}\n${resultOf(fields[1] ?? {})}`,
        3: `${EDIT}\n${resultOf(fields[2] ?? {})}`,
        4: `${EDIT}\n${resultOf(fields[3] ?? {})}`,
        // Names of files and of the commit's author are exempt.
        5: "open('hermes-opencode.txt', 'w').write('engram')\nresult({})",
        6: `${EDIT}\n${resultOf(fields[1] ?? {})}`,
      }),
    })
    for (const _ of [1, 2, 3, 4, 5]) await rig.openIssue()
    await rig.openIssue({ labels: [LABELS.investigation] })

    const told = await rig.tick()

    const expected = [
      [1, 'pull request title', 'hermes'],
      [2, 'pull request body', 'opencode'],
      [3, 'commit message', 'gentle-ai'],
      [4, 'pull request body', 'engram'],
      [6, 'comment', 'opencode'],
    ] as const
    expect(told).toMatchObject({ code: 1, stdout: '' })
    expect(told.stderr.trim().split('\n')).toHaveLength(expected.length)
    for (const [number, where, word] of expected) {
      const { treePath = '' } = rig.journals().find(({ key }) => key.number === number) ?? {}
      const message = `The ${where} contains the forbidden word "${word}"; nothing was published.`
      expect(rig.entry(number)).toMatchObject({
        phase: 'needs_attention',
        attempts: 0,
        lastError: { code: 'publish/forbidden-word', message },
        blocked: {
          source: 'publish/forbidden-word',
          hint: expect.stringContaining(`The work is kept at ${treePath}.`),
        },
      })
      expect(told.stderr).toContain(`octo/app#${number} needs attention: ${message}`)
      expect(readFileSync(join(treePath, 'app.txt'), 'utf8')).toBe('broken\nmended\n')
      expect(await issue(number)).toMatchObject({ state: 'open', comments: [] })
    }
    expect(rig.entry(5)?.phase).toBe('awaiting_review')
    expect(await branchesOf(rig)).toEqual([expect.stringMatching(/^automation\/issue-5-/)])
    expect((await writesOf(rig)).filter((line) => !/issues\/5\b|pulls$/.test(line))).toEqual([])
    expect((await writesOf(rig)).filter((line) => line.endsWith('pulls'))).toHaveLength(1)
  })

  test('people mentioned and issues promised by a worker are left in peace; code stays as it is', async () => {
    await open({
      bridge: bridge(
        `${EDIT}\n${resultOf({
          summary:
            'Thanks @alice and @org/team. Fixes #2, closes octo/app#2.\nIt fixes\n#2 too.\n\nSee `@decorator` and:\n\n```\n@decorator closes #2\n```',
          commit_message: 'fix: mend it (closes #2)\n\nResolves #2 for @alice.',
          pull_request_title: 'fix: mend it for @alice, fixes #2',
        })}`,
      ),
    })
    await rig.openIssue()
    await rig.openIssue({ labels: [] })

    expect(await rig.tick()).toEqual(SILENT)

    const pull = await issue(3)
    const summary =
      'Thanks @ alice and @ org/team. Fixes # 2, closes octo/app# 2.\nIt fixes\n# 2 too.\n\nSee `@decorator` and:\n\n```\n@decorator closes #2\n```'
    expect(pull.title).toBe('fix: mend it for @ alice, fixes # 2')
    expect(pull.body).toContain(`Closes #1\n\n${summary}\n\n<!-- automation-run:`)
    const [comment] = (await issue(1)).comments
    expect(comment?.body).toContain(`Pull request #3 is ready for review.\n\n${summary}\n\n<!--`)
    const message = await rig.git(
      '-C',
      rig.origin,
      'log',
      '-1',
      '--format=%B',
      pull.pull?.headBranch ?? '',
    )
    expect(message.trim()).toBe('fix: mend it (closes # 2)\n\nResolves # 2 for @ alice.')

    await rig.control('mergePull', { repo: rig.repo, number: 3 })
    expect(await issue(2)).toMatchObject({ state: 'open', stateReason: null })
  })

  test('a success without a change is told on the issue, and a human is asked, once', async () => {
    const summary = 'It already does what the issue asks for.'
    await open({ bridge: bridge(resultOf({ summary })) })
    const number = await rig.openIssue()

    const told = await rig.tick()

    expect(told).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'caduceus: octo/app#1 needs attention: The worker succeeded but changed nothing. Read its summary on the issue; labelling the issue anew also begins again. To try again: caduceus queue reprocess octo/app#1\n',
    })
    expect(rig.entry(number)).toMatchObject({
      phase: 'needs_attention',
      attempts: 0,
      lastError: { code: 'publish/no-changes' },
      blocked: { source: 'publish/no-changes' },
    })
    expect(await writesOf(rig)).toEqual(['POST /repos/octo/app/issues/1/comments'])
    expect(await branchesOf(rig)).toEqual([])
    const { body, state, labels, ...rest } = await issue(number)
    expect({ state, labels }).toEqual({ state: 'open', labels: [LABELS.code] })
    expect(body).toBe('It says "broken".')
    expect(rest.comments.map((comment) => comment.body)).toEqual([
      expect.stringMatching(
        /^No change was needed, or none could be made\. Nothing was published\.\n\nIt already does what the issue asks for\.\n\n<!-- automation-run:\S+ kind:no-changes generation:1 -->$/,
      ),
    ])

    const world = await readWorld(rig)
    expect(await rig.tick()).toEqual(SILENT)
    expect(await readWorld(rig)).toEqual(world)
    expect((await reportOf(rig)).blocked_issues).toHaveLength(1)
  })

  test('an issue withdrawn while it waits is skipped with the reason, and no worker starts for it', async () => {
    await open({ config: { max_issues_per_tick: 1 } })
    for (const _ of [1, 2, 3]) await rig.openIssue()
    await rig.tick()
    expect([2, 3].map((number) => rig.entry(number)?.phase)).toEqual(['queued', 'queued'])

    await rig.control('unlabelIssue', { repo: rig.repo, number: 2, label: LABELS.code })
    await rig.control('closeIssue', { repo: rig.repo, number: 3 })
    // As cron polls: by what has changed, since neither is listed by its label any more.
    rig.clock.advance(120_000)
    expect(await rig.run('run', '--wait')).toEqual(SILENT)

    expect(rig.entry(2)).toMatchObject({
      phase: 'skipped',
      lastError: { code: 'issue/withdrawn', message: expect.stringContaining('label was removed') },
    })
    expect(rig.entry(3)).toMatchObject({
      phase: 'skipped',
      lastError: { code: 'issue/withdrawn', message: expect.stringContaining('was closed') },
    })
    expect(rig.journals()).toHaveLength(1)
    expect(await branchesOf(rig)).toHaveLength(1)
  })

  test('an issue withdrawn while its worker is busy is skipped: nothing is pushed or written', async () => {
    await open({ config: ALL_AT_ONCE, bridge: gatedBridge() })
    await rig.control('createRepository', { repo: 'octo/elsewhere' })
    for (const _ of [1, 2, 3, 4]) await rig.openIssue()
    const ticking = rig.tick()
    await startedWorkers(rig, 4)

    await rig.control('unlabelIssue', { repo: rig.repo, number: 1, label: LABELS.code })
    await rig.control('closeIssue', { repo: rig.repo, number: 2 })
    await rig.control('labelIssue', { repo: rig.repo, number: 3, label: LABELS.investigation })
    await rig.control('transferIssue', { repo: rig.repo, number: 4, to: 'octo/elsewhere' })
    const world = await readWorld(rig, 'octo/elsewhere')
    await rig.control('clearRequests')
    openGate(rig)

    expect(await ticking).toEqual(SILENT)
    const messages = [1, 2, 3, 4].map((number) => {
      const { phase, attempts, lastError } = rig.entry(number) ?? {}
      return `${phase} ${attempts} ${lastError?.message}`
    })
    expect(messages).toEqual([
      'skipped 0 octo/app#1 was withdrawn: its label was removed.',
      'skipped 0 octo/app#2 was withdrawn: it was closed.',
      'skipped 0 octo/app#3 has both trigger labels.',
      'skipped 0 octo/app#4 was withdrawn: it moved to octo/elsewhere#1.',
    ])
    expect(await writesOf(rig)).toEqual([])
    expect(await readWorld(rig, 'octo/elsewhere')).toEqual(world)
    // The work of a worker that had succeeded is kept for a while.
    expect(treesOf(rig)).toHaveLength(4)
    for (const { runId } of rig.journals()) {
      expect(existsSync(rig.layout.run(runId).result)).toBe(true)
    }
  })

  test('close_issue and remove_label_on_completion are obeyed, and a label that stays starts nothing', async () => {
    await open({ config: { close_issue: 'merge', remove_label_on_completion: false } })
    const first = await rig.openIssue()
    await rig.tick()
    expect(await issue(first)).toMatchObject({ state: 'open', labels: [LABELS.code] })
    expect((await issue(2)).body).toMatch(/^Closes #1\n/)
    expect(rig.entry(first)?.phase).toBe('awaiting_review')
    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    expect((await issue(first)).state).toBe('closed') // by GitHub itself

    rig.setConfig({ close_issue: 'never' })
    const second = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(first)?.phase).toBe('done')
    expect((await issue(4)).body).toMatch(/^Refs #3\n/)
    await rig.control('mergePull', { repo: rig.repo, number: 4 })
    expect(await issue(second)).toMatchObject({ state: 'open', labels: [LABELS.code] })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(second)).toMatchObject({ phase: 'done', generation: 1 })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(2)
    const writes = await writesOf(rig)
    expect(writes.filter((line) => !line.startsWith('POST'))).toEqual([])
    expect(writes).toHaveLength(4)
  })
})

/** What a worker does, in Python, and what has to come of it. */
type Bad = Readonly<{ does: string; phase?: Phase; code?: string; message?: string }>

const UNREADABLE = 'worker/result-unreadable'
const INVALID = 'worker/result-invalid'
const notValid = (reason: string) => `worker-result.json is not valid: ${reason}.`
const notRead = (reason: string) => `worker-result.json cannot be read: ${reason}.`

/** By the title of the issue. Unless said otherwise the issue ends as failed. */
const BAD: Readonly<Record<string, Bad>> = {
  'no result': {
    does: 'pass',
    code: 'worker/result-missing',
    message: 'The worker left no worker-result.json.',
  },
  'a directory': {
    does: "os.mkdir('worker-result.json')",
    code: UNREADABLE,
    message: notRead('it is not a regular file'),
  },
  'a symbolic link': {
    does: "valid('elsewhere.json'); os.symlink('elsewhere.json', 'worker-result.json')",
    code: UNREADABLE,
    message: notRead('it is a symbolic link'),
  },
  'a pipe': {
    does: "os.mkfifo('worker-result.json')",
    code: UNREADABLE,
    message: notRead('it is not a regular file'),
  },
  'more than 1 MiB': {
    does: "result({'artifacts': {'a': 'x' * 1024 * 1024}})",
    code: UNREADABLE,
    message: notRead('it is too large'),
  },
  'not UTF-8': {
    does: 'raw(b\'{"status": "\\xff"}\')',
    code: UNREADABLE,
    message: notRead('it is not UTF-8'),
  },
  'not JSON': {
    does: "raw(b'status: success')",
    code: UNREADABLE,
    message: notRead('it is not JSON'),
  },
  'an empty file': { does: "raw(b'')", code: UNREADABLE, message: notRead('it is not JSON') },
  'a list': { does: "raw(b'[]')", code: INVALID, message: notValid('it is not a JSON object') },
  'a number as summary': {
    does: "result({'summary': 1})",
    code: INVALID,
    message: notValid('the field summary is not a text'),
  },
  'a list of artifacts': {
    does: "result({'artifacts': []})",
    code: INVALID,
    message: notValid('the field artifacts is not an object'),
  },
  'no commit message': {
    does: "without('commit_message')",
    code: INVALID,
    message: notValid('the field commit_message is missing'),
  },
  'a status that is no text': {
    does: "result({'status': True})",
    code: INVALID,
    message: notValid('the field status is not a text'),
  },
  'a field of its own': {
    does: "result({'notes': 'x'})",
    code: INVALID,
    message: notValid('it has the unknown field "notes"'),
  },
  'the field investigation': {
    does: "result({'investigation': False})",
    code: INVALID,
    message: notValid('it has the unknown field "investigation"'),
  },
  'a key twice': {
    does: `raw(b'{"status": "failure", "status": "success"}')`,
    code: INVALID,
    message: notValid('the key "status" stands twice'),
  },
  'a reserved key': {
    does: "result({'artifacts': {'__proto__': {'summary': 'x'}}})",
    code: INVALID,
    message: notValid('the key "__proto__" is not allowed'),
  },
  'a deep nest': {
    does: "raw(b'{\"artifacts\": ' + b'[' * 100000 + b']' * 100000 + b'}')",
    code: INVALID,
    message: notValid('it is nested deeper than 32 levels'),
  },
  'a NUL': {
    does: "result({'summary': 'a\\0b'})",
    code: INVALID,
    message: notValid('the field summary has a NUL character'),
  },
  'half a character': {
    does: "result({'pull_request_title': 'a\\ud83d'})",
    code: INVALID,
    message: notValid('the field pull_request_title has half a character (an unpaired surrogate)'),
  },
  'two lines as title': {
    does: "result({'pull_request_title': 'one\\ntwo'})",
    code: INVALID,
    message: notValid('the field pull_request_title has a control character or more than one line'),
  },
  'a blank summary': {
    does: "result({'summary': ' \\n\\t'})",
    code: INVALID,
    message: notValid('the field summary is blank'),
  },
  'the status failure': {
    does: "result({'status': 'failure', 'summary': 'The tests need a database.\\nMore.'})",
    code: 'worker/reported-failure',
    message: 'The worker reported status "failure": The tests need a database.',
  },
  'the status Success': {
    does: "result({'status': 'Success'})",
    code: 'worker/reported-failure',
    message: 'The worker reported status "Success": Mended the application.',
  },
  'exit code 3 with a result': {
    does: 'result({}); sys.exit(3)',
    code: 'worker/exited',
    message: 'The worker ended with exit code 3.',
  },
  'its own crash': {
    does: 'result({}); sys.stdout.flush(); os.kill(os.getpid(), 11)',
    code: 'worker/exited',
    message: 'The worker ended with SIGSEGV.',
  },
  'a signal from elsewhere': {
    does: 'result({}); os.kill(os.getpid(), 15)',
    phase: 'needs_attention',
    code: 'worker/interrupted',
    message: 'The run was cut off before the worker finished (the worker received SIGTERM).',
  },
}

/** Results that are odd and good. */
const ODD = {
  'a title of 300 characters': "result({'pull_request_title': 'ä' * 300})",
  'a title of 256 emoji': "result({'pull_request_title': '🤖' * 256})",
  'a process left behind': `
    import subprocess
    child = subprocess.Popen(['sleep', '600'], start_new_session=True)
    open(os.path.join(os.environ['HOME'], 'left-behind'), 'w').write(str(child.pid))
    result({})`,
  'no change': "undo(); result({'summary': 'There is nothing to mend.'})",
} as const satisfies Record<string, string>

const ACTS = [
  ...Object.entries(BAD).map(([title, { does }]) => [title, does]),
  ...Object.entries(ODD),
]

const BRIDGE = bridge(`
def raw(content):
    with open('worker-result.json', 'wb') as stream:
        stream.write(content)
def valid(path):
    result({})
    os.rename('worker-result.json', path)
def without(field):
    result({})
    whole = json.load(open('worker-result.json'))
    del whole[field]
    raw(json.dumps(whole).encode())
def undo():
    open('app.txt', 'w').write('broken\\n')
open('app.txt', 'a').write('mended\\n')
title = os.environ['CADUCEUS_ISSUE_TITLE']
print('working on', title, flush=True)
${ACTS.map(([title, does = '']) => `if title == ${JSON.stringify(title)}:\n    ${does.trim()}`).join('\n')}
`)

describe('what becomes of a worker whose result is odd or bad?', () => {
  let rig: ProgramRig
  let told = ''
  const numbers = new Map<string, number>()
  const numberOf = (title: string): number => numbers.get(title) ?? 0

  beforeAll(async () => {
    rig = await openProgramRig({
      bridge: BRIDGE,
      config: { worker_parallelism: 40, max_runs_per_repo: 0, max_retries_per_issue: 1 },
    })
    for (const [title = ''] of ACTS) numbers.set(title, await rig.openIssue({ title }))
    // An interruption is tried again at once, so several ticks are needed.
    for (let isQueued = true; isQueued; ) {
      const { code, stdout, stderr } = await rig.tick()
      expect({ code, stdout }).toEqual({ code: stderr === '' ? 0 : 1, stdout: '' })
      told += stderr
      isQueued = (await rig.status()).report?.phases.queued !== 0
    }
  }, 180_000)
  afterAll(async () => {
    await rig.close()
  })

  test.each(Object.entries(BAD))('%s is a failed attempt', (title, bad) => {
    const { phase = 'failed', code, message } = bad
    const entry = rig.entry(numberOf(title))
    const attempts = phase === 'failed' ? 1 : 0
    expect(entry).toMatchObject({ phase, attempts, lastError: { code, message }, pull: null })
    expect(told).toContain(`octo/app#${numberOf(title)} needs attention: ${message}`)
    const transcript = rig.layout.run(entry?.lastRunId ?? '').transcript
    expect(readFileSync(transcript, 'utf8')).toBe(`working on ${title}\n`)
  })

  test('a failed attempt publishes nothing and leaves label and issue alone', async () => {
    const issues = await rig.control('listIssues', { repo: rig.repo })
    for (const title of Object.keys(BAD)) {
      const issue = issues.find(({ number }) => number === numberOf(title))
      expect(issue).toMatchObject({ state: 'open', labels: [LABELS.code], comments: [] })
    }
    expect(issues.filter(({ pull }) => pull !== null)).toHaveLength(3)
  })

  test('a signal from elsewhere costs no attempt and is tried again three times', () => {
    const number = numberOf('a signal from elsewhere')
    expect(rig.entry(number)).toMatchObject({ interruptions: 3 })
    expect(rig.journals().filter(({ key }) => key.number === number)).toHaveLength(4)
  })

  test('a long title is shortened to 255 characters and an ellipsis', async () => {
    expect(await pullTitleOf('a title of 300 characters')).toBe(`${'ä'.repeat(255)}…`)
  })

  test('256 emoji are a title of 256 characters', async () => {
    expect(await pullTitleOf('a title of 256 emoji')).toBe('🤖'.repeat(256))
  })

  test('a process that holds the output open does not hold up the run and is ended', () => {
    expect(rig.entry(numberOf('a process left behind'))?.phase).toBe('awaiting_review')
    const pid = Number(readFileSync(join(rig.dir, 'home', 'left-behind'), 'utf8'))
    expect(identifyProcess(pid)).toBeNull()
  })

  test('a success without change is told on the issue, once, and not tried again', async () => {
    const number = numberOf('no change')
    expect(rig.entry(number)).toMatchObject({
      phase: 'needs_attention',
      attempts: 0,
      lastError: {
        code: 'publish/no-changes',
        message: 'The worker succeeded but changed nothing.',
      },
    })
    const { comments, state } = await rig.control('readIssue', { repo: rig.repo, number })
    expect(state).toBe('open')
    expect(comments).toHaveLength(1)
    expect(comments[0]?.body).toContain('There is nothing to mend.')
  })

  test('status counts them all and names what to do about those that need attention', async () => {
    const { code, stdout } = await rig.run('status')
    expect(code).toBe(0)
    expect(stdout).toContain(`    failed: ${Object.keys(BAD).length - 1}\n`)
    expect(stdout).toContain('    needs_attention: 2\n')
    const { report } = await rig.status()
    expect(report?.blocked_issues.map(({ blocked_source }) => blocked_source)).toEqual([
      'worker/interrupted',
      'publish/no-changes',
    ])
  })

  const pullTitleOf = async (title: string): Promise<string> => {
    const number = rig.entry(numberOf(title))?.pull?.number ?? 0
    return (await rig.control('readIssue', { repo: rig.repo, number })).title
  }
})
