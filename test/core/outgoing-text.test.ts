import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { neutralizeMarkdown, neutralizePlain } from '../../daemon/core/neutralize.ts'
import { looksLikeGithubToken, redact } from '../../daemon/core/redaction.ts'
import {
  characters,
  checkVoice,
  type OutgoingText,
  shortenCharacters,
} from '../../daemon/core/voice.ts'

const FENCE = '`'.repeat(3)
const NBSP = '\u00A0'
/** What must not survive outside code; white space and a colon are all GitHub itself allows between. */
const LIVE =
  /(?<![A-Za-z0-9])@[A-Za-z0-9]|\b(?:clos|fix|resolv)(?:e[sd]?)?[\s:]*(?:[\w-]+\/[\w.-]+)?#\d/i

const withoutSpaces = (text: string): string => text.replaceAll(' ', '')

describe('what is made inert (C10)', () => {
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

const outgoing = (text: string, change: Partial<OutgoingText> = {}): OutgoingText => ({
  where: 'comment',
  text,
  limit: 1000,
  unit: 'characters',
  ...change,
})

describe('the public-voice rule', () => {
  test.each([
    ['in another case', 'By OpenCode.', 'opencode', 'opencode'],
    ['inside a longer word', 'Thermesophily', 'Hermes', 'hermes'],
    ['in full-width letters', 'Ｈermes', 'hermes', 'hermes'],
    ['as a ligature', 'oﬀer', 'OFFER', 'offer'],
    ['composed where the text is not', 'cafe\u0301', 'caf\u00E9', 'caf\u00E9'],
    ['with spaces of its own', 'a the bot b', 'THE BOT', 'the bot'],
    ['across lines', 'a\nb', 'a\nb', 'a\nb'],
  ])('a term is found %s, and reported in lower case', (_, text, term, word) => {
    expect(checkVoice([outgoing(text)], [term])).toEqual({
      kind: 'forbidden',
      where: 'comment',
      word,
    })
  })

  test('blank terms forbid nothing, and an empty list neither', () => {
    const text = outgoing('any  text \t here')
    expect(checkVoice([text], ['', ' ', '\t', '\u3000'])).toEqual({ kind: 'fine' })
    expect(checkVoice([text], [])).toEqual({ kind: 'fine' })
  })

  test('the first listed term of the first bad text is named', () => {
    const texts = [outgoing('fine'), outgoing('b a', { where: 'title' }), outgoing('c')]
    expect(checkVoice(texts, ['c', 'a', 'b'])).toEqual({
      kind: 'forbidden',
      where: 'title',
      word: 'a',
    })
  })

  test('a forbidden term in the last text outranks a length in the first', () => {
    const texts = [outgoing('too long', { limit: 3 }), outgoing('bad')]
    expect(checkVoice(texts, ['bad'])).toMatchObject({ kind: 'forbidden' })
  })

  test.each<[string, string, number, OutgoingText['unit']]>([
    ['letters', 'x'.repeat(256), 256, 'characters'],
    ['256 emoji outside the basic plane', '🤖'.repeat(256), 256, 'characters'],
    ['bytes of letters', 'x'.repeat(300), 300, 'bytes'],
    ['bytes of others', 'é🤖'.repeat(10), 60, 'bytes'],
  ])('exactly at the limit is fine, one more is not: %s', (_, text, limit, unit) => {
    expect(checkVoice([outgoing(text, { limit, unit })], [])).toEqual({ kind: 'fine' })
    expect(checkVoice([outgoing(`${text}x`, { limit, unit })], [])).toEqual({
      kind: 'too-long',
      where: 'comment',
      found: limit + 1,
      limit,
      unit,
    })
  })
})

describe('counting and shortening', () => {
  test('what fits stays; what does not ends with an ellipsis within the limit', () => {
    expect(shortenCharacters('🤖'.repeat(256), 256)).toBe('🤖'.repeat(256))
    const cut = shortenCharacters('🤖'.repeat(257), 256)
    expect(cut).toBe(`${'🤖'.repeat(255)}…`)
    expect(characters(cut)).toBe(256)
  })
})

// Token shapes are put together here, so that this file carries none.
const LETTERS = 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'
const CLASSIC = ['gh', 'p_'].join('') + LETTERS
const FINE_GRAINED = ['github', '_pat_'].join('') + `${LETTERS}_${LETTERS}`
const INSTALLATION = ['gh', 's_'].join('') + `1234567_eyJ${LETTERS}.${LETTERS}.${LETTERS}-_x`
const PROVIDER = ['s', 'k-'].join('') + `proj-${LETTERS}`
const SHAPES = {
  'a classic token': CLASSIC,
  'a long token': CLASSIC + 'z'.repeat(400),
  'a fine-grained token': FINE_GRAINED,
  'an installation token with a JWT': INSTALLATION,
  'an OAuth token': ['gh', 'o_'].join('') + LETTERS,
  'a provider key': PROVIDER,
  'a GitLab token': ['gl', 'pat-'].join('') + LETTERS.slice(0, 20),
  'an access key id': ['AK', 'IA'].join('') + 'ABCDEFGH12345678',
  'a chat token': ['xo', 'xb-'].join('') + '123456-abcdef',
}

describe('which token shapes are masked', () => {
  for (const [name, token] of Object.entries(SHAPES)) {
    test(`${name} is masked wherever it stands`, () => {
      const surroundings: readonly (readonly [string, string])[] = [
        ['', ''],
        ['see ', ' there'],
        ['"', '"'],
        ['x=', '&y=1'],
        ['u%3A', '%40github.com'],
        [String.raw`line\n`, String.raw`\nline`],
      ]
      for (const [before, after] of surroundings) {
        expect(redact(`${before}${token}${after}`)).toBe(`${before}<redacted>${after}`)
      }
    })
  }

  test('words that only begin like a token stay', () => {
    for (const text of [
      'task-force-of-twenty-people-or-more',
      'weighs_more_than_expected_by_everybody',
      'ghp_short',
      'sk-short',
      'a commit 0123456789abcdef0123456789abcdef01234567',
    ]) {
      expect(redact(text)).toBe(text)
    }
  })

  test('looksLikeGithubToken finds a token inside a value', () => {
    for (const token of [CLASSIC, FINE_GRAINED, INSTALLATION]) {
      expect(looksLikeGithubToken(token)).toBe(true)
      expect(looksLikeGithubToken(`https://x:${token}@github.com`)).toBe(true)
      expect(looksLikeGithubToken(`%3A${token}`)).toBe(true)
    }
    expect(looksLikeGithubToken(PROVIDER)).toBe(false)
    expect(looksLikeGithubToken('/home/me/gh/p_')).toBe(false)
  })
})

describe('which assignments are masked', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['GITHUB_TOKEN=abc', 'GITHUB_TOKEN=<redacted>'],
    ['GH_TOKEN = "a b c" rest', 'GH_TOKEN = <redacted> rest'],
    ["CADUCEUS_GITHUB_TOKEN: 'abc'", 'CADUCEUS_GITHUB_TOKEN: <redacted>'],
    ['A=1 GH_TOKEN=abc GITHUB_PAT=def', 'A=1 GH_TOKEN=<redacted> GITHUB_PAT=<redacted>'],
    ['{"GH_TOKEN":"abc","x":1}', '{"GH_TOKEN":<redacted>,"x":1}'],
    [String.raw`{\"GH_TOKEN\":\"abc\",\"x\":1}`, String.raw`{\"GH_TOKEN\":<redacted>,\"x\":1}`],
    ['GH_TOKEN="cut off before its end', 'GH_TOKEN=<redacted>'],
    ['--env=GH_TOKEN=abc', '--env=GH_TOKEN=<redacted>'],
    ['msg="GH_TOKEN=abc"', 'msg="GH_TOKEN=<redacted>"'],
    ['github_token: abc', 'github_token: <redacted>'],
    ['OPENAI_API_KEY=abc;', 'OPENAI_API_KEY=<redacted>;'],
    ['DB_PASSWORD=abc', 'DB_PASSWORD=<redacted>'],
    ['GH_TOKEN=first\nGH_TOKEN=second', 'GH_TOKEN=<redacted>\nGH_TOKEN=<redacted>'],
  ]
  for (const [text, wanted] of cases) {
    test(`${JSON.stringify(text)} becomes ${JSON.stringify(wanted)}`, () => {
      expect(redact(text)).toBe(wanted)
    })
  }

  test('prose that merely mentions a name keeps its next word', () => {
    for (const text of [
      'Set GITHUB_TOKEN to the token of the account.',
      'GH_TOKEN and GITHUB_TOKEN are read in this order.',
      'The Authorization header is sent to GitHub.',
      'It needs basic responsibilities and bearer authentication-headers.',
      'GH_TOKEN:\nnext line',
    ]) {
      expect(redact(text)).toBe(text)
    }
  })
})

describe('which headers and URLs are masked', () => {
  const basic = Buffer.from('x-access-token:Secret-1234').toString('base64')
  const cases: readonly (readonly [string, string])[] = [
    ['Authorization: Bearer abc.def', 'Authorization: Bearer <redacted>'],
    ['authorization: abc def', 'authorization: <redacted> def'],
    [`AUTHORIZATION: basic ${basic}`, 'AUTHORIZATION: basic <redacted>'],
    ['{"authorization":"token abc","x":1}', '{"authorization":"token <redacted>","x":1}'],
    [
      String.raw`{\"Authorization\":\"Bearer abc\",\"x\":1}`,
      String.raw`{\"Authorization\":\"Bearer <redacted>\",\"x\":1}`,
    ],
    ['Authorization: Negotiate YWJj', 'Authorization: Negotiate <redacted>'],
    ['Authorization: Digest username="a", response="b"\nx', 'Authorization: Digest <redacted>\nx'],
    ['AUTHORIZATION: token abc\nAccept: y', 'AUTHORIZATION: token <redacted>\nAccept: y'],
    [`curl -H "x: Bearer ${LETTERS}"`, 'curl -H "x: Bearer <redacted>"'],
    ['https://user:pass@github.com/a', 'https://<redacted>@github.com/a'],
    ['https://user:p@ss@github.com/a', 'https://<redacted>@github.com/a'],
    ['https://:pass@github.com', 'https://<redacted>@github.com'],
    ['ssh://git@github.com/a', 'ssh://<redacted>@github.com/a'],
    [String.raw`https:\/\/user:pass@github.com`, String.raw`https:\/\/<redacted>@github.com`],
    ['git@github.com:a/b.git', 'git@github.com:a/b.git'],
    ['https://github.com/a?mail=x@y', 'https://github.com/a?mail=x@y'],
    ['https://github.com/@octocat', 'https://github.com/@octocat'],
  ]
  for (const [text, wanted] of cases) {
    test(`${JSON.stringify(text)} becomes ${JSON.stringify(wanted)}`, () => {
      expect(redact(text)).toBe(wanted)
    })
  }
})

describe('how known secrets are masked', () => {
  const secret = 'p&ss "wörd"/with+odd=chars'

  test('plainly, in URLs, in JSON', () => {
    const lower = encodeURIComponent(secret).replaceAll(/%[0-9A-F]{2}/g, (x) => x.toLowerCase())
    for (const form of [secret, encodeURIComponent(secret), lower, JSON.stringify(secret)]) {
      const shown = redact(`before ${form} after`, [secret])
      expect(shown.replaceAll('"', '')).toBe('before <redacted> after')
    }
  })

  test('in base64 at each of the three byte offsets, in both alphabets', () => {
    for (const lead of ['', 'a', 'ab', 'abc', 'user:', 'x-access-token:']) {
      for (const tail of ['', 'y', 'yz']) {
        for (const alphabet of ['base64', 'base64url'] as const) {
          const encoded = Buffer.from(lead + secret + tail).toString(alphabet)
          const shown = redact(encoded, [secret])
          expect(shown).toContain('<redacted>')
          // What is left over may hold at most the ends the secret shares with its neighbours.
          const middle = Buffer.from(secret).toString(alphabet).slice(4, -6)
          expect(shown).not.toContain(middle)
          expect(shown.replace('<redacted>', '').length).toBeLessThanOrEqual(
            Math.ceil(((lead.length + tail.length) * 8) / 6) + 6,
          )
        }
      }
    }
  })

  test('a secret that begins another leaves nothing of the longer one', () => {
    expect(redact('x-secret-one-and-two', ['secret-one', 'secret-one-and-two'])).toBe(
      'x-<redacted>',
    )
  })

  test('short values are no secrets, and odd ones do no harm', () => {
    expect(redact('a short word', ['short'])).toBe('a short word')
    expect(redact('text', [`\uD800${LETTERS}`])).toBe('text')
  })

  test('any secret in any text is gone, in whichever form', () => {
    const form = fc.constantFrom<(text: string) => string>(
      (text) => text,
      (text) => encodeURIComponent(text),
      (text) => JSON.stringify(text).slice(1, -1),
    )
    fc.assert(
      fc.property(
        fc.string({ minLength: 8, unit: 'grapheme' }),
        fc.string(),
        fc.string(),
        form,
        (value, before, after, encode) => {
          fc.pre(!'<redacted>'.includes(value))
          const encoded = encode(value)
          expect(redact(before + encoded + after, [value])).not.toContain(encoded)
        },
      ),
    )
  })
})

describe('what redaction costs and keeps', () => {
  test('a second pass changes nothing', () => {
    const piece = fc.constantFrom(
      ...Object.values(SHAPES),
      'GH_TOKEN=',
      'Authorization: ',
      'Bearer ',
      'basic ',
      'digest ',
      'https://',
      'user:pass@',
      ' ',
      '\n',
      '"',
      "'",
      '\\',
      '<redacted>',
      ',',
      'word',
      '%3A',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const once = redact(pieces.join(''))
        expect(redact(once)).toBe(once)
      }),
      { numRuns: 2000, examples: [[['https://', 'GH_TOKEN=', "'", "'", 'user:pass@']]] },
    )
  })

  test('harmless text comes back as it is', () => {
    const text = 'Fixed the parser.\n\nSee src/a.ts:12 and https://github.com/o/r/issues/1.'
    expect(redact(text)).toBe(text)
  })

  test('a megabyte of hostile text takes less than a second', () => {
    const patterns = [
      'a',
      'a.',
      'GH',
      'GH_TOKEN',
      'TOKEN ',
      'GH_TOKEN=',
      'GH_TOKEN="',
      'GH_TOKEN\\',
      '://',
      'a://',
      'a:',
      '@',
      'x@',
      'basic ',
      'basic a',
      'authorization',
      'authorization: ',
      'authorization:\\',
      ['gh', 'p_'].join(''),
      ['gh', 'p_1'].join(''),
      'sk-',
      'xoxb-1',
      'eyJ.',
      '\\',
      '"',
      ' ',
      '%3A',
    ]
    for (const pattern of patterns) {
      const text = pattern.repeat(Math.ceil(1_000_000 / pattern.length))
      const startedAt = performance.now()
      redact(text, ['a-known-secret'])
      expect({ pattern, slow: performance.now() - startedAt > 1000 }).toEqual({
        pattern,
        slow: false,
      })
    }
  })
})
