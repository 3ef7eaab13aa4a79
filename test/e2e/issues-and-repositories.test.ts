import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import {
  BOT,
  bridge,
  type Finished,
  LABELS,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import {
  addRepository,
  branchesOf,
  describeRequest,
  readWorld,
  reportOf,
  writesOf,
} from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }

/** The selector that asks for the colourful form; GitHub adds and drops it (case C12). */
const SELECTOR = '\uFE0F'

describe('which labels start a run, and are they taken off again?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig(options)
  }
  afterEach(async () => {
    await rig.close()
  })

  const issue = async (number: number) => rig.control('readIssue', { repo: rig.repo, number })

  test('both labels at once are ambiguous: nothing is claimed until one is removed', async () => {
    await open()
    const number = await rig.openIssue({ labels: [LABELS.code, LABELS.investigation] })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toBeUndefined()
    expect(rig.journals()).toEqual([])
    const { diagnostics, phases } = await reportOf(rig)
    expect(diagnostics).toEqual([
      expect.objectContaining({
        code: 'ambiguous-labels',
        issue: 'octo/app#1',
        message: 'Both trigger labels are set; remove one.',
      }),
    ])
    expect(Object.values(phases)).toEqual(Array(8).fill(0))
    expect((await rig.run('status')).stdout).toContain('octo/app#1: Both trigger labels are set')

    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'done', ticket: 'investigation' })
  })

  test('a queued issue that gets the other label too is not worked on until one of them is gone', async () => {
    await open({ config: { max_issues_per_tick: 1 } })
    await rig.openIssue()
    const number = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('queued')
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.investigation })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'skipped',
      attempts: 0,
      lastError: { code: 'issue/ambiguous', message: 'octo/app#2 has both trigger labels.' },
    })
    expect(rig.journals().filter(({ base }) => base !== null)).toHaveLength(1)

    rig.clock.advance(60_000)
    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'done', ticket: 'investigation' })
  })

  // Configured and as the issue has them, for each kind of ticket.
  const SPELLINGS = [
    {
      code: [LABELS.code, `🤖${SELECTOR} auto-fix`],
      investigation: [`🔎${SELECTOR} Look, please`, '🔎 look, PLEASE'],
    },
    {
      code: ['bots/auto 100%2F?#&+', 'bots/Auto 100%2F?#&+'],
      investigation: ['LOOK', 'look'],
    },
  ] as const

  test.each(SPELLINGS)(
    'labels are found and removed as the issue spells them: %j',
    async (labels) => {
      const [code, investigation] = [labels.code, labels.investigation]
      await open({
        config: {
          ticket_label_code: code[0],
          ticket_label_investigation: investigation[0],
          worker_parallelism: 2,
          max_runs_per_repo: 0,
        },
      })
      await rig.openIssue({ labels: [code[1], 'unrelated'] })
      await rig.openIssue({ labels: [investigation[1]] })
      rig.clock.advance(3 * 3_600_000) // not changed for long: only their labels show them

      expect(await rig.tick()).toEqual(SILENT)
      expect([1, 2].map((number) => rig.entry(number)?.phase)).toEqual(['awaiting_review', 'done'])
      expect((await issue(1)).labels).toEqual(['unrelated'])
      expect((await issue(2)).labels).toEqual([])
      expect(await writesOf(rig)).toEqual(
        expect.arrayContaining([
          `DELETE /repos/octo/app/issues/1/labels/${encodeURIComponent(code[1])}`,
          `DELETE /repos/octo/app/issues/2/labels/${encodeURIComponent(investigation[1])}`,
        ]),
      )
    },
  )

  test('a label that is gone when we remove it counts as removed', async () => {
    await open()
    const number = await rig.openIssue()
    await rig.control('addFault', {
      route: 'DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}',
      action: { kind: 'answer', status: 404, body: { message: 'Label does not exist' } },
    })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'awaiting_review', lastError: null })
    expect((await issue(number)).state).toBe('closed')
  })

  test('a pull request that carries the label is no issue: there is a note and no work', async () => {
    await open()
    await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'by-hand',
      files: { 'app.txt': 'by hand\n' },
    })
    const { number } = await rig.control('createPull', {
      repo: rig.repo,
      title: 'By hand',
      body: null,
      head: 'by-hand',
      base: 'main',
    })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code })
    const world = await readWorld(rig)

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toEqual([])
    expect(rig.entry(number)).toBeUndefined()
    expect((await reportOf(rig)).diagnostics).toEqual([
      expect.objectContaining({
        code: 'pull-request-labelled',
        issue: `octo/app#${number}`,
        message: expect.stringContaining('only issues are worked on'),
      }),
    ])
    expect(await readWorld(rig)).toEqual(world)
  })

  test('comments, our own and those of other bots, never start anything', async () => {
    await open({ config: { remove_label_on_completion: false, close_issue: 'never' } })
    const number = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    await rig.control('createAccount', { login: 'chatter[bot]', kind: 'Bot' })

    for (const actor of [BOT, 'chatter[bot]', 'alice']) {
      const body = `Again please. ${LABELS.code}`
      await rig.control('commentIssue', { repo: rig.repo, number, actor, body })
      await rig.control('commentIssue', { repo: rig.repo, number: 2, actor, body })
    }
    const world = await readWorld(rig)
    rig.clock.advance(120_000)
    expect(await rig.run('run', '--wait')).toEqual(SILENT) // asks for what has changed
    expect(await rig.tick()).toEqual(SILENT) // asks for the labels
    expect(await readWorld(rig)).toEqual(world)

    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    await rig.control('commentIssue', { repo: rig.repo, number, actor: BOT, body: 'Again.' })
    await rig.tick()
    expect(rig.entry(number)).toMatchObject({ phase: 'done', generation: 1 })
    expect(rig.journals()).toHaveLength(1)
    const { entries } = await rig.control('readRequests', { method: 'POST' })
    expect(entries.map(describeRequest)).toHaveLength(2)
  })
})

/** Notes what it was given under the number of its issue, then does its work. */
const NOTING_BRIDGE = bridge(`
given = {name: value for name, value in os.environ.items() if name.startswith('CADUCEUS_')}
seen = {
    'variables': given,
    'prompt': open(given['CADUCEUS_PROMPT_FILE'], newline='').read(),
    'context': json.load(open(given['CADUCEUS_CONTEXT_FILE'])),
}
with open(os.path.join(os.environ['HOME'], given['CADUCEUS_ISSUE_NUMBER'] + '.json'), 'w') as stream:
    json.dump(seen, stream)
open('app.txt', 'a').write('mended\\n')
result({})
`)

type Seen = Readonly<{
  variables: Readonly<Record<string, string>>
  prompt: string
  context: Readonly<{
    issue_title: string
    issue_body: string
    labels: readonly string[]
    comments: readonly Readonly<{ author: string; body: string }>[]
    trusted_comments: readonly Readonly<{ author: string }>[]
  }>
}>

const ODD_LABELS = ['a, b', 'x/y', '100 %', '"quoted"', '😀 é', '`tick`', '<b>']
const HUGE = `${'ä'.repeat(100_000)}the end`
const FENCES = '```\nEnd of the task.\n````\n{{title}} {{context}} $& $1 `````js\n~~~'

describe('does the job go on whatever an issue is like?', () => {
  let rig: ProgramRig
  let numbers: Readonly<Record<keyof ReturnType<typeof issues>, number>>

  const issues = () =>
    ({
      'no text': { body: null },
      'an empty text': { body: '' },
      'odd labels': { labels: [...ODD_LABELS, LABELS.code] },
      'line ends': { body: 'one\r\ntwo\rthree\u0000four\u2028five\n' },
      'much text': { body: HUGE },
      fences: { title: '`{{body}}`', body: FENCES },
      'no title': {},
      'no author': {},
      comments: {},
      'no number': {},
      'no time': {},
    }) as const

  const overlay = async (name: keyof typeof numbers, fields: Readonly<Record<string, unknown>>) =>
    rig.control('editIssue', { repo: rig.repo, number: numbers[name], overlay: fields })

  const seen = (name: keyof typeof numbers): Seen => {
    const path = join(rig.dir, 'home', `${numbers[name]}.json`)
    return JSON.parse(readFileSync(path, 'utf8')) as Seen
  }

  beforeAll(async () => {
    rig = await openProgramRig({
      bridge: NOTING_BRIDGE,
      config: {
        worker_parallelism: 20,
        max_runs_per_repo: 0,
        comment_ignore_patterns: [String.raw`\[bot\]$`],
        feedback_author_allowlist: ['carol'],
      },
    })
    const made: Record<string, number> = {}
    for (const name of ODD_LABELS)
      await rig.control('createLabel', { repo: rig.repo, name, color: '7C3AED' })
    for (const [name, issue] of Object.entries(issues())) made[name] = await rig.openIssue(issue)
    numbers = made as typeof numbers
    await overlay('no title', { title: null })
    await overlay('no author', { user: null })
    await overlay('no number', { number: null })
    await overlay('no time', { updated_at: null, created_at: 'yesterday' })
    await say(BOT, 'Said by the daemon itself.')
    await say('ci[bot]', 'Said by a machine.')
    await say('bob', 'Said by somebody.')
    await say('carol', 'Said by a trusted person.')
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
  }, 120_000)
  afterAll(async () => {
    await rig.close()
  })

  test('every issue that can be read becomes a pull request', () => {
    const unreadable = [numbers['no number'], numbers['no time']]
    for (const number of Object.values(numbers)) {
      const phase = unreadable.includes(number) ? undefined : 'awaiting_review'
      expect(rig.entry(number)?.phase).toBe(phase)
    }
  })

  test('what cannot be read as an issue is told in status and hinders nothing', async () => {
    const { report } = await rig.status()
    expect(report?.recent_errors).toEqual([])
    const [diagnostic, ...others] = report?.diagnostics ?? []
    expect(others).toEqual([])
    expect(diagnostic).toMatchObject({ code: 'malformed-issue', issue: 'octo/app' })
    expect(diagnostic?.message).toContain(`#${numbers['no time']} has no usable time of change`)
    expect(diagnostic?.message).toMatch(/entry \d+ of the list has no usable number/)
    expect((await rig.run('status')).stdout).toContain(`octo/app: ${diagnostic?.message}\n`)
  })

  test('an issue without text has an empty one', () => {
    for (const name of ['no text', 'an empty text'] as const) {
      const { variables, context } = seen(name)
      expect(variables['CADUCEUS_ISSUE_BODY']).toBe('')
      expect(context.issue_body).toBe('')
    }
  })

  test('an issue without title has an empty one', () => {
    const { variables, context } = seen('no title')
    expect(variables['CADUCEUS_ISSUE_TITLE']).toBe('')
    expect(context.issue_title).toBe('')
  })

  test('all labels reach the worker as they are', () => {
    const { variables, prompt, context } = seen('odd labels')
    const labels = [...ODD_LABELS, LABELS.code].sort()
    expect(JSON.parse(variables['CADUCEUS_ISSUE_LABELS_JSON'] ?? '')).toEqual(context.labels)
    expect([...context.labels].sort()).toEqual(labels)
    for (const label of labels) expect(prompt).toContain(JSON.stringify(label))
  })

  test('line ends stay as they are; a NUL cannot stand in a variable and is replaced there alone', () => {
    const { variables, prompt, context } = seen('line ends')
    expect(variables['CADUCEUS_ISSUE_BODY']).toBe('one\r\ntwo\rthree\uFFFDfour\u2028five\n')
    expect(context.issue_body).toBe(issues()['line ends'].body)
    expect(prompt).toContain(issues()['line ends'].body)
  })

  test('a text too long for a variable is cut there between characters; the files hold the whole', () => {
    const { variables, prompt, context } = seen('much text')
    const cut = variables['CADUCEUS_ISSUE_BODY'] ?? ''
    const [, kept = '', left = ''] = /^(ä+)\.\.\.<truncated (\d+) bytes>$/.exec(cut) ?? []
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(120 * 1024)
    expect(Buffer.byteLength(cut)).toBeGreaterThan(119 * 1024)
    expect(Buffer.byteLength(kept) + Number(left)).toBe(Buffer.byteLength(HUGE))
    expect(variables['CADUCEUS_CONTEXT_JSON']).toMatch(/\.\.\.<truncated \d+ bytes>$/)
    expect(context.issue_body).toBe(HUGE)
    expect(prompt).toContain(HUGE)
  })

  test('text that looks like a fence or a placeholder stays text inside a longer fence', () => {
    const { prompt } = seen('fences')
    expect(prompt).toContain('\n```text\n`{{body}}`\n```\n')
    expect(prompt).toContain(`\n\`\`\`\`\`\`text\n${FENCES}\n\`\`\`\`\`\`\n`)
    expect(prompt.endsWith('\nEnd of the task.\n')).toBe(true)
  })

  test('a worker sees what people said, and nothing of the daemon or of ignored authors', () => {
    const { context, prompt } = seen('comments')
    expect(context.comments.map(({ author, body }) => [author, body])).toEqual([
      ['bob', 'Said by somebody.'],
      ['carol', 'Said by a trusted person.'],
    ])
    expect(context.trusted_comments.map(({ author }) => author)).toEqual(['carol'])
    expect(prompt).not.toContain('Said by the daemon itself.')
    expect(prompt).not.toContain('Said by a machine.')
  })

  test('what the daemon or a machine says on a finished issue starts nothing', async () => {
    const before = rig.entry(numbers.comments)
    for (const actor of [BOT, 'ci[bot]']) await say(actor, 'Please try again.')
    await rig.control('reopenIssue', { repo: rig.repo, number: numbers.comments })
    rig.clock.advance(3_600_000)
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(numbers.comments)).toEqual(before)
  })

  const say = async (actor: string, body: string): Promise<unknown> =>
    rig.control('commentIssue', { repo: rig.repo, number: numbers.comments, actor, body })
})

describe('is each watched repository served as it is, and for itself?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig(options)
  }
  afterEach(async () => {
    await rig.close()
  })

  const requestsOf = async (repository: string) => rig.control('readRequests', { repository })
  const openIssueIn = async (repo: string) =>
    rig.control('createIssue', { repo, title: 'It is broken', labels: ['🤖 auto-fix'] })

  test('one without a usable clone is not asked about at all and told in status; the others go on', async () => {
    await open({ config: { watched_repos: ['octo/none', 'octo/wrong', 'octo/plain', 'octo/app'] } })
    const none = await addRepository(rig, 'octo/none', { isCloned: false })
    const wrong = await addRepository(rig, 'octo/wrong')
    const plain = await addRepository(rig, 'octo/plain')
    await rig.git('-C', wrong.clone, 'remote', 'set-url', 'origin', rig.origin)
    rmSync(join(plain.clone, '.git'), { recursive: true })
    for (const repo of ['octo/none', 'octo/wrong', 'octo/plain']) await openIssueIn(repo)
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)

    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    for (const repo of ['octo/none', 'octo/wrong', 'octo/plain']) {
      expect((await requestsOf(repo)).entries).toEqual([])
    }
    const { recent_errors, last_outcome } = await reportOf(rig)
    expect(last_outcome).toBe('processed')
    expect(recent_errors).toHaveLength(3)
    expect(recent_errors).toEqual(
      expect.arrayContaining(
        [
          `octo/none: octo/none has no clone at ${none.clone}.`,
          `octo/wrong: The clone ${wrong.clone} has origin ${rig.origin}, not octo/wrong on 127.0.0.1.`,
          `octo/plain: ${plain.clone} is not a git repository.`,
        ].map((line) =>
          expect.stringMatching(new RegExp(`^\\S+Z ${line.replaceAll('.', '\\.')}$`)),
        ),
      ),
    )

    // Mended, it is served by the next tick and no longer complained about.
    await rig.git('clone', '--quiet', none.gitPath, none.clone)
    rig.setConfig({ watched_repos: ['octo/none', 'octo/app'] })
    expect(await rig.tick()).toEqual(SILENT)
    expect(await branchesOf(rig, 'octo/none')).toHaveLength(1)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })

  test('the default branch is what GitHub says it is, not main', async () => {
    await open({ defaultBranch: 'develop' })
    await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'old-release',
      files: { 'app.txt': 'of another line\n', 'old.txt': 'x\n' },
    })
    // What the operator has checked out, and how far behind it is, does not matter.
    await rig.git('-C', rig.clone, 'checkout', '--quiet', '-b', 'topic')
    const { oid } = await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'develop',
      files: { 'newer.txt': 'pushed after the clone was made\n' },
    })
    await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)

    const { pull } = await rig.control('readIssue', { repo: rig.repo, number: 2 })
    expect(pull).toMatchObject({ baseBranch: 'develop', baseOid: oid })
    const branch = pull?.headBranch ?? ''
    expect(await rig.git('-C', rig.origin, 'diff', '--name-status', 'develop', branch)).toBe(
      'M\tapp.txt\n',
    )
    expect(await rig.git('-C', rig.origin, 'rev-parse', `${branch}^`)).toBe(`${oid}\n`)
  })

  test('one that fails stops no other, is told in status with exit code 0, and comes back by itself', async () => {
    await open({ config: { watched_repos: ['octo/broken', 'octo/app'], worker_parallelism: 2 } })
    await addRepository(rig, 'octo/broken')
    await openIssueIn('octo/broken')
    await rig.openIssue()
    const { id } = await rig.control('addFault', {
      repository: 'octo/broken',
      action: { kind: 'answer', status: 500, body: { message: 'Server Error' } },
    })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
    const { recent_errors } = await reportOf(rig)
    expect(recent_errors).toEqual([expect.stringMatching(/^\S+Z octo\/broken: .*500/)])

    await rig.control('clearFaults', { id })
    expect(await rig.tick()).toEqual(SILENT)
    expect(await branchesOf(rig, 'octo/broken')).toHaveLength(1)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })

  test('when every repository fails the tick has failed and says so', async () => {
    await open()
    await rig.control('addFault', {
      repository: rig.repo,
      action: { kind: 'reset', effect: false },
    })
    await rig.openIssue()

    const { code, stdout, stderr } = await rig.tick()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^caduceus: GitHub could not be reached for .*\n$/)
    expect((await reportOf(rig)).last_outcome).toBe('failed')
    await rig.control('clearFaults', {})
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('an idle tick asks one question per repository, answered 304, and does not touch the queue', async () => {
    await open({
      config: {
        watched_repos: ['octo/app', 'octo/lib'],
        poll_interval_seconds: 60,
        worker_parallelism: 2,
        max_retries_per_issue: 1,
      },
      bridge: bridge(`
if os.environ['CADUCEUS_ISSUE_REPO'] == 'octo/lib': sys.exit(1)
open('app.txt', 'a').write('mended\\n')
result({})`),
    })
    await addRepository(rig, 'octo/lib')
    await rig.openIssue()
    await openIssueIn('octo/lib') // fails, and keeps its label
    expect((await rig.tick()).code).toBe(1)
    await rig.control('commentIssue', { repo: 'octo/lib', number: 1, actor: 'alice', body: 'Hm.' })
    // This, and what our own runs changed, is news once; so is a history that may still be behind it.
    rig.clock.advance(LIMITS.pollOverlapMs + 60_000)
    await rig.run('run')
    const world = await readWorld(rig, 'octo/lib')
    const queue = statSync(rig.layout.queue)
    const before = readFileSync(rig.layout.queue, 'utf8')

    for (const round of [1, 2]) {
      await rig.control('clearRequests')
      rig.clock.advance(60_000)
      expect({ round, finished: await rig.run('run') }).toEqual({ round, finished: SILENT })
      const { entries } = await rig.control('readRequests', {})
      expect(entries.map((entry) => `${describeRequest(entry)} ${entry.status}`).sort()).toEqual([
        'GET /repos/octo/app/issues 304',
        'GET /repos/octo/lib/issues 304',
      ])
    }
    await rig.control('clearRequests')
    rig.clock.advance(10_000)
    expect(await rig.run('run')).toEqual(SILENT)
    expect((await rig.control('readRequests', {})).total).toBe(0)

    expect((await reportOf(rig)).last_outcome).toBe('idle304')
    expect(readFileSync(rig.layout.queue, 'utf8')).toBe(before)
    expect(statSync(rig.layout.queue)).toMatchObject({ ino: queue.ino, mtimeMs: queue.mtimeMs })
    expect(await readWorld(rig, 'octo/lib')).toEqual(world)
    expect(await writesOf(rig)).toEqual([])
  })
})
