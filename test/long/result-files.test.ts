import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { isFault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { type ParsedResult, parseResult } from '../../daemon/worker/validate-result.ts'

// Whatever bytes a worker leaves as its result: no crash, every refusal is one of two faults, and what is
// accepted keeps to its limits.

const INPUTS = Number(process.env['INPUTS'] ?? 60_000)

const VALID = {
  status: 'success',
  summary: 'Done.',
  commit_message: 'fix(x): y\n\nBecause.',
  pull_request_title: 'fix(x): y',
  artifacts: { log: 'out.txt', counts: [1, 2, { deep: null }] },
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const ODD_TEXTS = fc.constantFrom(
  '',
  ' ',
  '\0',
  '\ud83e',
  '\udd16 tail',
  '\ufeffx',
  'a\u2028b',
  '\u001b[2J',
  '__proto__',
  'x'.repeat(LIMITS.summaryBytes),
  'ä'.repeat(LIMITS.summaryBytes / 2 + 1),
  '🤖'.repeat(LIMITS.titleCharacters + 1),
)
const TEXT = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), ODD_TEXTS)
const VALUE = fc.oneof(TEXT, fc.anything({ maxDepth: 3 }), fc.constantFrom('success', 1e308, -0))

/** Objects with the right names and anything in them. */
const OBJECT = fc
  .record(
    {
      status: fc.oneof(fc.constant('success'), VALUE),
      summary: VALUE,
      commit_message: VALUE,
      pull_request_title: VALUE,
      artifacts: fc.oneof(fc.dictionary(TEXT, fc.jsonValue(), { maxKeys: 120 }), VALUE),
      constructor: fc.anything({ maxDepth: 1 }),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value))

/** One field of a valid result replaced. */
const ONE_FIELD = fc
  .tuple(fc.constantFrom(...Object.keys(VALID)), VALUE)
  .map(([name, value]) => JSON.stringify({ ...VALID, [name]: value }))

/** A valid result with bytes cut out, doubled, or replaced. */
const MUTATED = fc
  .tuple(
    fc.oneof(fc.constant(JSON.stringify(VALID)), ONE_FIELD),
    fc.array(fc.tuple(fc.nat(), fc.nat(12), fc.uint8Array({ maxLength: 4 }), fc.boolean()), {
      minLength: 1,
      maxLength: 4,
    }),
  )
  .map(([text, edits]) =>
    edits.reduce<Uint8Array>((bytes, [at, removed, added, doubles]) => {
      const from = at % (bytes.length + 1)
      const middle = doubles ? bytes.subarray(from, from + 40) : added
      const rest = bytes.subarray(doubles ? from : Math.min(from + removed, bytes.length))
      return Buffer.concat([bytes.subarray(0, from), middle, rest])
    }, bytesOf(text)),
  )

/** Text that a lenient reader takes for something else, at the place of a value of a valid result. */
const HOSTILE = fc
  .oneof(
    fc.nat(3000).map((depth) => '['.repeat(depth)),
    fc.nat(300).map((depth) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)),
    fc.constantFrom(
      '{"__proto__":{"status":"success"}}',
      String.raw`{"\u005f\u005fproto\u005f\u005f":1}`,
      '{"constructor":{"prototype":{}}}',
      '{"a":1,"a":2}',
      String.raw`{"a":1,"\u0061":2}`,
      '1e999',
      '-1e999',
      '9'.repeat(400),
      '0x10',
      'NaN',
      '01',
      String.raw`"\ud800"`,
      String.raw`"\u0000"`,
      '"\u0000"',
      '"unclosed',
      '/* */ 1',
      "'single'",
      '[1,]',
      'null',
    ),
    fc.json({ maxDepth: 6 }),
  )
  .chain((value) =>
    fc.constantFrom(...Object.keys(VALID), 'other', 'toString').map((name) => {
      const rest = JSON.stringify({ ...VALID, [name]: undefined })
      return `{"${name}":${value},${rest.slice(1)}`
    }),
  )

const MARKS = fc.constantFrom<Uint8Array>(
  new Uint8Array(),
  new Uint8Array([0xef, 0xbb, 0xbf]),
  new Uint8Array([0xff, 0xfe]),
  bytesOf(' \n'),
)

const INPUT = fc
  .tuple(
    MARKS,
    fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      TEXT.map(bytesOf),
      { weight: 3, arbitrary: OBJECT.map(bytesOf) },
      { weight: 2, arbitrary: ONE_FIELD.map(bytesOf) },
      { weight: 3, arbitrary: MUTATED },
      { weight: 2, arbitrary: HOSTILE.map(bytesOf) },
    ),
  )
  .map(([mark, bytes]) => Buffer.concat([mark, bytes]))

const isWhole = (text: string): boolean => !/[\p{Surrogate}\0]/u.test(text)

/** What is wrong with an accepted result; null = nothing. */
function breach(parsed: ParsedResult): string | null {
  if (parsed.kind === 'failure') {
    const { status, summary } = parsed
    if ([...status].length > 64 || !isWhole(status)) return 'status of a failure'
    const isFine = Buffer.byteLength(summary) <= LIMITS.summaryBytes && isWhole(summary)
    return isFine ? null : 'summary of a failure'
  }
  const { status, summary, commitMessage, pullRequestTitle, artifacts } = parsed.result
  const keys = Object.keys(artifacts)
  const checks = {
    status: status === 'success',
    summary: Buffer.byteLength(summary) <= LIMITS.summaryBytes && isWhole(summary),
    'commit message': Buffer.byteLength(commitMessage) <= LIMITS.commitMessageBytes,
    'commit message’s text': isWhole(commitMessage) && commitMessage.trim() !== '',
    title: [...pullRequestTitle].length <= LIMITS.titleCharacters && isWhole(pullRequestTitle),
    'one line': !/[\n\r\u2028\u2029]/.test(pullRequestTitle),
    artifacts: keys.length <= LIMITS.artifacts && !keys.includes('__proto__'),
    'artifact keys': keys.every((key) => Buffer.byteLength(key) <= LIMITS.artifactKeyBytes),
    prototype: Object.getPrototypeOf(artifacts) === Object.prototype,
  }
  return Object.entries(checks).find(([, holds]) => !holds)?.[0] ?? null
}

function judge(bytes: Uint8Array): string {
  try {
    const parsed = parseResult(bytes)
    return breach(parsed) ?? `accepted ${parsed.kind}`
  } catch (thrown) {
    return isFault(thrown) ? thrown.code : `crash: ${String(thrown)}`
  }
}

test(`${INPUTS} result files of any content are accepted within limits or refused with a typed fault`, () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(INPUT, (bytes) => {
      const verdict = judge(bytes)
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
      expect(VERDICTS).toContain(verdict)
    }),
    { numRuns: INPUTS },
  )
  expect([...seen.keys()].sort()).toEqual(VERDICTS)
  // Each kind is really met, not just once by chance.
  expect(Math.min(...seen.values())).toBeGreaterThan(INPUTS / 100)
  process.stdout.write(`${[...seen].map(([verdict, count]) => `${verdict} ${count}`).join(', ')}\n`)
}, 1_800_000)

const VERDICTS = [
  'accepted failure',
  'accepted success',
  'worker/result-invalid',
  'worker/result-unreadable',
]
