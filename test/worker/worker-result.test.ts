import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { isFault } from '../../daemon/core/fault.ts'
import { workerSecrets } from '../../daemon/worker/provider-variables.ts'
import { readResult } from '../../daemon/worker/read-result.ts'
import { findJsonHazard } from '../../daemon/worker/strict-json.ts'
import { parseResult } from '../../daemon/worker/validate-result.ts'
import { detailsOf } from '../support/faults.ts'
import { waitUntil } from '../support/processes.ts'

const VALID = {
  status: 'success',
  summary: 'Done.',
  commit_message: 'fix(x): y\n\nBecause.',
  pull_request_title: 'fix(x): y',
}
const bytesOf = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))

/** Code and reason of the fault, or what was accepted. */
function refusal(run: () => unknown): unknown {
  try {
    return run()
  } catch (thrown) {
    return isFault(thrown) ? `${thrown.code}: ${String(detailsOf(thrown)['reason'])}` : thrown
  }
}

describe('JSON that a lenient reader takes for something else', () => {
  test.each<[string, unknown]>([
    ['{"a":1,"a":2}', { kind: 'duplicate-key', key: 'a' }],
    [String.raw`{"a":1,"\u0061":2}`, { kind: 'duplicate-key', key: 'a' }],
    [String.raw`{"a\"b":1,"a\u0022b":2}`, { kind: 'duplicate-key', key: 'a"b' }],
    ['{"x":[{"a":1,"b":"a","a":2}]}', { kind: 'duplicate-key', key: 'a' }],
    ['{"a":{},"b":[],"a":1}', { kind: 'duplicate-key', key: 'a' }],
    ['{"":1,"":2}', { kind: 'duplicate-key', key: '' }],
    ['{"__proto__":{}}', { kind: 'reserved-key', key: '__proto__' }],
    [String.raw`[{"\u005f_proto__":1}]`, { kind: 'reserved-key', key: '__proto__' }],
    ['[[[[1]]]]', { kind: 'too-deep', depth: 3 }],
    ['{"a":[{"b":{}}]}', { kind: 'too-deep', depth: 3 }],
    ['[[[1]],[[2]],{"a":[3]}]', null],
    ['{"a":{"a":{"a":1}}}', null],
    ['{"a":1,"A":2,"b":["a","a"]}', null],
    ['{"a":"{\\"b\\":1,\\"b\\":2}","b":"[[[[[["}', null],
    ['["__proto__",{"a":"__proto__"}]', null],
    [String.raw`{"a\\":1,"a":"\\\"","b":2}`, null],
    ['{"a":', null],
    ['"', null],
    [']]}}{"a":1', null],
  ])('%s', (text, hazard) => {
    expect(findJsonHazard(text, 3)).toEqual(hazard)
  })

  test('what JSON.stringify writes has no hazard within its depth, and one beyond', () => {
    const key = fc.oneof(fc.string(), fc.constantFrom('"', '\\', 'a', 'constructor', '{', '\u2028'))
    // The one key that is a hazard at any depth has its rows above.
    const value = fc.anything({ maxDepth: 4, key: key.filter((name) => name !== '__proto__') })
    fc.assert(
      fc.property(value, (any) => {
        const text = JSON.stringify(any) ?? 'null'
        expect(findJsonHazard(text, 5)).toBe(null)
        expect(findJsonHazard(`[${'['.repeat(5)}${text}`, 5)?.kind).toBe('too-deep')
      }),
      { numRuns: 500 },
    )
  })
})

describe('which results are accepted', () => {
  const withField = (name: string, value: unknown): object => ({ ...VALID, [name]: value })
  const INVALID = 'worker/result-invalid: '
  const artifacts = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))

  test('a whole one, with artifacts of any shape and the title as it is', () => {
    const shapes = { a: [1, { b: null }], ['ä'.repeat(64)]: '\u0000', '🤖': true, constructor: 1 }
    expect(parseResult(bytesOf({ ...VALID, artifacts: shapes }))).toEqual({
      kind: 'success',
      result: {
        status: 'success',
        summary: 'Done.',
        commitMessage: VALID.commit_message,
        pullRequestTitle: VALID.pull_request_title,
        artifacts: shapes,
      },
    })
    expect(parseResult(bytesOf(VALID))).toMatchObject({ result: { artifacts: {} } })
  })

  test.each<[string, unknown]>([
    ['summary', 's'.repeat(65_536)],
    ['summary', 'a line\n\ttab \u001b[1m \u0085'],
    ['commit_message', 'ä'.repeat(32_768)],
    ['commit_message', 'a\r\n\tb'],
    ['pull_request_title', '🤖'.repeat(256)],
    ['artifacts', artifacts(100)],
    ['artifacts', { ['k'.repeat(128)]: 1 }],
  ])('at the edge of what is allowed: %s', (name, value) => {
    expect(parseResult(bytesOf(withField(name, value)))).toMatchObject({ kind: 'success' })
  })

  test('a longer title is cut, not refused', () => {
    const title = '🤖'.repeat(257)
    expect(parseResult(bytesOf(withField('pull_request_title', title)))).toMatchObject({
      result: { pullRequestTitle: `${'🤖'.repeat(255)}…` },
    })
  })

  test.each<[unknown, string]>([
    ...['status', 'summary', 'commit_message', 'pull_request_title'].flatMap(
      (name): [unknown, string][] => [
        [withField(name, undefined), `the field ${name} is missing`],
        [withField(name, 1), `the field ${name} is not a text`],
        [withField(name, null), `the field ${name} is not a text`],
        [withField(name, ['success']), `the field ${name} is not a text`],
      ],
    ),
    ...['summary', 'commit_message', 'pull_request_title'].flatMap((name): [unknown, string][] => [
      [withField(name, ' \n\t\u00A0'), `the field ${name} is blank`],
      [withField(name, 'a\0b'), `the field ${name} has a NUL character`],
      [
        withField(name, 'a\uD83E'),
        `the field ${name} has half a character (an unpaired surrogate)`,
      ],
      [
        withField(name, '\uDD16a'),
        `the field ${name} has half a character (an unpaired surrogate)`,
      ],
    ]),
    [withField('summary', 'ä'.repeat(32_769)), 'the field summary is longer than 65536 bytes'],
    [
      withField('commit_message', 'x'.repeat(65_537)),
      'the field commit_message is longer than 65536 bytes',
    ],
    [withField('commit_message', 'a\u001b[1m'), 'the field commit_message has a control character'],
    ...['a\nb', 'a\tb', 'a\u007f', 'a\u2028b'].map((title): [unknown, string] => [
      withField('pull_request_title', title),
      'the field pull_request_title has a control character or more than one line',
    ]),
    [withField('artifacts', null), 'the field artifacts is not an object'],
    [withField('artifacts', []), 'the field artifacts is not an object'],
    [withField('artifacts', artifacts(101)), 'the field artifacts has more than 100 entries'],
    ...['', 'k'.repeat(129), 'ä'.repeat(65), 'a\nb'].map((key): [unknown, string] => [
      withField('artifacts', { [key]: 1 }),
      'the field artifacts has a key that is empty, longer than 128 bytes or has a control character',
    ]),
    [withField('investigation', false), 'it has the unknown field "investigation"'],
    [withField('constructor', 1), 'it has the unknown field "constructor"'],
    [withField('x'.repeat(70), 1), `it has the unknown field "${'x'.repeat(63)}…"`],
    [[], 'it is not a JSON object'],
    ['null', 'it is not a JSON object'],
    ['"success"', 'it is not a JSON object'],
    [`{"status":"failure","status":"success"}`, 'the key "status" stands twice'],
    [`{"artifacts":{"__proto__":1}}`, 'the key "__proto__" is not allowed'],
    ['['.repeat(33), 'it is nested deeper than 32 levels'],
  ])('refused %#: %j', (value, reason) => {
    expect(refusal(() => parseResult(bytesOf(value)))).toBe(INVALID + reason)
  })

  test.each<[string, Uint8Array, string]>([
    ['an empty file', bytesOf(''), 'it is not JSON'],
    ['half a document', bytesOf('{"status":'), 'it is not JSON'],
    ['two documents', bytesOf('{}{}'), 'it is not JSON'],
    ['another encoding', new Uint8Array([0xff, 0xfe, 0x7b, 0x00]), 'it is not UTF-8'],
    ['a surrogate as bytes', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), 'it is not UTF-8'],
  ])('%s is unreadable', (_, bytes, reason) => {
    expect(refusal(() => parseResult(bytes))).toBe(`worker/result-unreadable: ${reason}`)
  })

  test('any other status is the worker’s failure, whatever else is wrong', () => {
    const failed = { status: 'Success', summary: 'no', more: 1 }
    expect(parseResult(bytesOf(failed))).toEqual({
      kind: 'failure',
      status: 'Success',
      summary: 'no',
    })
    expect(parseResult(bytesOf({ status: 's'.repeat(99), summary: 5 }))).toEqual({
      kind: 'failure',
      status: `${'s'.repeat(63)}…`,
      summary: '',
    })
  })

  test('what a worker says of its failure is bounded, and has no half characters', () => {
    const failed = {
      status: `no\uD83E${'\0'.repeat(99)}`,
      summary: `\0\uDD16${'ä'.repeat(40_000)}`,
    }
    const parsed = parseResult(bytesOf(failed))
    if (parsed.kind !== 'failure') throw new Error('it is a failure')
    expect(parsed.status).toMatch(/^no\uFFFD+…$/)
    expect(parsed.summary).toMatch(/^\uFFFD\uFFFDä+\.\.\.<truncated \d+ bytes>$/)
    expect(Buffer.byteLength(parsed.summary)).toBeLessThanOrEqual(65_536)
  })

  test('no input crashes; whatever is refused is refused with one of two faults', () => {
    const field = fc.oneof(fc.anything(), fc.string({ unit: 'binary' }), fc.constant('success'))
    const objects = fc.record(
      {
        status: field,
        summary: field,
        commit_message: field,
        pull_request_title: field,
        artifacts: fc.oneof(field, fc.dictionary(fc.string(), fc.jsonValue())),
        other: field,
      },
      { requiredKeys: [] },
    )
    const text = fc.oneof(
      objects.map((value) => JSON.stringify(value)),
      fc.json().chain((json) => fc.nat(json.length).map((end) => json.slice(0, end))),
      fc.string({ unit: 'binary' }),
    )
    const input = fc.oneof(text.map(bytesOf), fc.uint8Array())
    const seen = new Set<string>()
    fc.assert(
      fc.property(input, (bytes) => {
        const outcome = refusal(() => parseResult(bytes))
        const kind = typeof outcome === 'string' ? outcome.split(':', 1)[0] : 'accepted'
        seen.add(kind ?? '')
        if (outcome instanceof Error) throw outcome
      }),
      { numRuns: 2000 },
    )
    expect([...seen].sort()).toEqual([
      'accepted',
      'worker/result-invalid',
      'worker/result-unreadable',
    ])
  })
})

describe('what is masked in a result', () => {
  // Put together, so that no scanner takes them for real ones.
  const TOKEN = ['gh', 'p_'].join('') + 'a1B2'.repeat(9)
  const OWN = ['opaque', 'token', '0123456789'].join('-')
  const GIVEN = 'pass word "of" the provider\\'
  const KNOWN = [OWN, GIVEN]
  const ADDRESS = ['https://me:', 'hidden-word', '@example.com/a'].join('')
  const TOLD = [TOKEN, OWN, GIVEN, encodeURIComponent(GIVEN), btoa(`x:${OWN}`), ADDRESS]
  const SECRET = /a1B2|0123456789|provider|hidden-word|MDEyMzQ1Njc4/

  test.each(TOLD)('in every text of it, and in the names in its artifacts: %#', (told) => {
    const text = `before ${told} after`
    const parsed = parseResult(
      bytesOf({
        status: 'success',
        summary: text,
        commit_message: text,
        pull_request_title: text,
        artifacts: { list: [{ deep: text }], [told]: 1 },
      }),
      '',
      KNOWN,
    )
    expect(JSON.stringify(parsed)).not.toMatch(SECRET)
    expect(parsed).toMatchObject({
      kind: 'success',
      result: {
        summary: expect.stringMatching(/^before .*<redacted>.* after$/),
        commitMessage: expect.stringMatching(/^before .*<redacted>.* after$/),
        pullRequestTitle: expect.stringMatching(/^before .*<redacted>.* after$/),
      },
    })
  })

  test('before a text is cut, so that no half of one is left', () => {
    const title = 'x'.repeat(250) + OWN + 'y'.repeat(100)
    expect(
      JSON.stringify(parseResult(bytesOf({ ...VALID, pull_request_title: title }), '', KNOWN)),
    ).not.toMatch(/opaque/)
  })

  test.each(TOLD)('in what a worker says of its failure: %#', (told) => {
    const failed = parseResult(bytesOf({ status: `no ${told}`, summary: told }), '', KNOWN)
    expect(failed.kind).toBe('failure')
    expect(JSON.stringify(failed)).not.toMatch(SECRET)
  })

  test.each(TOLD)('in what is refused: %#', (told) => {
    const key = JSON.stringify(told)
    const refused = [
      refusal(() => parseResult(bytesOf({ ...VALID, [told]: 1 }), '', KNOWN)),
      refusal(() => parseResult(bytesOf(`{${key}:1,${key}:2}`), '', KNOWN)),
    ]
    expect(refused).toEqual([
      expect.stringContaining('it has the unknown field'),
      expect.stringContaining('stands twice'),
    ])
    expect(refused.join()).not.toMatch(SECRET)
  })

  test('which values of its environment a worker may not tell', () => {
    const given = {
      OPENAI_API_KEY: 'one',
      ANTHROPIC_AUTH_TOKEN: ' two\n',
      OPENAI_BASE_URL: 'https://example.com',
      OPENCODE_MODEL: 'm',
      MY_SETTING: 'three',
      OTHER: 'x',
      PATH: '/bin',
      GITHUB_TOKEN: 'never given',
    }
    expect(workerSecrets(given, ['MY_*', 'GITHUB_TOKEN'])).toEqual(['one', 'two', 'three'])
  })
})

describe('which files are read', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'worker-result-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
  const read = (name: string): unknown =>
    refusal(() => readResult(join(folder, name), '/runs/x.log', []).parsed)
  const write = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }

  test('a regular file, whose bytes are returned as they are', () => {
    const text = `${JSON.stringify(VALID)}\n \n`
    const { parsed, bytes } = readResult(write('r', text), '', [])
    expect(parsed.kind).toBe('success')
    expect(Buffer.from(bytes).toString()).toBe(text)
  })

  test('none of these, and nothing waits for a writer', () => {
    write('outside', JSON.stringify(VALID))
    symlinkSync('outside', join(folder, 'link'))
    mkdirSync(join(folder, 'directory'))
    execFileSync('mkfifo', [join(folder, 'fifo')])
    truncateSync(write('large', ' '), 1_048_577)
    const refused = 'worker/result-unreadable: it is '
    expect(['link', 'directory', 'fifo', 'large'].map(read)).toEqual([
      `${refused}a symbolic link`,
      `${refused}not a regular file`,
      `${refused}not a regular file`,
      `${refused}too large`,
    ])
    expect(read('absent')).toMatch(/^worker\/result-missing/)
  })

  test('no device, no socket, and no gigabyte of nothing', async () => {
    symlinkSync('/dev/zero', join(folder, 'zero'))
    truncateSync(write('sparse', ''), 2 ** 30)
    const server = createServer().listen(join(folder, 'socket'))
    await waitUntil('the socket', () => server.listening)
    const started = performance.now()
    expect(['zero', 'socket', 'sparse'].map(read)).toEqual([
      'worker/result-unreadable: it is a symbolic link',
      'worker/result-unreadable: it is not a regular file',
      'worker/result-unreadable: it is too large',
    ])
    expect(performance.now() - started).toBeLessThan(5_000)
    await new Promise((closed) => server.close(closed))
  })

  test('no device: as a node of its own where we may make one, else one of the system', () => {
    const { status } = spawnSync('mknod', [join(folder, 'null'), 'c', '1', '3'], {
      stdio: 'ignore',
    })
    // What comes from it would never end.
    const zero = spawnSync('mknod', [join(folder, 'zero'), 'c', '1', '5'], { stdio: 'ignore' })
    const made = status === 0 && zero.status === 0 ? ['null', 'zero'] : []
    const found = [...made.map((name) => join(folder, name)), '/dev/zero', '/dev/null', '/dev/tty']
    for (const path of found) {
      const outcome = refusal(() => readResult(path, '', []).parsed)
      expect([path, outcome]).toEqual([path, expect.stringMatching(/^worker\/result-unreadable: /)])
    }
    expect(refusal(() => readResult('/dev/zero', '', []).parsed)).toBe(
      'worker/result-unreadable: it is not a regular file',
    )
  })

  test('no other name of a file that may lie elsewhere', () => {
    linkSync(write('foreign', JSON.stringify(VALID)), join(folder, 'result'))
    expect(read('result')).toBe('worker/result-unreadable: it is a hard link')
    rmSync(join(folder, 'foreign'))
    expect(read('result')).toMatchObject({ kind: 'success' })
  })

  test('one with a byte order mark is read as it is without', () => {
    expect(
      read(write('mark', `\ufeff${JSON.stringify(VALID)}`).slice(folder.length)),
    ).toMatchObject({
      kind: 'success',
    })
  })

  test('one that is swapped, cut and grown while it is read is read whole, or refused', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'worker-result-outside-'))
    writeFileSync(join(outside, 'foreign'), JSON.stringify({ ...VALID, summary: 'foreign' }))
    const rogue = spawn(ROGUE, ['swapped-result'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], CANARY: '/bin/false', OUTSIDE: outside },
      stdio: 'ignore',
    })
    const ended = new Promise((resolveEnd) => rogue.on('close', resolveEnd))
    const seen = new Set<string>()
    try {
      await waitUntil('everything the rogue puts there', () => {
        for (let count = 0; count < 200; count += 1) seen.add(outcomeOf(read('worker-result.json')))
        return WHOLE_OR_REFUSED.every((outcome) => seen.has(outcome))
      })
    } finally {
      rogue.kill('SIGKILL')
      await ended
      rmSync(outside, { recursive: true })
    }
    // The other name may go between the opening and the look. It gains nothing: who can link a file and swap it
    // so fast could have copied it too.
    seen.delete('foreign')
    expect([...seen].sort()).toEqual([...WHOLE_OR_REFUSED].sort())
  })

  /** The summary of what was accepted, or the refusal. */
  function outcomeOf(found: unknown): string {
    if (typeof found === 'string') return found.replace(/^(worker\/result-missing).*/s, '$1')
    const { result } = found as { result?: { summary: string } }
    return result?.summary.slice(0, 10) ?? String(found)
  }

  const ROGUE = resolve(import.meta.dirname, '../fixtures/bin/git-rogue')
  const WHOLE_OR_REFUSED = [
    'one',
    'twotwotwot',
    'worker/result-missing',
    'worker/result-unreadable: it is a symbolic link',
    'worker/result-unreadable: it is a hard link',
    'worker/result-unreadable: it is not a regular file',
    'worker/result-unreadable: it is not JSON',
  ]

  test('exactly 1 MiB is read', () => {
    const text = JSON.stringify(VALID)
    write('full', text + ' '.repeat(1_048_576 - text.length))
    expect(read('full')).toMatchObject({ kind: 'success' })
  })
})
