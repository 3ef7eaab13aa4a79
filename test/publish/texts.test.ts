import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { isFault } from '../../daemon/core/fault.ts'
import type { PublishPlan } from '../../daemon/core/journal.ts'
import { neutralizeMarkdown } from '../../daemon/core/neutralize.ts'
import type { CapturedTree } from '../../daemon/core/ports.ts'
import { type BodyParts, renderBody } from '../../daemon/publish/render-body.ts'
import {
  commentMarkerOf,
  type Report,
  renderPublication,
} from '../../daemon/publish/render-publication.ts'
import type { PublishPolicy } from '../../daemon/publish/validate-tree.ts'
import { JOURNAL, MARKER, POLICY, START, US } from './publish-world.ts'

const FENCE = '`'.repeat(3)
const body = (change: Partial<BodyParts> = {}): string =>
  renderBody({
    lead: 'Closes #7',
    summary: 'Done.',
    lines: [],
    artifacts: {},
    marker: '<!-- m -->',
    maxCharacters: 65_536,
    ...change,
  })
const length = (text: string): number => [...text].length

describe('a body', () => {
  test('closing line first, then summary, our lines, artifacts, and the marker last', () => {
    expect(
      body({ lines: ['One.', 'Two.'], artifacts: { b: 1, a: { d: [{ z: 1, y: 2 }], c: 3 } } }),
    ).toBe(
      ['Closes #7', 'Done.', 'One.', 'Two.', 'Artifacts (2):', `${FENCE}json`].join('\n\n') +
        `\n${JSON.stringify({ a: { c: 3, d: [{ y: 2, z: 1 }] }, b: 1 }, null, 2)}\n${FENCE}\n\n<!-- m -->`,
    )
  })

  test('parts that are empty leave no gap', () => {
    expect(body({ lead: '', summary: ' \n' })).toBe('<!-- m -->')
  })

  test('the worker’s words are made inert, ours are not, and code stays (C10)', () => {
    const text = body({
      summary: 'Closes #99, @org, `@types/x`',
      artifacts: { a: '@org fixes #1' },
    })
    expect(text).toContain('Closes #7\n\nCloses # 99, @ org, `@types/x`\n')
    expect(text).toContain('"a": "@org fixes #1"')
  })

  test.each([`${FENCE}\nx`, '~~~', '<!-- ', '<pre>', '`', '$$', '<details>'])(
    'a summary that ends in %j cannot swallow the closing line',
    (summary) => {
      const text = body({ summary, artifacts: { a: 1 } })
      expect(text.startsWith('Closes #7\n\n')).toBe(true)
      expect(text.endsWith('\n\n<!-- m -->')).toBe(true)
    },
  )

  test.each(['<!--', '<pre>', '$$', '<?', '- ' + FENCE])(
    'a summary that ends in %j cannot make prose of the artifacts',
    (summary) => {
      const text = body({ summary, artifacts: { a: '--></pre>?>$$', b: '@org fixes #1' } })
      expect(text).toContain('"b": "@ org fixes # 1"')
    },
  )

  test('the fence of the artifacts is longer than any in them', () => {
    expect(body({ artifacts: { a: '`````', [FENCE]: 1 } })).toMatch(/\n`{6}json\n[^]*\n`{6}\n/)
  })

  test('artifacts are shown up to 16 KiB, between characters, and it is said', () => {
    const artifacts = { a: '🤖'.repeat(5000) }
    const text = body({ artifacts })
    const bytes = Buffer.byteLength(JSON.stringify(artifacts, null, 2))
    expect(text).toContain(`Artifacts (1 – ${bytes} bytes, shown in part):`)
    const shown = text.split(FENCE)[1] ?? ''
    expect(shown).toMatch(/🤖\n…\n$/u)
    expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(16_384 + 16)
    const fits = { a: 'x'.repeat(16_384 - JSON.stringify({ a: '' }, null, 2).length) }
    expect(body({ artifacts: fits })).toContain('Artifacts (1):')
  })

  test('exactly 65,536 characters are left alone; of more the summary is cut, and nothing else', () => {
    const rest = { lines: ['Ours.'], artifacts: { a: 'x' } }
    const room = 65_536 - length(body({ ...rest, summary: '' })) - 2
    const full = '🤖'.repeat(room)
    expect(body({ ...rest, summary: full })).toContain(`${full}\n\nOurs.`)
    const cut = body({ ...rest, summary: `${full}🤖` })
    expect(length(cut)).toBe(65_536)
    const tail = body({ ...rest, summary: '' }).slice('Closes #7'.length)
    expect(cut.endsWith(`🤖\n\n*(The text was longer and has been cut.)*${tail}`)).toBe(true)
    expect(cut.startsWith('Closes #7\n\n🤖')).toBe(true)
  })

  test('what is cut apart is inert too: half a code span is no code', () => {
    const texts = fc.array(
      fc.constantFrom(
        '`@org/team` ',
        'Fixes #9 ',
        '@a ',
        `\n${FENCE}\n`,
        '\n\n',
        '`Fixes #9`',
        'x',
      ),
      { minLength: 10, maxLength: 40 },
    )
    fc.assert(
      fc.property(texts, fc.integer({ min: 70, max: 300 }), (pieces, maxCharacters) => {
        const summary = pieces.join('')
        const text = body({ summary, maxCharacters, marker: 'M' })
        expect(length(text)).toBeLessThanOrEqual(maxCharacters)
        const shown = text.slice('Closes #7'.length)
        expect(neutralizeMarkdown(shown)).toBe(shown)
      }),
      { numRuns: 500 },
    )
  })

  test('the same parts give the same bytes, in whatever order the keys were', () => {
    expect(body({ artifacts: { a: { x: 1, y: 2 }, b: 1 } })).toBe(
      body({ artifacts: { b: 1, a: { y: 2, x: 1 } } }),
    )
  })
})

describe('the frozen publication', () => {
  const REPORT: Report = {
    summary: 'A summary.',
    commitMessage: 'fix: a commit\n\nWhy.',
    pullRequestTitle: 'fix: a title',
    artifacts: { log: 'an artifact' },
  }
  const TREE: CapturedTree = {
    treeOid: 't',
    changes: [],
    submodulesKept: ['vendor/x'],
    linksOut: [],
  }
  const freeze = (
    plan: PublishPlan,
    change: Partial<Report> = {},
    policy: Partial<PublishPolicy> = {},
    now = START,
  ) =>
    renderPublication(
      JOURNAL,
      { ...REPORT, ...change },
      plan,
      plan === 'code' ? TREE : null,
      US,
      { ...POLICY, ...policy },
      now,
    )
  const refusal = (...args: Parameters<typeof freeze>): unknown => {
    try {
      freeze(...args)
      return null
    } catch (thrown) {
      return isFault(thrown) ? { code: thrown.code, ...thrown.details } : thrown
    }
  }

  test('says who we are, when, and of which tree', () => {
    expect(freeze('code', {}, {}, START + 999)).toMatchObject({
      plan: 'code',
      commitMessage: REPORT.commitMessage,
      commitDateSeconds: START / 1000,
      pullTitle: REPORT.pullRequestTitle,
      actorId: US.id,
      actorLogin: US.login,
      treeOid: 't',
    })
    expect(freeze('findings')).toMatchObject({ treeOid: null, changedFiles: 0 })
  })

  test.each([
    ['finalize', 'Closes #7\n\n'],
    ['merge', 'Closes #7\n\n'],
    ['never', 'Refs #7\n\n'],
  ] as const)('with close_issue %s the body begins with %j', (closeIssue, line) => {
    const { pullBody, comment } = freeze('code', {}, { closeIssue })
    expect(pullBody.startsWith(line)).toBe(true)
    expect(pullBody).toContain('The submodule `vendor/x` stays where it was.')
    expect(pullBody.endsWith(MARKER.pull)).toBe(true)
    expect(comment).not.toContain('#7')
  })

  test.each([
    ['code', MARKER.completion, /^A summary\./],
    ['findings', MARKER.findings, /^A summary\./],
    ['no-changes', MARKER['no-changes'], /^No change was needed/],
  ] as const)('the comment of %s has its own marker and beginning', (plan, marker, start) => {
    const { comment } = freeze(plan)
    expect(commentMarkerOf(JOURNAL, plan)).toBe(marker)
    expect(comment.endsWith(marker)).toBe(true)
    expect(comment).toMatch(start)
    expect(comment).toContain('an artifact')
  })

  test('title and message are made inert everywhere, code or not', () => {
    const { pullTitle, commitMessage } = freeze('code', {
      pullRequestTitle: ' fix: `@a` closes #1 ',
      commitMessage: '\nfix: `@a`\n\nFixes #1\n',
    })
    expect(pullTitle).toBe('fix: `@ a` closes # 1')
    expect(commitMessage).toBe('fix: `@ a`\n\nFixes # 1')
  })

  test('a title that grew too long by that is cut to 256 characters', () => {
    const { pullTitle } = freeze('code', { pullRequestTitle: `@a ${'🤖'.repeat(253)}` })
    expect(pullTitle).toBe(`@ a ${'🤖'.repeat(251)}…`)
    expect(length(pullTitle)).toBe(256)
  })

  test.each([
    ['title', 'pull request title', { pullRequestTitle: 'a FORBIDDEN b' }],
    ['commit', 'commit message', { commitMessage: 'a FORBIDDEN b' }],
    ['body', 'pull request body', { summary: 'a FORBIDDEN b' }],
    ['artifacts', 'pull request body', { artifacts: { 'a forbidden key': 1 } }],
  ])('code: a forbidden word in the %s is refused, and the work is named', (_, where, change) => {
    expect(refusal('code', change, { forbiddenStrings: ['forbidden'] })).toMatchObject({
      code: 'publish/forbidden-word',
      where,
      word: 'forbidden',
      tree: JOURNAL.treePath,
      issue: 'Acme/Widgets#7',
    })
  })

  test('a forbidden term with a sign in it is found though the sign is made inert', () => {
    const change = { summary: 'thanks, @acme' }
    expect(refusal('code', change, { forbiddenStrings: ['@acme'] })).toMatchObject({
      code: 'publish/forbidden-word',
      where: 'pull request body',
    })
  })

  test.each(['findings', 'no-changes'] as const)('%s: only what leaves is judged', (plan) => {
    const policy = { forbiddenStrings: ['forbidden'] }
    const unused = { pullRequestTitle: 'forbidden', commitMessage: 'forbidden' }
    expect(refusal(plan, unused, policy)).toBe(null)
    expect(refusal(plan, { summary: 'Forbidden' }, policy)).toMatchObject({ where: 'comment' })
    expect(refusal(plan, { artifacts: { a: 'forbidden' } }, policy)).toMatchObject({
      where: 'comment',
    })
  })

  test('our own words and markers never trip over the rule', () => {
    const policy = { forbiddenStrings: ['caduceus', 'opencode', 'hermes', 'worker-bridge'] }
    for (const plan of ['code', 'findings', 'no-changes'] as const) {
      expect(refusal(plan, {}, policy)).toBe(null)
    }
  })

  test('a summary of any allowed length fits, the line about the pull request included', () => {
    const { pullBody, comment } = freeze('code', { summary: 'x'.repeat(65_536) })
    expect(length(pullBody)).toBe(65_536)
    expect(length(`Pull request #1234567890 is ready for review.\n\n${comment}`)).toBeLessThan(
      65_536,
    )
  })

  test('a message that grew too long is refused, for cutting it would change its meaning', () => {
    expect(refusal('code', { commitMessage: '@a '.repeat(21_845) })).toMatchObject({
      code: 'publish/too-long',
      where: 'commit message',
      limit: 65_536,
    })
  })
})
