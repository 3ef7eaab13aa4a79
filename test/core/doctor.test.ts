import { describe, expect, test } from '@jest/globals'
import {
  CATEGORIES,
  type Category,
  CHECK_STATUSES,
  type CheckStatus,
  countStatuses,
  describeAge,
  describeBytes,
  environmentOfCron,
  evaluateFileSystem,
  evaluateSpace,
  exitCodeOf,
  HEARTBEAT_MS,
  isAtLeast,
  isStrippedByHermes,
  nearMissesOf,
  parseVersion,
  SPACE_GOALS,
  SUCCESS_MS,
  tickerProblem,
} from '../../daemon/doctor/check-result.ts'
import { parsePidNote } from '../../daemon/host/gateway.ts'

describe('what is the exit code of a report?', () => {
  const result = (verdict: CheckStatus, category: Category) => ({ verdict, category })
  const ALL = Object.keys(CHECK_STATUSES).flatMap((verdict) =>
    Object.keys(CATEGORIES).map((category) => result(verdict as CheckStatus, category as Category)),
  )

  test('nothing but a failure counts', () => {
    const harmless = ALL.filter(({ verdict }) => verdict !== 'fail')
    expect(harmless.length).toBeGreaterThan(0)
    expect(exitCodeOf([])).toBe(0)
    expect(exitCodeOf(harmless)).toBe(0)
  })

  test.each([
    [['configuration-runtime'], 1],
    [['host-prerequisite'], 2],
    [['configuration-runtime', 'host-prerequisite'], 2],
    [['host-prerequisite', 'configuration-runtime'], 2],
    [['configuration-runtime', 'configuration-runtime'], 1],
  ] as const)('failures of %j end with %d', (categories, code) => {
    const failures = categories.map((category) => result('fail', category))
    const around = [result('ok', 'host-prerequisite'), result('warn', 'host-prerequisite')]
    expect(exitCodeOf([...around, ...failures, ...around])).toBe(code)
  })

  test('the summary counts every verdict, also those that did not occur', () => {
    const found = [result('ok', 'host-prerequisite'), result('fail', 'host-prerequisite')]
    expect(countStatuses(found)).toEqual({ ok: 1, warn: 0, fail: 1, skipped: 0 })
  })
})

describe('what does a job of cron see?', () => {
  const OWN = { PATH: '/own', GITHUB_TOKEN: 'a', CADUCEUS_CONFIG: '/c', HERMES_HOME: '/h' }

  test('what the gateway was started with counts, and not this shell', () => {
    expect(environmentOfCron({ PATH: '/gateway', LANG: 'C' }, OWN, {})).toEqual({
      PATH: '/gateway',
      LANG: 'C',
      HERMES_HOME: '/h',
    })
  })

  test('while no gateway can be seen, this shell stands for it without our own variables', () => {
    expect(environmentOfCron(null, OWN, {})).toEqual({ PATH: '/own', HERMES_HOME: '/h' })
    // The gateway may have it, too; the check of the token says that this is not known.
    const withToken = { ...OWN, CADUCEUS_GITHUB_TOKEN: 't' }
    expect(environmentOfCron(null, withToken, {})['CADUCEUS_GITHUB_TOKEN']).toBe('t')
    const blank = { CADUCEUS_GITHUB_TOKEN: ' ' }
    expect(environmentOfCron(null, withToken, blank)['CADUCEUS_GITHUB_TOKEN']).toBe('t')
    expect(environmentOfCron({}, withToken, {})).toEqual({ HERMES_HOME: '/h' })
  })

  test('the variables of the host count more, and the stripped ones of both are gone', () => {
    const host = { CADUCEUS_GITHUB_TOKEN: 'b', GITHUB_TOKEN: 'c', PATH: '/host' }
    expect(environmentOfCron({ GH_TOKEN: 'd', PATH: '/gateway' }, OWN, host)).toEqual({
      CADUCEUS_GITHUB_TOKEN: 'b',
      PATH: '/host',
      HERMES_HOME: '/h',
    })
  })

  test.each([
    ['GITHUB_TOKEN', true],
    ['GH_TOKEN', true],
    ['OPENAI_API_KEY', true],
    ['ANTHROPIC_BASE_URL', true],
    ['TELEGRAM_BOT_TOKEN', true],
    ['CADUCEUS_GITHUB_TOKEN', false],
    ['OPENCODE_API_KEY', false],
    ['ANTHROPIC_AUTH_TOKEN', false],
    ['PATH', false],
  ])('%s is taken away: %p', (name, isTaken) => {
    expect(isStrippedByHermes(name)).toBe(isTaken)
  })
})

describe('which labels could be taken for another one?', () => {
  const WANTED = '🤖 auto-fix-investigate'

  test.each([
    '🤖 auto-fix-investigation',
    'auto-fix-investigate',
    'Auto Fix: Investigating',
    '🤖 auto_fix_investigate',
    '🤖 auto-fx-investigate',
    '🤖 autto-fix-investigate',
  ])('"%s" could', (label) => {
    expect(nearMissesOf(['bug', label], WANTED)).toEqual([label])
  })

  test.each([
    WANTED,
    // Case and variation selectors make no difference, so this is the label itself.
    '🤖\uFE0F AUTO-fix-Investigate',
    '🤖 auto-fix',
    'bug',
    '🤖',
    '',
  ])('"%s" could not', (label) => {
    expect(nearMissesOf([label], WANTED)).toEqual([])
  })
})

describe('how are numbers judged?', () => {
  test.each<[number | null, number | null, RegExp | null]>([
    [0, null, null],
    [HEARTBEAT_MS, SUCCESS_MS, null],
    [-HEARTBEAT_MS, 0, null],
    [null, 0, /^it has never run$/],
    [HEARTBEAT_MS + 1, 0, /^its last beat was 3 min ago$/],
    [-HEARTBEAT_MS - 1, 0, /^its last beat is 3 min in the future$/],
    [0, SUCCESS_MS + 1, /without a fault was 10 min ago$/],
  ])('of a ticker: beat %s ms ago, success %s ms ago', (beatMs, successMs, trouble) => {
    const found = tickerProblem(beatMs, successMs)
    expect(found === null ? null : trouble?.test(found)).toBe(trouble === null ? null : true)
  })

  test.each([
    [0x6969, 'fail'],
    [0xff534d42, 'fail'],
    // As Node gives it on a machine that takes it for a signed number.
    [0xff534d42 | 0, 'fail'],
    [0x65735546, 'warn'],
    [0x01021997, 'warn'],
    [0x01021994, 'warn'],
    [0xef53, null],
    [0x9123683e, null],
    [0x58465342, null],
  ])('a file system with the number %p: %p', (magic, verdict) => {
    expect(evaluateFileSystem(magic)?.verdict ?? null).toBe(verdict)
  })

  test('space is judged by the scarcer of bytes and inodes', () => {
    const { bytes, inodes } = SPACE_GOALS
    const plenty = [bytes.comfortable, inodes.comfortable] as const
    expect(evaluateSpace(...plenty)).toBe('ok')
    expect(evaluateSpace(bytes.comfortable, null)).toBe('ok')
    expect(evaluateSpace(bytes.comfortable - 1, plenty[1])).toBe('warn')
    expect(evaluateSpace(plenty[0], inodes.comfortable - 1)).toBe('warn')
    expect(evaluateSpace(bytes.least - 1, plenty[1])).toBe('fail')
    expect(evaluateSpace(plenty[0], inodes.least - 1)).toBe('fail')
    expect(evaluateSpace(bytes.least - 1, null)).toBe('fail')
  })

  test('versions are found in what programs print, and compared part by part', () => {
    expect(parseVersion('Hermes Agent v0.18.2 (2026.7.1)')).toEqual([0, 18, 2])
    expect(parseVersion('v20.19')).toEqual([20, 19, 0])
    expect(parseVersion('no version')).toBeNull()
    expect(isAtLeast([0, 18, 2], [0, 18, 2])).toBe(true)
    expect(isAtLeast([0, 18, 1], [0, 18, 2])).toBe(false)
    expect(isAtLeast([0, 20, 0], [0, 18, 2])).toBe(true)
    expect(isAtLeast([1, 0, 0], [0, 18, 2])).toBe(true)
    expect(isAtLeast([20], [20, 19])).toBe(false)
  })

  test('ages and sizes are told in one unit', () => {
    expect([-1, 45_000, 720_000, 10_800_000, 432_000_000].map(describeAge)).toEqual([
      '0 s',
      '45 s',
      '12 min',
      '3 h',
      '5 days',
    ])
    expect(describeBytes(1.5 * 1024 ** 3)).toBe('1.5 GiB')
    expect(describeBytes(99.9 * 1024 ** 2)).toBe('99 MiB')
  })

  test('the note of a gateway is a number or names one', () => {
    const note = { pid: 4711, startTicks: null }
    expect(parsePidNote('4711\n')).toEqual(note)
    expect(parsePidNote('{"pid": 4711, "kind": "hermes-gateway"}')).toEqual(note)
    expect(parsePidNote('{"pid": 4711, "start_time": 7}')).toEqual({ ...note, startTicks: 7 })
    for (const text of ['', 'x', '[]', 'null', '1', '-3', '1.5', '{"pid": "7"}', '{']) {
      expect(parsePidNote(text)).toBeNull()
    }
  })
})
