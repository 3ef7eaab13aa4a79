import { Fault, isFault } from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import type { DetailsOf } from '../../daemon/core/fault-details.ts'

/** A fault of any code, with something in the place of every fact that is not given. */
export function sampleFault<Code extends FaultCode>(
  code: Code,
  known: Partial<DetailsOf<Code>> = {},
  cause?: unknown,
): Fault<Code> {
  const { message, next } = FAULTS[code]
  const names = Array.from(`${message}${next}`.matchAll(/\{(\w+)\}/g), ([, name]) => name ?? '')
  const facts = code === 'github/rate-limited' ? { untilMs: Number.NaN } : {}
  const details = { ...Object.fromEntries(names.map((name) => [name, 'X'])), ...facts, ...known }
  // The catalogue cannot be walked and typed at once.
  return new Fault(code, details as DetailsOf<Code>, cause)
}

/** The facts of a caught fault by name, for assertions; none of anything else. */
export function detailsOf(thrown: unknown): Readonly<Record<string, unknown>> {
  return isFault(thrown) ? { ...thrown.details } : {}
}
