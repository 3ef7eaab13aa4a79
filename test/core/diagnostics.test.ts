import { describe, expect, test } from '@jest/globals'
import { addDiagnostics, type Diagnostic } from '../../daemon/core/diagnostics.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const AT = toTimestamp(NOW)

describe('the ring of diagnostics', () => {
  const diagnostic = (change: Partial<Diagnostic> = {}): Diagnostic => ({
    at: AT,
    code: 'ambiguous-labels',
    issue: 'o/r#1',
    message: 'm',
    ...change,
  })
  const later = (ms: number): Diagnostic => diagnostic({ at: toTimestamp(NOW + ms) })

  test('the same of the same issue counts once an hour, and then the list stays the same object', () => {
    const ring = addDiagnostics([], [diagnostic()])
    expect(addDiagnostics(ring, [later(3_599_999)])).toBe(ring)
    expect(addDiagnostics(ring, [])).toBe(ring)
    expect(addDiagnostics(ring, [later(3_600_000)])).toHaveLength(2)
    expect(addDiagnostics(ring, [diagnostic({ issue: null })])).toHaveLength(2)
    expect(addDiagnostics(ring, [diagnostic({ code: 'other' })])).toHaveLength(2)
  })

  test('also within one tick, and after the clock was set back', () => {
    const twice = [diagnostic({ message: 'first' }), diagnostic({ message: 'second' })]
    expect(addDiagnostics([], twice)).toEqual([diagnostic({ message: 'first' })])
    expect(addDiagnostics([diagnostic()], [later(-86_400_000)])).toHaveLength(2)
  })

  test('it holds 20 and loses the oldest', () => {
    const many = Array.from({ length: 25 }, (_, at) => diagnostic({ issue: `o/r#${at}` }))
    const ring = addDiagnostics(addDiagnostics([], many.slice(0, 12)), many.slice(12))
    expect(ring).toEqual(many.slice(5))
  })

  test('a message is cut to 256 bytes between characters', () => {
    const messageOf = (message: string): string | undefined =>
      addDiagnostics([], [diagnostic({ message })])[0]?.message
    const fits = `${'é'.repeat(126)}🤖`
    expect(messageOf(fits)).toBe(fits)
    expect(messageOf(`${'x'.repeat(252)}🤖z`)).toBe(`${'x'.repeat(252)}…`)
    expect(messageOf(`x${'é'.repeat(200)}`)).toBe(`x${'é'.repeat(126)}…`)
    expect(Buffer.byteLength(messageOf('🤖'.repeat(100)) ?? '')).toBeLessThanOrEqual(256)
  })
})
