import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { BOT, bridge, LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'

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
