import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { isFault } from '../../daemon/core/fault.ts'
import type { IssueComment, IssueSummary, TimelineEvent } from '../../daemon/core/ports.ts'
import { buildContext, type CommentTrust } from '../../daemon/worker/build-context.ts'
import { buildWorkerEnvironment, type WorkerFacts } from '../../daemon/worker/build-environment.ts'
import { cutUtf8, measuredCut } from '../../daemon/worker/cut-utf8.ts'
import {
  PROMPT_FILES,
  type PromptFacts,
  type PromptTemplates,
  renderPrompt,
} from '../../daemon/worker/render-prompt.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const MIB = 1_048_576
const KEY = { owner: 'Acme', name: 'Widgets', number: 7 }
const OWN_ID = 99
const TRUST: CommentTrust = {
  trustedAuthors: ['ada', 'grumpy[bot]'],
  ignoredAuthors: [/\[bot\]$/],
  ownId: OWN_ID,
}
const ISSUE: IssueSummary = {
  number: 7,
  title: 'T',
  body: 'B',
  author: 'ada',
  labels: ['bug'],
  isOpen: true,
  isPullRequest: false,
  mergedAt: null,
  updatedAt: NOW,
  commentCount: 0,
}
/** Minutes after the issue began. */
const minute = (at: number): number => NOW - 10_000_000 + at * 60_000
const iso = (at: number): string => new Date(minute(at)).toISOString()
const comment = (id: number, change: Partial<IssueComment> = {}): IssueComment => ({
  id,
  author: 'bob',
  authorId: 5,
  authorAssociation: 'NONE',
  body: `body ${id}`,
  createdAt: minute(id),
  updatedAt: minute(id),
  ...change,
})
const byAda = (id: number, change: Partial<IssueComment> = {}): IssueComment =>
  comment(id, { author: 'ada', ...change })
const event = (id: number, change: Partial<TimelineEvent> = {}): TimelineEvent => ({
  id,
  kind: 'labeled',
  actor: 'ada',
  actorId: 1,
  createdAt: minute(id),
  label: 'bug',
  pull: null,
  ...change,
})

type Item = Readonly<{ id: number; body: string }>
type Context = Readonly<{
  issue_body: string
  comments: readonly Item[]
  trusted_comments: readonly Item[]
  events: readonly unknown[]
  timeline: readonly Readonly<{ kind: string; at: string; comment_id?: number }>[]
  trusted_edits: readonly Item[]
  allowed_threads: readonly number[]
  truncation: Readonly<Record<string, unknown>>
}>

function textOf(
  comments: readonly IssueComment[],
  events: readonly TimelineEvent[] = [],
  issue: Partial<IssueSummary> = {},
): string {
  return buildContext(KEY, { ...ISSUE, ...issue }, comments, events, TRUST, NOW)
}
// The document is the product's own; what it holds is what is tested here.
const contextOf = (...args: Parameters<typeof textOf>): Context =>
  JSON.parse(textOf(...args)) as Context
const idsOf = (items: readonly Item[]): readonly number[] => items.map(({ id }) => id)
const UNTOUCHED = {
  comments_truncated: false,
  trusted_comments_truncated: false,
  events_truncated: false,
  dropped_untrusted_comments: 0,
  dropped_trusted_comments: 0,
  dropped_events: 0,
  body_truncated_count: 0,
  total_body_bytes_dropped: 0,
}
const truncated = (change: object): object => ({ ...UNTOUCHED, ...change })
const range = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at + 1)

describe('what the context of a worker says', () => {
  test('everything, in the published form, the same for the same input', () => {
    const edited = byAda(2, { updatedAt: minute(3), authorAssociation: 'OWNER' })
    const args = [[comment(1, { author: null, authorId: null }), edited], [event(4)]] as const
    expect(JSON.parse(textOf(...args))).toEqual({
      schema_version: 1,
      issue: { owner: 'Acme', repo: 'Widgets', number: 7 },
      issue_title: 'T',
      issue_body: 'B',
      labels: ['bug'],
      comments: [
        {
          id: 1,
          author: 'ghost',
          author_association: 'NONE',
          body: 'body 1',
          created_at: iso(1),
          updated_at: iso(1),
        },
        {
          id: 2,
          author: 'ada',
          author_association: 'OWNER',
          body: 'body 2',
          created_at: iso(2),
          updated_at: iso(3),
        },
      ],
      trusted_comments: [expect.objectContaining({ id: 2, body: 'body 2' })],
      events: [{ kind: 'labeled', actor: 'ada', created_at: iso(4), label_name: 'bug' }],
      timeline: [
        { at: iso(1), kind: 'commented', actor: 'ghost', comment_id: 1 },
        { at: iso(2), kind: 'commented', actor: 'ada', comment_id: 2 },
        { at: iso(4), kind: 'labeled', actor: 'ada', label_name: 'bug' },
      ],
      trusted_edits: [{ id: 2, author: 'ada', created_at: iso(2), updated_at: iso(3) }],
      allowed_threads: [2],
      truncation: UNTOUCHED,
      built_at: new Date(NOW).toISOString(),
    })
    expect(textOf(...args)).toBe(textOf(...args))
  })

  test('our own comments and those of ignored authors never come back, trusted or not (C45)', () => {
    const { comments, trusted_comments, timeline, truncation } = contextOf([
      comment(1, { authorId: OWN_ID, author: 'ada' }),
      comment(2, { author: 'grumpy[bot]' }),
      comment(3, { author: 'a[bot]c' }),
      byAda(4),
    ])
    expect(idsOf(comments)).toEqual([3, 4])
    expect(idsOf(trusted_comments)).toEqual([4])
    expect(timeline.map(({ comment_id }) => comment_id)).toEqual([3, 4])
    expect(truncation).toEqual(UNTOUCHED)
  })

  test('without knowing our own account nobody is taken for it', () => {
    const unknown = comment(1, { authorId: null })
    const trust = { ...TRUST, ownId: null }
    expect(buildContext(KEY, ISSUE, [unknown], [], trust, NOW)).toContain('body 1')
  })

  test('trust goes by the exact login', () => {
    const others = ['Ada', 'ada ', 'adam', 'bob'].map((author, at) => comment(at + 1, { author }))
    expect(contextOf([...others, byAda(9)]).allowed_threads).toEqual([9])
  })

  test('only edits by the trusted are edits to trust', () => {
    const updatedAt = minute(50)
    const { trusted_edits } = contextOf([
      comment(1, { updatedAt }),
      byAda(2),
      byAda(3, { updatedAt }),
    ])
    expect(idsOf(trusted_edits)).toEqual([3])
  })

  test('the timeline merges both in the order they happened, and comments stand in it once', () => {
    const commented = event(1, { kind: 'commented' })
    const { timeline, events } = contextOf(
      [comment(1), comment(4)],
      [commented, event(2), event(3), event(5)],
    )
    expect(timeline.map(({ kind }) => kind)).toEqual([
      'commented',
      'labeled',
      'labeled',
      'commented',
      'labeled',
    ])
    expect(events).toHaveLength(3)
  })
})

describe('what is left out when there is too much', () => {
  test('of comments and events the newest 100 of each stay, and the rest is counted', () => {
    const comments = range(130).map((id) => (id <= 10 ? byAda(id) : comment(id)))
    const events = range(150).map((id) => event(id))
    const context = contextOf(comments, events)
    expect(idsOf(context.comments)).toEqual(range(130).slice(30))
    expect(context.events).toHaveLength(100)
    expect(context.events[0]).toMatchObject({ created_at: iso(51) })
    expect(context.truncation).toEqual(
      truncated({
        comments_truncated: true,
        trusted_comments_truncated: true,
        events_truncated: true,
        dropped_untrusted_comments: 20,
        dropped_trusted_comments: 10,
        dropped_events: 50,
      }),
    )
  })

  test('a comment is cut at 64 KiB and says so; the counts are those of the markers', () => {
    const long = '🤖'.repeat(20_000)
    const { comments, truncation } = contextOf([
      comment(1, { body: 'x'.repeat(65_536) }),
      comment(2, { body: long }),
      comment(3, { body: 'x'.repeat(65_600) }),
    ])
    const dropped = comments.map(({ body }) =>
      Number(/<truncated (\d+) bytes>$/.exec(body)?.[1] ?? 0),
    )
    expect(dropped[0]).toBe(0)
    expect(comments.every(({ body }) => Buffer.byteLength(body) <= 65_536)).toBe(true)
    expect(truncation).toEqual(
      truncated({
        body_truncated_count: 2,
        total_body_bytes_dropped: (dropped[1] ?? 0) + (dropped[2] ?? 0),
      }),
    )
  })

  const big = (bytes: number): string => 'x'.repeat(bytes)

  test('a hundred comments of 64 KiB fit into 1 MiB: events go first, then the oldest of the untrusted', () => {
    const comments = range(100).map((id) => comment(id, { body: big(65_536) }))
    const events = range(20).map((id) => event(id))
    const text = textOf(comments, events)
    const context = contextOf(comments, events)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MIB)
    expect(Buffer.byteLength(text)).toBeGreaterThan(MIB - 2 * 66_000)
    const kept = context.comments.length
    expect(idsOf(context.comments)).toEqual(range(100).slice(100 - kept))
    expect(context.truncation).toEqual(
      truncated({
        comments_truncated: true,
        events_truncated: true,
        dropped_events: 20,
        dropped_untrusted_comments: 100 - kept,
      }),
    )
  })

  test('events alone are dropped while that is enough, the oldest first', () => {
    const events = range(100).map((id) => event(id, { label: big(12_000) }))
    const context = contextOf([comment(1), byAda(2)], events)
    expect(idsOf(context.comments)).toEqual([1, 2])
    expect(context.events.length).toBeGreaterThan(0)
    expect(context.events.at(-1)).toMatchObject({ created_at: iso(100) })
    expect(context.truncation).toEqual(
      truncated({ events_truncated: true, dropped_events: 100 - context.events.length }),
    )
  })

  test('a trusted comment outlives every untrusted one, newer or not', () => {
    const comments = range(40).map((id) =>
      id % 4 === 1 ? byAda(id, { body: big(40_000) }) : comment(id, { body: big(40_000) }),
    )
    const context = contextOf(comments)
    expect(idsOf(context.trusted_comments)).toEqual(range(40).filter((id) => id % 4 === 1))
    expect(context.truncation).toMatchObject({ dropped_trusted_comments: 0 })
    const untrusted = range(40).filter((id) => id % 4 !== 1)
    const kept = idsOf(context.comments).filter((id) => id % 4 !== 1)
    expect(kept).toEqual(untrusted.slice(untrusted.length - kept.length))
  })

  test('when all are trusted, the oldest go, from every list', () => {
    const comments = range(30).map((id) => byAda(id, { body: big(50_000), updatedAt: minute(99) }))
    const text = textOf(comments)
    const context = contextOf(comments)
    const kept = range(30).slice(30 - context.comments.length)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MIB)
    expect(kept.length).toBeGreaterThan(5)
    for (const list of [context.comments, context.trusted_comments, context.trusted_edits]) {
      expect(idsOf(list)).toEqual(kept)
    }
    expect([context.allowed_threads, context.timeline.map(({ comment_id }) => comment_id)]).toEqual(
      [kept, kept],
    )
  })

  test('text that JSON writes at six times its length still fits', () => {
    const comments = range(10).map((id) => comment(id, { body: '\u0001'.repeat(65_536) }))
    expect(Buffer.byteLength(textOf(comments))).toBeLessThanOrEqual(MIB)
  })

  test('what cannot be made to fit is a fault that names the issue', () => {
    const labels = range(20).map((id) => `${id}${big(60_000)}`)
    let thrown: unknown = null
    try {
      textOf([byAda(1), comment(2)], [event(3)], { labels })
    } catch (error) {
      thrown = error
    }
    if (!isFault(thrown)) throw new TypeError('no fault')
    expect(thrown.code).toBe('worker/context-too-large')
    expect(thrown.message).toContain('Acme/Widgets#7')
  })
})

const FOLDER = join(import.meta.dirname, '../../templates')
const read = (name: keyof typeof PROMPT_FILES): string =>
  readFileSync(join(FOLDER, PROMPT_FILES[name]), 'utf8')
const TEMPLATES: PromptTemplates = {
  frame: read('frame'),
  behaviour: { code: read('code'), investigation: read('investigation') },
}
const FACTS: PromptFacts = {
  key: { owner: 'Acme', name: 'Widgets', number: 7 },
  ticket: 'code',
  title: 'The title',
  body: 'The body',
  labels: ['bug', 'a "b"'],
  branch: 'automation/issue-7-r',
  contextJson: '{"schema_version":1}',
  protectedPaths: ['.github/workflows/**', 'secrets/*'],
  instruction: 'Use tabs.',
}
const render = (change: Partial<PromptFacts> = {}): string =>
  renderPrompt(TEMPLATES, { ...FACTS, ...change })

/** The lines outside of fenced code, as CommonMark sees them. */
function outside(markdown: string): readonly string[] {
  const lines: string[] = []
  let mark: string | null = null
  for (const line of markdown.split(/\r\n|\n|\r/)) {
    const opening: string | undefined = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark === null) {
      if (opening === undefined) lines.push(line)
      else mark = opening
    } else if (opening?.startsWith(mark) === true && /^[ `~]*[ \t]*$/.test(line)) mark = null
  }
  return lines
}

describe('the prompt', () => {
  test('its sections come in the published order, each once', () => {
    const headings = outside(render()).filter((line) => line.startsWith('#'))
    expect(headings).toEqual([
      '# Task: solve an issue',
      '## Hard constraints',
      '## Branch',
      '## Paths to leave alone',
      '## What to do',
      '## Result',
      '## From the operator',
      '## The issue',
    ])
    expect(render().trimEnd().endsWith('End of the task.')).toBe(true)
  })

  test('every fact stands in it', () => {
    const prompt = render()
    for (const part of [
      '| Issue | Acme/Widgets#7 |',
      '| Kind | code |',
      '`automation/issue-7-r`',
      '- `.github/workflows/**`\n- `secrets/*`',
      'Labels: "bug", "a \\"b\\""',
      '```text\nThe title\n```',
      '```text\nThe body\n```',
      '```json\n{"schema_version":1}\n```',
      '```text\nUse tabs.\n```',
      TEMPLATES.behaviour.code.trim(),
    ]) {
      expect(prompt).toContain(part)
    }
  })

  test('an investigation says so and is told otherwise what to do', () => {
    const prompt = render({ ticket: 'investigation' })
    expect(prompt).toContain('# Task: investigate an issue')
    expect(prompt).toContain(TEMPLATES.behaviour.investigation.trim())
    expect(prompt).not.toContain(TEMPLATES.behaviour.code.trim())
  })

  test('no placeholder of the published templates is left, whatever is empty', () => {
    const empty = { labels: [], protectedPaths: [], instruction: ' \n', body: '', title: '' }
    for (const ticket of ['code', 'investigation'] as const) {
      expect(render({ ...empty, ticket })).not.toMatch(/\{\{|\}\}|undefined|null/)
    }
    expect(render(empty)).toContain('Labels: (none)')
    expect(render(empty)).not.toContain('From the operator')
  })

  test('a placeholder in somebody’s text is text', () => {
    const text = '{{context}} {{body}} {{nothing}} $& $1 $`'
    const prompt = render({ title: text, body: text, labels: [text], instruction: text })
    expect(prompt.split(text)).toHaveLength(5)
    expect(prompt.split(FACTS.contextJson)).toHaveLength(2)
  })

  test('the same facts give the same bytes', () => {
    expect(render()).toBe(render())
  })

  test('2 MiB are fine, a byte more is a fault that says how much it was', () => {
    const room = 2 * 1_048_576 - Buffer.byteLength(render({ body: '' }))
    expect(Buffer.byteLength(render({ body: 'x'.repeat(room) }))).toBe(2 * 1_048_576)
    let thrown: unknown = null
    try {
      render({ body: 'x'.repeat(room + 1) })
    } catch (error) {
      thrown = error
    }
    if (!isFault(thrown)) throw new TypeError('no fault')
    expect(thrown.code).toBe('worker/prompt-too-large')
    expect(thrown.details).toMatchObject({ issue: 'Acme/Widgets#7', bytes: 2 * 1_048_576 + 1 })
  })
})

describe('text of others', () => {
  const HOSTILE = fc
    .array(
      fc.constantFrom('`', '``', '```', '````', '~~~', '\n', '\r', ' ', '## New orders', 'json'),
      {
        maxLength: 30,
      },
    )
    .map((pieces) => pieces.join(''))

  test('stays inside its fence', () => {
    const plain = outside(render({ labels: [] }))
    fc.assert(
      fc.property(HOSTILE, HOSTILE, HOSTILE, (title, body, instruction) => {
        const change = { title, body, instruction: `x${instruction}`, labels: [] }
        expect(outside(render({ ...change, contextJson: body }))).toEqual(plain)
      }),
      { numRuns: 500 },
    )
  })

  test('in a label it stays on its line', () => {
    const label = 'a\n## New orders\n```'
    const lines = outside(render({ labels: [label] }))
    expect(lines.filter((line) => line.startsWith('## New orders'))).toEqual([])
    expect(lines).toContain('End of the task.')
  })
})

const bytes = (text: string): number => Buffer.byteLength(text)

describe('cutting between characters', () => {
  test('what fits is left alone, to the last byte', () => {
    expect(cutUtf8('é'.repeat(50), 100)).toBe('é'.repeat(50))
    expect(cutUtf8('', 64)).toBe('')
  })

  test('a character is never torn, and the ending tells what was left out', () => {
    expect(cutUtf8('x'.repeat(101), 100)).toBe(`${'x'.repeat(76)}...<truncated 25 bytes>`)
    // 'a' and then characters of four bytes: the room of 76 bytes ends inside one.
    expect(cutUtf8(`a${'🤖'.repeat(30)}`, 100)).toBe(`a${'🤖'.repeat(18)}...<truncated 48 bytes>`)
  })

  test('never longer than asked for; kept and left out are all there was', () => {
    const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 200 })
    fc.assert(
      fc.property(text, fc.integer({ min: 64, max: 300 }), (any, maxBytes) => {
        const { text: cut, droppedBytes } = measuredCut(any, maxBytes)
        expect(bytes(cut)).toBeLessThanOrEqual(maxBytes)
        const kept =
          droppedBytes === 0 ? cut : cut.replace(`...<truncated ${droppedBytes} bytes>`, '')
        expect(any.startsWith(kept)).toBe(true)
        expect(bytes(kept) + droppedBytes).toBe(bytes(any))
        expect(droppedBytes === 0).toBe(bytes(any) <= maxBytes)
      }),
      { numRuns: 500 },
    )
  })
})

describe('the environment of a worker', () => {
  const TOKEN = ['plain', 'token', 'of', 'the', 'daemon'].join('-')
  const SHAPED = ['gh', 'p_', 'a'.repeat(36)].join('')
  const FACTS: WorkerFacts = {
    key: { owner: 'Acme', name: 'Widgets', number: 7 },
    title: 'A title',
    body: '',
    labels: ['a "b"', '🤖 auto-fix'],
    contextJson: '{}',
    treePath: '/state/worktrees/acme/widgets/R',
    runId: 'R',
    branch: 'automation/issue-7-r',
  }
  const build = (
    source: Readonly<Record<string, string>>,
    allowlist: readonly string[] = [],
    facts: Partial<WorkerFacts> = {},
  ) => buildWorkerEnvironment(source, allowlist, [TOKEN, ''], { ...FACTS, ...facts })
  /** Names that came from outside. */
  const inherited = (
    source: Readonly<Record<string, string>>,
    allowlist: readonly string[] = [],
  ): readonly string[] => {
    const ours = Object.keys(build({}))
    return Object.keys(build(source, allowlist)).filter((name) => !ours.includes(name))
  }
  const valued = (...names: readonly string[]): Readonly<Record<string, string>> =>
    Object.fromEntries(names.map((name) => [name, `value of ${name}`]))

  test('from nothing: the nine variables of the bridge page and the two that name files', () => {
    expect(build({})).toEqual({
      CADUCEUS_ISSUE_NUMBER: '7',
      CADUCEUS_ISSUE_TITLE: 'A title',
      CADUCEUS_ISSUE_BODY: '',
      CADUCEUS_ISSUE_REPO: 'Acme/Widgets',
      CADUCEUS_ISSUE_LABELS_JSON: '["a \\"b\\"","🤖 auto-fix"]',
      CADUCEUS_WORKTREE_PATH: FACTS.treePath,
      CADUCEUS_RUN_ID: 'R',
      CADUCEUS_BRANCH_NAME: FACTS.branch,
      CADUCEUS_CONTEXT_JSON: '{}',
      CADUCEUS_PROMPT_FILE: `${FACTS.treePath}/worker-prompt.md`,
      CADUCEUS_CONTEXT_FILE: `${FACTS.treePath}/worker-context.json`,
    })
  })

  test('the known names pass with their values, others only when allowed', () => {
    const known = ['PATH', 'HOME', 'USER', 'SHELL', 'LANG', 'LC_ALL', 'TERM', 'TMPDIR']
    const prefixed = ['OPENAI_API_KEY', 'ANTHROPIC_X', 'OPENROUTER_X', 'OPENCODE_X']
    const others = [
      'path',
      'MY_PATH',
      'AWS_SECRET_ACCESS_KEY',
      'LC_TIME',
      'EXTRA_ONE',
      'NODE_OPTIONS',
    ]
    const source = valued(...known, ...prefixed, ...others)
    expect(inherited(source)).toEqual([...known, ...prefixed])
    expect(build(source)).toMatchObject({ LANG: 'value of LANG' })
    const allowed = ['EXTRA_*', 'AWS_SECRET_ACCESS_KEY', 'PAT', 'NODE']
    expect(inherited(valued(...others), allowed)).toEqual(['AWS_SECRET_ACCESS_KEY', 'EXTRA_ONE'])
  })

  test('nothing allows a credential of GitHub or a variable of the daemon', () => {
    const denied = valued(
      'GITHUB_TOKEN',
      'GH_TOKEN',
      'GH_ENTERPRISE_TOKEN',
      'github_token',
      'MY_GITHUB_APP_TOKEN',
      'OPENCODE_GITHUB_TOKEN',
      'GITHUB_PAT',
      'CADUCEUS_GITHUB_TOKEN',
      'CADUCEUS_CONFIG',
      'CADUCEUS_RUN_ID_2',
    )
    expect(inherited(denied, ['*', ...Object.keys(denied)])).toEqual([])
    const stale = build({ CADUCEUS_RUN_ID: 'stale', CADUCEUS_RESULT_PATH: '/x' }, ['*'])
    expect(stale).toEqual(build({}))
  })

  test('a value that is or holds a token is dropped under any name', () => {
    const source = {
      HOME: '/home/op',
      LANG: TOKEN,
      OPENAI_URL: `https://x:${TOKEN}@example.org`,
      OPENCODE_KEY: SHAPED,
      TERM: `Bearer ${SHAPED}`,
    }
    expect(inherited(source, ['*'])).toEqual(['HOME'])
  })

  test('no value is longer than execve takes, and none has a NUL', () => {
    const long = '🤖'.repeat(100_000)
    const built = build({}, [], { title: 'a\0b', body: long, contextJson: long, labels: [long] })
    for (const [name, value] of Object.entries(built)) {
      expect(bytes(`${name}=${value}\0`)).toBeLessThanOrEqual(131_072)
      expect(value).not.toContain('\0')
    }
    expect(built).toMatchObject({ CADUCEUS_ISSUE_TITLE: 'a\uFFFDb' })
    expect(built['CADUCEUS_ISSUE_BODY']).toMatch(/🤖\.\.\.<truncated \d+ bytes>$/u)
  })
})
