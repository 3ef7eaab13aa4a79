import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { openLog, rotateLog } from '../../daemon/app/open-log.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { Clock, Log } from '../../daemon/core/ports.ts'

const CLOCK: Clock = { now: () => Date.parse('2026-01-01T00:00:00.000Z'), sleep: async () => {} }
const AT = '2026-01-01T00:00:00.000Z'
const SECRET = ['plain', 'secret', 'of', 'an', 'old', 'server'].join('-')

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'log-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const path = (): string => join(dir, 'logs', 'processor.log')
const open = (secrets: () => readonly string[] = () => []): Log =>
  openLog(path(), 'tick', CLOCK, secrets)
const text = (): string => readFileSync(path(), 'utf8')

describe('what a line of the log is', () => {
  test('JSON: when, how serious, which process, the sentence, and the fields in their order', () => {
    const log = open()
    log.info('run started', {
      issue: 'octo/app#1',
      b: [1, null],
      a: { z: true },
      absent: undefined,
    })
    log.warn('without fields')
    const head = (level: string): string =>
      `{"at":"${AT}","level":"${level}","process":"tick","pid":${process.pid},`
    expect(text()).toBe(
      `${head('info')}"event":"run started","issue":"octo/app#1","b":[1,null],"a":{"z":true}}\n` +
        `${head('warn')}"event":"without fields"}\n`,
    )
  })

  test('it is there as soon as the call returns, for the owner only', () => {
    open().error('first')
    expect(text()).toContain('"event":"first"')
    expect(statSync(path()).mode & 0o777).toBe(0o600)
  })

  test('secrets and what looks like one are redacted, however deep they stand', () => {
    const known: string[] = []
    const log = open(() => known)
    known.push(SECRET)
    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    log.info('x', { url: `https://user:${SECRET}@host`, deep: [{ token }], message: SECRET })
    expect(text()).not.toContain(SECRET)
    expect(text()).not.toContain(token)
    expect(JSON.parse(text())).toMatchObject({ event: 'x', deep: [{ token: expect.any(String) }] })
  })

  test('a text with line ends stays in its line', () => {
    open().info('x', { output: 'one\ntwo\r\n' })
    expect(text().split('\n')).toHaveLength(2)
    expect(JSON.parse(text())).toMatchObject({ output: 'one\ntwo\r\n' })
  })
})

describe('how the log is shared', () => {
  test('two writers of one path append, also behind a file that was moved away', () => {
    const [first, second] = [open(), open()]
    first.info('one')
    second.info('two')
    truncateSync(path(), LIMITS.logBytes + 1)
    rotateLog(path())
    first.info('three')
    expect(text()).toMatch(/^\{[^\n]*"event":"three"\}\n$/)
    expect(readFileSync(`${path()}.1`, 'utf8')).toContain('"event":"two"')
  })

  test('a log within its limit is left alone, and one that is absent is no fault', () => {
    rotateLog(path())
    open().info('one')
    truncateSync(path(), LIMITS.logBytes)
    rotateLog(path())
    expect(statSync(path()).size).toBe(LIMITS.logBytes)
  })

  test('a log that cannot be written is reported on the error stream and ends nothing', () => {
    mkdirSync(path(), { recursive: true })
    const stream = jest.spyOn(process.stderr, 'write').mockReturnValue(true)
    const log = open()
    log.info('one')
    log.info('two')
    const written = stream.mock.calls.map(([text]) => String(text))
    stream.mockRestore()
    expect(written).toHaveLength(2)
    expect(written[0]).toContain(path())
  })
})
