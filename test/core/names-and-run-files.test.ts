import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { classifyEnd, type EndFacts } from '../../daemon/core/classify-end.ts'
import { isDeniedName, mayExposeDenied } from '../../daemon/core/denied-environment.ts'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import { END_REASONS, type EndReason } from '../../daemon/core/end-reasons.ts'
import { fault } from '../../daemon/core/fault.ts'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import {
  formatIssue,
  formatRepository,
  issueId,
  parseIssueKey,
  parseRepositoryName,
  repositoryId,
  repositoryOf,
  requireIssueKey,
} from '../../daemon/core/issue-key.ts'
import {
  findLabel,
  isSameLabel,
  normalizeLabel,
  spellingsOf,
  ticketOf,
} from '../../daemon/core/labels.ts'
import { branchOf, isRunId, makeRunId } from '../../daemon/core/run-id.ts'
import {
  CANCEL_REQUEST,
  claimsSuccess,
  type ExitReport,
  formatRunFile,
  isCancelRequest,
  type Launch,
  parseEnvironment,
  parseRunFile,
  type Started,
} from '../../daemon/core/supervision-files.ts'

// What the processes of a run agree on: names, files and variables; and how their effects are observed.

describe('which texts name a repository or an issue', () => {
  test('names GitHub can have are taken, with the case they have', () => {
    for (const text of ['o/r', 'Owner/Re.po_-1', 'a-b/.github', 'a--b/x', `${'a'.repeat(39)}/r`]) {
      const repository = parseRepositoryName(text)
      expect(repository === null ? null : formatRepository(repository)).toBe(text)
    }
    expect(parseRepositoryName(`o/${'r'.repeat(100)}`)).not.toBe(null)
    expect(parseIssueKey('Owner/Repo#12')).toEqual({ owner: 'Owner', name: 'Repo', number: 12 })
  })

  test('names GitHub cannot have are refused', () => {
    const texts = [
      '',
      '/',
      'o',
      'o/',
      '/r',
      'o/r/x',
      ' o/r',
      'o/r ',
      'o/r\n',
      '-o/r',
      'o-/r',
      'o.p/r',
      `${'a'.repeat(40)}/r`,
      `o/${'r'.repeat(101)}`,
      'o/.',
      'o/..',
      'o/r.git',
      'o/r.GIT',
      'o/r:x',
      'ö/r',
      'o/r\u0000',
    ]
    expect(texts.filter((text) => parseRepositoryName(text) !== null)).toEqual([])
    expect(texts.filter((text) => parseIssueKey(`${text}#1`) !== null)).toEqual([])
  })

  test('a number is a positive decimal without decoration', () => {
    const texts = ['o/r', 'o/r#', 'o/r#0', 'o/r#01', 'o/r#-1', 'o/r#1.5', 'o/r#1e3', 'o/r#0x1']
    const more = ['o/r#1 ', 'o/r# 1', 'o/r##1', 'o/r#1#2', 'o/r#12345678901', '#1', 'o/r#１']
    expect([...texts, ...more].filter((text) => parseIssueKey(text) !== null)).toEqual([])
    expect(parseIssueKey('o/r#9999999999')?.number).toBe(9_999_999_999)
  })

  test('what a person typed wrongly is told with the command to ask', () => {
    expect(requireIssueKey('o/r#1', 'queue show')).toEqual({ owner: 'o', name: 'r', number: 1 })
    expect(() => requireIssueKey('o/r', 'queue show')).toThrow(/"o\/r" does not name an issue/)
  })
})

describe('how issues are compared', () => {
  test('case does not matter, everything else does', () => {
    const key = { owner: 'Owner', name: 'Repo', number: 12 }
    expect(issueId(key)).toBe('owner/repo#12')
    expect(issueId({ ...key, owner: 'OWNER' })).toBe(issueId(key))
    expect(issueId({ ...key, number: 1 })).not.toBe(issueId(key))
    expect(repositoryId(repositoryOf(key))).toBe('owner/repo')
    expect(formatIssue(key)).toBe('Owner/Repo#12')
  })
})

describe('what a run id is', () => {
  test('a ULID: the published example comes out', () => {
    // The time of the ULID specification's example, 01ARZ3NDEK…, with all random bits set.
    expect(makeRunId(1_469_922_850_259, new Uint8Array(10).fill(255))).toBe(
      '01ARZ3NDEKZZZZZZZZZZZZZZZZ',
    )
    expect(makeRunId(0, new Uint8Array(10))).toBe('0'.repeat(26))
  })

  test('later ids sort behind earlier ones', () => {
    const time = fc.nat({ max: 2 ** 48 - 1 })
    const random = fc.uint8Array({ minLength: 10, maxLength: 10 })
    fc.assert(
      fc.property(time, time, random, random, (a, b, one, other) => {
        fc.pre(a < b)
        expect(makeRunId(a, one) < makeRunId(b, other)).toBe(true)
      }),
    )
  })

  test('every made one is one, and each random bit shows', () => {
    const made = Array.from({ length: 1000 }, () => makeRunId(Date.now(), randomBytes(10)))
    expect(made.filter((id) => !isRunId(id))).toEqual([])
    expect(new Set(made).size).toBe(1000)
    const single = Array.from({ length: 80 }, (_, bit) => {
      const bytes = new Uint8Array(10)
      bytes[bit >> 3] = 1 << (bit & 7)
      return makeRunId(0, bytes)
    })
    expect(new Set(single).size).toBe(80)
  })

  test('nothing else is one', () => {
    const id = makeRunId(Date.now(), randomBytes(10))
    for (const text of ['', id.slice(1), `${id}0`, `8${id.slice(1)}`, `${id}\n`, `../${id}`]) {
      expect(isRunId(text)).toBe(false)
    }
    for (const letter of ['I', 'L', 'O', 'U', 'a', '.', '/']) {
      expect(isRunId(id.slice(0, 25) + letter)).toBe(false)
    }
  })

  test('its branch is lowercase and names the issue', () => {
    expect(branchOf(12, '01ARZ3NDEKZZZZZZZZZZZZZZZZ')).toBe(
      'automation/issue-12-01arz3ndekzzzzzzzzzzzzzzzz',
    )
  })
})

const TRIGGERS = { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' }

describe('when two labels are the same', () => {
  test('case, variation selectors, composition and outer space do not matter', () => {
    const same: readonly (readonly [string, string])[] = [
      ['🤖 auto-fix', '🤖\uFE0F Auto-Fix'],
      ['🤖\uFE0E auto-fix', '🤖\uFE0F auto-fix '],
      ['caf\u00E9', 'cafe\u0301'],
      ['e\uFE0F\u0301', '\u00E9'],
      // The capital has no composed form of its own, the small letter has.
      ['J\u030C', '\u01F0'],
      ['a,b/c%d', 'A,B/C%D'],
    ]
    for (const [a, b] of same)
      expect({ a, b, same: isSameLabel(a, b) }).toEqual({ a, b, same: true })
  })

  test('everything else does', () => {
    for (const other of ['🤖 auto fix', '🤖auto-fix', 'auto-fix', '🤖 auto-fix-investigate', '']) {
      expect(isSameLabel('🤖 auto-fix', other)).toBe(false)
    }
  })

  test('the form that is compared is settled at once', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (label) => {
        expect(normalizeLabel(normalizeLabel(label))).toBe(normalizeLabel(label))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('which label is found', () => {
  test('the exact one before one that only compares equal, in the issue’s spelling', () => {
    expect(findLabel(['Auto-Fix', 'auto-fix'], 'auto-fix')).toBe('auto-fix')
    expect(findLabel(['bug', '🤖\uFE0F Auto-Fix'], TRIGGERS.code)).toBe('🤖\uFE0F Auto-Fix')
    expect(findLabel(['bug'], TRIGGERS.code)).toBe(null)
    expect(findLabel([], TRIGGERS.code)).toBe(null)
  })

  test('it says which kind of ticket it is; both at once are ambiguous', () => {
    expect(ticketOf(['bug', '🤖 AUTO-FIX'], TRIGGERS)).toBe('code')
    expect(ticketOf(['🤖\uFE0F auto-fix-investigate'], TRIGGERS)).toBe('investigation')
    expect(ticketOf(['🤖 auto-fix', '🤖 auto-fix-investigate'], TRIGGERS)).toBe('ambiguous')
    expect(ticketOf(['bug'], TRIGGERS)).toBe(null)
  })
})

describe('which spellings of a label GitHub is asked for', () => {
  test('the given one first, then its emoji without and with a variation selector', () => {
    expect(spellingsOf('🤖 auto-fix')).toEqual(['🤖 auto-fix', '🤖\uFE0F auto-fix'])
    expect(spellingsOf('🤖\uFE0F auto-fix')).toEqual(['🤖\uFE0F auto-fix', '🤖 auto-fix'])
    expect(spellingsOf('auto-fix 100%')).toEqual(['auto-fix 100%'])
    for (const spelling of spellingsOf('🤖 a ✏\uFE0E b')) {
      expect(isSameLabel(spelling, '🤖 a ✏ b')).toBe(true)
    }
  })
})

const LAUNCH: Launch = {
  runId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  argv: ['/bin/true', '--', 'ü'],
  treePath: '/tree',
  resultPath: '/tree/worker-result.json',
  transcriptPath: '/runs/x.log',
  transcriptMaxBytes: 0,
  timeoutMs: 1,
  completionGraceMs: 0,
  stallMs: 0,
  launchedAt: '2026-01-01T00:00:00.000Z',
}
const STARTED: Started = {
  supervisor: { pid: 1, startTicks: 2, bootId: 'b', session: 1 },
  worker: null,
  startedAt: '2026-01-01T00:00:00.000Z',
  deadlineAt: '2026-01-01T01:00:00.000Z',
}
const EXIT: ExitReport = {
  endedAt: '2026-01-01T00:00:00.000Z',
  reason: 'exited',
  detail: null,
  exitCode: 0,
  signal: null,
  transcriptBytes: 5,
  transcriptTruncated: false,
  descendantsKilled: 0,
  unkillable: [3],
}

/** The fields of a JSON object this test wrote itself. */
const fieldsOf = (text: string): Record<string, unknown> =>
  JSON.parse(text) as Record<string, unknown>

describe('what the files of a run can say', () => {
  test('each comes back as it was written', () => {
    expect(parseRunFile('launch', formatRunFile('launch', LAUNCH))).toMatchObject(LAUNCH)
    expect(parseRunFile('started', formatRunFile('started', STARTED))).toMatchObject(STARTED)
    expect(parseRunFile('exit', formatRunFile('exit', EXIT))).toMatchObject(EXIT)
  })

  test('no field may be missing or of another kind', () => {
    const whole = fieldsOf(formatRunFile('launch', LAUNCH))
    for (const name of Object.keys(whole)) {
      const { [name]: _, ...rest } = whole
      expect([name, parseRunFile('launch', JSON.stringify(rest))]).toEqual([name, null])
      const odd = JSON.stringify({ ...whole, [name]: { odd: true } })
      expect([name, parseRunFile('launch', odd)]).toEqual([name, null])
    }
  })

  test.each([
    ['another version', { version: 2 }],
    ['another file', { format: 'caduceus-exit' }],
    ['an empty command', { argv: [] }],
    ['a command that is no list of texts', { argv: ['/bin/true', 1] }],
    ['a relative path', { treePath: 'tree' }],
    ['a negative number', { timeoutMs: -1 }],
    ['a fraction', { timeoutMs: 1.5 }],
    ['no time', { launchedAt: 'yesterday' }],
  ])('%s is refused', (_, change) => {
    const whole = fieldsOf(formatRunFile('launch', LAUNCH))
    expect(parseRunFile('launch', JSON.stringify({ ...whole, ...change }))).toBeNull()
  })

  test('an unknown reason and half a process are refused', () => {
    const exit = fieldsOf(formatRunFile('exit', EXIT))
    expect(parseRunFile('exit', JSON.stringify({ ...exit, reason: 'toString' }))).toBeNull()
    const started = fieldsOf(formatRunFile('started', STARTED))
    expect(parseRunFile('started', JSON.stringify({ ...started, worker: { pid: 1 } }))).toBeNull()
    expect(parseRunFile('started', '')).toBeNull()
    expect(parseRunFile('started', 'null')).toBeNull()
  })

  test('only a cancel is a cancel', () => {
    expect(isCancelRequest(CANCEL_REQUEST)).toBe(true)
    expect(['', '{}', '[]', '"cancel"', '{"action":"canc'].some(isCancelRequest)).toBe(false)
  })

  test('an environment is an object of texts', () => {
    expect(parseEnvironment('{"A":"1","__proto__x":""}')).toEqual({ A: '1', __proto__x: '' })
    for (const text of ['', '[]', '{"A":1}', '{"A":null}', '{"A":"1"']) {
      expect(parseEnvironment(text)).toBeNull()
    }
  })

  test('only "success" claims success', () => {
    expect(claimsSuccess('{"status":"success"}')).toBe(true)
    expect(['{"status":"Success"}', '{}', '[]', 'success', ''].some(claimsSuccess)).toBe(false)
  })
})

describe('what an end means', () => {
  const FACTS: EndFacts = {
    program: '/opt/bridge',
    transcriptPath: '/state/runs/x.log',
    timeoutMs: 3_600_000,
    stallMs: 60_000,
  }

  /** `Object.keys` forgets that these are the table's own keys. */
  const REASONS = Object.keys(END_REASONS) as EndReason[]

  function report(change: Partial<ExitReport>): ExitReport {
    return {
      endedAt: '2026-01-01T00:00:00.000Z',
      reason: 'exited',
      detail: null,
      exitCode: null,
      signal: null,
      transcriptBytes: 0,
      transcriptTruncated: false,
      descendantsKilled: 0,
      unkillable: [],
      ...change,
    }
  }

  const verdictOn = (change: Partial<ExitReport>) =>
    classifyEnd({ kind: 'ended', report: report(change) }, FACTS)

  test.each<[string, Partial<ExitReport>, string]>([
    ['exit 0', { exitCode: 0 }, 'read-result'],
    [
      'a lingering worker with a result',
      { reason: 'completion-grace', signal: 'SIGTERM' },
      'read-result',
    ],
    ['a cancel', { reason: 'cancelled', signal: 'SIGTERM' }, 'cancelled'],
    ['another exit code', { exitCode: 3 }, 'worker/exited'],
    ['a crash', { signal: 'SIGSEGV' }, 'worker/exited'],
    ['a kill from elsewhere', { signal: 'SIGKILL' }, 'worker/interrupted'],
    ['a hang-up', { signal: 'SIGHUP' }, 'worker/interrupted'],
    ['an unknown end', {}, 'unknown-exit worker/interrupted'],
    ['the deadline, whatever the exit', { reason: 'deadline', exitCode: 0 }, 'worker/timed-out'],
    ['a stall', { reason: 'stalled', signal: 'SIGTERM' }, 'worker/stalled'],
    ['a signal to the supervisor', { reason: 'signal', exitCode: 0 }, 'worker/interrupted'],
    ['an absent program', { reason: 'spawn-failed', detail: 'ENOENT' }, 'worker/command-missing'],
    [
      'a closed program',
      { reason: 'spawn-failed', detail: 'EACCES' },
      'worker/command-not-executable',
    ],
    ['another failed start', { reason: 'spawn-failed', detail: 'E2BIG' }, 'sys/spawn-failed'],
    ['a full disk', { reason: 'transcript-failed', detail: 'ENOSPC' }, 'worker/transcript-failed'],
    ['a fault of ours', { reason: 'supervisor-failed', detail: 'x' }, 'worker/supervisor-failed'],
  ])('%s', (_, change, expected) => {
    const verdict = verdictOn(change)
    const shown = 'fault' in verdict ? verdict.fault.code : verdict.kind
    expect(verdict.kind === 'unknown-exit' ? `${verdict.kind} ${shown}` : shown).toBe(expected)
  })

  test('processes left over outrank every end: it is judged once they are gone', () => {
    for (const reason of REASONS) {
      expect(verdictOn({ reason, exitCode: 0, unkillable: [7] })).toMatchObject({
        kind: 'unreaped',
        onceReaped: verdictOn({ reason, exitCode: 0 }),
      })
    }
  })

  test.each([
    ['nothing was paid', true, false, { kind: 'not-started' }],
    ['nobody knows', true, true, { kind: 'unknown-exit', fault: { code: 'worker/interrupted' } }],
    [
      'there never was one',
      false,
      false,
      { kind: 'failed', fault: { code: 'worker/interrupted' } },
    ],
  ])('a vanished supervisor may have left processes: %s', (_, launched, workerStarted, once) => {
    expect(classifyEnd({ kind: 'vanished', launched, workerStarted }, FACTS)).toMatchObject({
      kind: 'unreaped',
      onceReaped: once,
    })
  })

  test('only what the worker did itself costs an attempt', () => {
    const classes = REASONS.map((reason): [EndReason, string] => {
      const verdict = verdictOn({ reason, exitCode: 1 })
      return [reason, 'fault' in verdict ? FAULTS[verdict.fault.code].class : verdict.kind]
    })
    expect(classes.filter(([, found]) => found === 'worker').map(([reason]) => reason)).toEqual([
      'exited',
      'deadline',
      'stalled',
    ])
  })

  test('every message can be filled from its details', () => {
    for (const reason of REASONS) {
      const verdict = verdictOn({ reason, exitCode: 1, detail: 'ENOENT' })
      if (!('fault' in verdict)) continue
      const { message, next } = verdict.fault
      expect(`${message} ${next}`).not.toMatch(/ \?|\?\.|null|undefined/)
    }
  })
})

describe('which variables never reach a worker', () => {
  test.each([
    'GITHUB_TOKEN',
    'GH_TOKEN',
    'GH_ENTERPRISE_TOKEN',
    'GH_TOKEN_2',
    'CADUCEUS_GITHUB_TOKEN',
    'AUTO_ISSUE_GITHUB_TOKEN',
    'TOKEN_FOR_GITHUB',
    'MYGITHUBTOKEN',
    'github_token',
    'MY_GH_TOKEN',
    'GITHUB_PAT',
    'GH_PAT',
    'MY_GITHUB_PAT',
    'CADUCEUS_SECRET',
    'CADUCEUS_API_TOKEN',
  ])('%s is denied', (name) => {
    expect(isDeniedName(name)).toBe(true)
    expect(mayExposeDenied(name)).toBe(true)
  })

  test.each([
    'PATH',
    'HF_TOKEN',
    'OPENAI_API_KEY',
    'GITHUB_REPOSITORY',
    'GHOST_TOKEN',
    'XGH_TOKEN',
    'CADUCEUS_RUN_ID',
    'AZURE_PAT',
    'GITHUB_PATH',
  ])('%s is not', (name) => {
    expect(isDeniedName(name)).toBe(false)
    expect(mayExposeDenied(name)).toBe(false)
  })

  test.each([
    '*',
    'G*',
    'GH*',
    'GH_*',
    'GITHUB_*',
    'gith*',
    'A*',
    'CADUCEUS_*',
    'MY_GITHUB_*',
    'X_GH_*',
  ])('the wildcard %s asks for too much', (entry) => {
    expect(mayExposeDenied(entry)).toBe(true)
  })

  test.each(['AWS_*', 'HF_*', 'GEMINI_*', 'GOOGLE_*', 'CARGO_*', 'HTTP*'])(
    'the wildcard %s does not',
    (entry) => {
      expect(mayExposeDenied(entry)).toBe(false)
    },
  )
})

function observed<P extends object>(port: P): { port: P; seen: string[] } {
  const seen: string[] = []
  const note = ({ port: name, method, when }: Effect): void => {
    seen.push(`${name}.${method} ${when}`)
  }
  return { port: countEffects('p', port, note), seen }
}

describe('an observed port', () => {
  test('announces a call before it starts and after it returned, and passes values through', () => {
    const { port, seen } = observed({
      add: (a: number, b: number) => {
        seen.push('adding')
        return a + b
      },
    })
    expect(port.add(1, 2)).toBe(3)
    expect(seen).toEqual(['p.add before', 'adding', 'p.add after'])
  })

  test('a promise counts as ended when it is', async () => {
    let finish: (value: string) => void = () => {}
    const { port, seen } = observed({
      later: () =>
        new Promise<string>((resolve) => {
          finish = resolve
        }),
    })
    const pending = port.later()
    await Promise.resolve()
    expect(seen).toEqual(['p.later before'])
    finish('done')
    expect(await pending).toBe('done')
    expect(seen).toEqual(['p.later before', 'p.later after'])
  })

  test('what is thrown or rejected is announced as failed and passed on as it is', async () => {
    const problem = fault('internal/unexpected', { reason: 'test' })
    const { port, seen } = observed({
      throws: () => {
        throw problem
      },
      rejects: () => Promise.reject(problem),
    })
    expect(() => port.throws()).toThrow(problem)
    await expect(port.rejects()).rejects.toBe(problem)
    expect(seen).toEqual([
      'p.throws before',
      'p.throws failed',
      'p.rejects before',
      'p.rejects failed',
    ])
  })

  test('objects with private parts and plain values work as before', () => {
    class Counter {
      readonly name = 'counter'
      #count = 0
      increase(): number {
        this.#count += 1
        return this.#count
      }
      get count(): number {
        return this.#count
      }
    }
    const { port, seen } = observed(new Counter())
    port.increase()
    expect([port.increase(), port.count, port.name]).toEqual([2, 2, 'counter'])
    expect(seen.length).toBe(4)
  })

  test('an observer that throws before the call prevents it', () => {
    let called = false
    const refuse = (): never => {
      throw fault('internal/unexpected', { reason: 'refused' })
    }
    const port = countEffects('p', { act: () => void (called = true) }, refuse)
    expect(() => port.act()).toThrow('refused')
    expect(called).toBe(false)
  })
})
