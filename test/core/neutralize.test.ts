import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { neutralizeMarkdown, neutralizePlain } from '../../daemon/core/neutralize.ts'

const FENCE = '`'.repeat(3)

const NBSP = '\u00A0'

/** What must not survive outside code; white space and a colon are all GitHub itself allows between. */
const LIVE =
  /(?<![A-Za-z0-9])@[A-Za-z0-9]|\b(?:clos|fix|resolv)(?:e[sd]?)?[\s:]*(?:[\w-]+\/[\w.-]+)?#\d/i

const withoutSpaces = (text: string): string => text.replaceAll(' ', '')

/** CommonMark's code in text of `PIECES`: what is left when fences and code spans are taken out. */
function proseOf(markdown: string): readonly string[] {
  const paragraphs: string[] = []
  let fence: string | null = null
  let isOpen = false
  for (const line of markdown.split(/\r\n|\n|\r/)) {
    const mark = /^(`{3,})[^`]*$|^(~{3,})/.exec(line)
    if (fence !== null) {
      const closing = /^(`+|~+)[ \t]*$/.exec(line)?.[1] ?? ''
      if (closing.startsWith(fence)) fence = null
    } else if (mark !== null) {
      fence = mark[1] ?? mark[2] ?? null
      isOpen = false
    } else if (/^[ \t]*$/.test(line)) isOpen = false
    else if (isOpen) paragraphs.push(`${paragraphs.pop() ?? ''}\n${line}`)
    else isOpen = paragraphs.push(line) > 0
  }
  return paragraphs.map(withoutCodeSpans)
}

function withoutCodeSpans(paragraph: string): string {
  let prose = ''
  for (let at = 0; at < paragraph.length; ) {
    const rest = paragraph.slice(at)
    const taken = /^\\[!-/:-@[-`{-~]|^http:\/\/[^\s<]*|^`+|^./s.exec(rest)?.[0] ?? ''
    const isRun = taken.startsWith('`')
    const close = isRun ? rest.slice(taken.length).search(new RegExp(`(?<!\`)${taken}(?!\`)`)) : -1
    prose += close < 0 ? taken : '\u0001'
    at += close < 0 ? taken.length : 2 * taken.length + close
  }
  return prose
}

const TICKS = ['`', '``', FENCE, `${FENCE}\``, `${FENCE}sh`, '~~~']

const BREAKS = ['\n', '\n', '\n\n', '\r\n', '\r', ` \n`, `${NBSP}\n`, NBSP]

const WORDS = [
  '@org/team ',
  'Fixes ',
  '#99 ',
  'x',
  '\\',
  '|',
  'http://x/',
  '_',
  '<!--',
  '-->',
  '> ',
]

const PIECES = fc.array(fc.constantFrom(...TICKS, ...BREAKS, ...WORDS, '@org'), { maxLength: 20 })

describe('what is made inert', () => {
  test.each([
    ['a team', 'Ask @org/team.', 'Ask @ org/team.'],
    ['the first word', '@user', '@ user'],
    ['a line of its own', 'a\n@user', 'a\n@ user'],
    ['several in a row', '@a @b,@c', '@ a @ b,@ c'],
    ['emphasis with underscores', '_@user_ and __@user__', '_@ user_ and __@ user__'],
    ['other marks before the sign', '(@a) /@b -@c .@d @@e \\@f', '(@ a) /@ b -@ c .@ d @@ e \\@ f'],
    ['a reference in this repository', 'Closes #99', 'Closes # 99'],
    ['a reference in another one', 'Fixes other/repo#1', 'Fixes other/repo# 1'],
    ['every keyword', 'fix #1 FIXED #2 Resolves: #3', 'fix # 1 FIXED # 2 Resolves: # 3'],
    ['the old form', 'fixes GH-1', 'fixes GH- 1'],
    [
      'an address',
      'Resolves https://github.com/o/r/issues/7',
      'Resolves https://github.com/o/r/issues/ 7',
    ],
    [
      'an address in angle brackets',
      'closes <https://github.com/o/r/pull/7>',
      'closes <https://github.com/o/r/pull/ 7>',
    ],
    ['a link text', 'Fixes [#99](x)', 'Fixes [# 99](x)'],
    ['emphasis', '_Fixes_ **#99**', '_Fixes_ **# 99**'],
    ['two lines', 'This fixes\n#99', 'This fixes\n# 99'],
    ['two paragraphs', 'This fixes:\n\n#99', 'This fixes:\n\n# 99'],
    ['much white space', `Fixes${' '.repeat(50)}#99`, `Fixes${' '.repeat(50)}# 99`],
    ['an escape', 'Fixes \\#99', 'Fixes \\# 99'],
    ['a tag or a comment between', 'Fixes <b>#9</b> <!-- @a -->', 'Fixes <b># 9</b> <!-- @ a -->'],
    ['a character reference for the sign', '&#64;org &commat;org', '&# 64;org & commat;org'],
    ['a character reference between', 'Fixes&nbsp;#99', 'Fixes&nbsp;# 99'],
    ['a character reference for a digit', 'Fixes #&#x39;9', 'Fixes #&# x39;9'],
    ['a table', '| `|` @org `|` |', '| `|` @ org `|` |'],
  ])('%s', (_, written, inert) => {
    expect(neutralizeMarkdown(written)).toBe(inert)
  })

  test.each([
    'foo@example.org',
    'See #99 and other/repo#1.',
    'prefix #1, hotfix #2, affixes #3',
    'Fixes the bug of issue #99',
    'a @ b, @, @-, Fixes #x',
    'AT&T &amp; R&D',
  ])('prose that does neither stays: %s', (text) => {
    expect(neutralizeMarkdown(text)).toBe(text)
  })

  test('titles and commit messages know no code, and no character references', () => {
    expect(neutralizePlain('fix(x): `@org` (fixes #1)\n\nCloses\n#2 &#64;')).toBe(
      'fix(x): `@ org` (fixes # 1)\n\nCloses\n# 2 &#64;',
    )
  })
})

describe('what counts as code and stays', () => {
  test.each([
    ['inline code', 'Use `@types/node`, not ``a`@b``. Say `Fixes #1`.'],
    ['a fence', `a\n${FENCE}sh\nnpm i @types/node # fixes #1\n${FENCE}\nb`],
    ['a tilde fence with backticks in it', `~~~ x\`\n${FENCE}\n@a\n~~~`],
    ['a longer fence around a shorter one', `${FENCE}\`\n${FENCE}\n@a\n${FENCE}\n@b\n${FENCE}\``],
    ['a fence with line ends of Windows', `${FENCE}\r\n@a\r\n${FENCE}\r\nb`],
    ['a fence that nobody closes', `${FENCE}\n@a`],
    ['a fence inside a tag fence', `~~~\n<b\n~~~`],
  ])('%s', (_, text) => {
    expect(neutralizeMarkdown(text)).toBe(text)
  })

  test('prose around code is still prose', () => {
    expect(neutralizeMarkdown(`@a \`@b\` @c\n${FENCE}\n@d\n${FENCE}\n@e`)).toBe(
      `@ a \`@b\` @ c\n${FENCE}\n@d\n${FENCE}\n@ e`,
    )
  })
})

describe('constructions that only look like code', () => {
  test.each([
    ['a backtick without a partner', '`@org'],
    ['a partner of another length', '``@org`'],
    ['a partner in another paragraph', '`\n\n@org `'],
    ['an escaped backtick', '\\`@org`'],
    ['a partner behind a cell of a table', 'a | b\n--|--\n` | @org `'],
    ['a partner on another line', 'a `\nb ` c ` @org\n`'],
    ['a comment around the first backtick', '<!-- ` --> ` @org <!-- ` -->'],
    ['an attribute that holds the first backtick', '<a title="`">` @org `'],
    ['an autolink that holds the first backtick', '<https://x/`>` @org `'],
    ['a bare address that takes the first backtick', 'http://x/`a `b` @org `'],
    ['mathematics that takes the first backtick', '$x ` y$ ` @org `'],
    ['mathematics over lines', `$$\n${FENCE}\n$$\n@org\n${FENCE}`],
    ['a paragraph that only seems to end', `\`\n${NBSP}\n\` @org \``],
    ['old line ends that make paragraphs', '`\r\r@org\r\r`'],
    [
      'a fence that a no-break space keeps open',
      `${FENCE}\n${NBSP}${FENCE}\n${FENCE}\n@org\n${FENCE}`,
    ],
    ['a fence that a tail keeps open', `${FENCE}\n${FENCE}${NBSP}\n${FENCE}\n@org\n${FENCE}`],
    ['a fence that indentation keeps open', `${FENCE}\n    ${FENCE}\n${FENCE}\n@org\n${FENCE}`],
    ['a fence that is too short to close', `${FENCE}\`\n@b\n${FENCE}\n${FENCE}\`\n@org`],
    ['a fence that is closed by its like', `~~~\n${FENCE}\n~~~\n@org`],
    ['no fence, for its info has a backtick', `${FENCE} a\`\n@org\n${FENCE}`],
    ['a fence in a list, left by the next line', `- ${FENCE}\n@org`],
    ['a fence in a quotation, left by the next line', `> ${FENCE}\n@org`],
    ['a fence in a quoted, numbered list', `> 1) ${FENCE}\n@org`],
    ['a fence swallowed by a comment', `<!--\n${FENCE}\n-->\n@org\n${FENCE}`],
    ['a fence swallowed by raw text', `<pre>\n${FENCE}\n</pre>\n@org\n${FENCE}`],
    ['a fence behind a byte order mark', `\uFEFF${FENCE}\nx\n${FENCE}\n@org\n${FENCE}`],
  ])('%s', (_, text) => {
    expect(neutralizeMarkdown(text)).toContain('@ org')
  })
})

describe('any text', () => {
  const text = PIECES.map((pieces) => pieces.join(''))

  test('nothing survives in what CommonMark takes for prose', () => {
    fc.assert(
      fc.property(text, (markdown) => {
        const inert = neutralizeMarkdown(markdown)
        const hasMarkup = /<!|^[> ]*> [`~]{3}/m.test(markdown)
        const prose = hasMarkup ? [inert] : proseOf(inert)
        expect(prose.filter((paragraph) => LIVE.test(paragraph))).toEqual([])
      }),
      { numRuns: 3000 },
    )
  })

  test('nothing but spaces is added, and a second time nothing at all', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: 'binary', maxLength: 60 })), (markdown) => {
        const inert = neutralizeMarkdown(markdown)
        const plain = neutralizePlain(markdown)
        expect([inert, plain].map(withoutSpaces)).toEqual([markdown, markdown].map(withoutSpaces))
        expect(neutralizeMarkdown(inert)).toBe(inert)
      }),
      { numRuns: 1000 },
    )
  })

  test.each(['`', '`a', '$`', 'fix ', 'fix <', '@', 'http://', '> ', '&#', '<!--', 'fix _', ' '])(
    'a lot of %j takes no more than linear time',
    (piece) => {
      const timeOf = (count: number): number => {
        const started = performance.now()
        neutralizeMarkdown(piece.repeat(count))
        return performance.now() - started
      }
      timeOf(10_000)
      expect(timeOf(200_000)).toBeLessThan(2_000)
    },
  )
})
