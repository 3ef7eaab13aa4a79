import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { looksLikeGithubToken, redact } from '../../daemon/core/redaction.ts'

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
