import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Phase } from '../../daemon/core/queue.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { bridge, LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'

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
