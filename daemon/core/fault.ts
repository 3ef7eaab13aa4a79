import { FAULTS, type FaultCode } from './fault-catalogue.ts'
import type { FaultSpec } from './fault-classes.ts'
import type { DetailsFor, DetailsOf, DetailValue } from './fault-details.ts'
import { redact } from './redaction.ts'

const FAULT = Symbol.for('caduceus.fault')

/**
 * A typed fault: a code from the catalogue, the facts of this occurrence, and a next step.
 * Message, details and next step are redacted when it is made, so whatever prints a fault later
 * cannot leak what a foreign error carried.
 */
export class Fault<Code extends FaultCode = FaultCode> extends Error {
  readonly [FAULT] = true
  readonly code: Code
  readonly details: DetailsOf<Code>
  /** What to do next, one sentence. */
  readonly next: string

  constructor(code: Code, details: DetailsOf<Code>, cause?: unknown) {
    const spec: FaultSpec = FAULTS[code]
    const shown = redactDetails(details)
    super(fill(spec.message, shown), cause === undefined ? undefined : { cause })
    this.name = 'Fault'
    this.code = code
    this.details = shown
    this.next = fill(spec.next, shown)
  }
}

/** The details may be left out where the texts have no `{placeholders}`. */
type Rest<Code extends FaultCode> =
  Partial<DetailsFor<Code>> extends DetailsFor<Code>
    ? [details?: DetailsFor<Code>, cause?: unknown]
    : [details: DetailsFor<Code>, cause?: unknown]

/**
 * The only way to make a fault of anything but a write.
 * @param code a row of the catalogue
 * @param rest values for the `{placeholders}` of the row's message and next step, and the foreign error that this
 *   one explains
 */
export function fault<Code extends FaultCode>(code: Code, ...rest: Rest<Code>): Fault<Code> {
  const [details, cause] = rest
  return new Fault(code, complete<Code>(details), cause)
}

/** What became of a write that failed: certainly nothing, or it may have taken effect (PROTOCOLS, Writes to GitHub). */
export type WriteEffect = 'none' | 'unknown'

/** The fault of a write. `effect` says whether the write may be sent again at once. */
export class WriteFault<Code extends FaultCode = FaultCode> extends Fault<Code> {
  readonly effect: WriteEffect

  constructor(effect: WriteEffect, code: Code, details: DetailsOf<Code>, cause?: unknown) {
    super(code, details, cause)
    this.effect = effect
  }
}

/** The only way to make the fault of a write; nothing has a default, because forgetting the effect costs a duplicate. */
export function writeFault<Code extends FaultCode>(
  effect: WriteEffect,
  code: Code,
  ...rest: Rest<Code>
): WriteFault<Code> {
  const [details, cause] = rest
  return new WriteFault(effect, code, complete<Code>(details), cause)
}

/** A fault that ended a write, with what became of that write. */
export function withEffect(effect: WriteEffect, caught: Fault): WriteFault {
  return new WriteFault(effect, caught.code, caught.details, caught.cause)
}

/** What became of the write that threw this; whatever does not prove that nothing happened leaves it unknown. */
export function effectOf(thrown: unknown): WriteEffect {
  const isProof = isFault(thrown) && 'effect' in thrown && thrown.effect === 'none'
  return isProof ? 'none' : 'unknown'
}

/** Whether a thrown value is a fault of this code, whose details may then be read. */
export function isFaultOf<Code extends FaultCode>(
  thrown: unknown,
  code: Code,
): thrown is Fault<Code> {
  return isFault(thrown) && thrown.code === code
}

/** Whether a thrown value is a fault, also across module realms. */
export function isFault(thrown: unknown): thrown is Fault {
  return typeof thrown === 'object' && thrown !== null && FAULT in thrown
}

/** The fault itself, or the foreign error wrapped as `internal/unexpected`. */
export function asFault(thrown: unknown): Fault {
  if (isFault(thrown)) return thrown
  return fault('internal/unexpected', { reason: describeThrown(thrown) }, thrown)
}

/** One line that says what went wrong and what to do next. */
export function describeFault(thrown: unknown): string {
  const known = asFault(thrown)
  return known.next === '' ? known.message : `${known.message} ${known.next}`
}

/** The text of any thrown value, redacted and on one line. */
export function describeThrown(thrown: unknown): string {
  return redact(textOf(thrown)).replaceAll(/\s+/g, ' ').trim()
}

/** Why something failed, without what failed: the reason that a fault names, or the text of anything else. */
export function reasonOf(thrown: unknown): string {
  if (!isFault(thrown)) return describeThrown(thrown)
  const { details } = thrown
  return 'reason' in details ? String(details.reason) : thrown.message
}

function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message
  try {
    return String(thrown)
  } catch {
    // An object that cannot be turned into text; telling it must not throw in its place.
    return 'something without a text was thrown'
  }
}

/** None stand for the details of a code without placeholders, which `Rest` allows to leave out. */
function complete<Code extends FaultCode>(details: DetailsFor<Code> | undefined): DetailsOf<Code> {
  return (details ?? {}) as DetailsOf<Code>
}

/** Each text with the secrets in it covered; names and all other values stay. */
function redactDetails<Details extends object>(details: Details): Details {
  const shown = Object.entries(details).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === 'string' ? redact(value) : value,
  ])
  return Object.fromEntries(shown) as Details
}

function fill(template: string, shown: object): string {
  const details: Readonly<Record<string, DetailValue>> = { ...shown }
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? '?'))
}
