import { FAULTS, type FaultCode } from './fault-catalogue.ts'
import type { FaultSpec } from './fault-classes.ts'
import { redact } from './redaction.ts'

/** Facts that fill a fault's message and next step; values are shown to people, so never secrets. */
export type FaultDetails = Readonly<Record<string, string | number | boolean | null | undefined>>

const FAULT = Symbol.for('caduceus.fault')

/**
 * A typed fault: a code from the catalogue, the facts of this occurrence, and a next step.
 * Message, details and next step are redacted when it is made, so whatever prints a fault later
 * cannot leak what a foreign error carried (design §9).
 */
export class Fault extends Error {
  readonly [FAULT] = true
  readonly code: FaultCode
  readonly details: FaultDetails
  /** What to do next, one sentence. */
  readonly next: string

  constructor(code: FaultCode, details: FaultDetails, cause?: unknown) {
    const spec: FaultSpec = FAULTS[code]
    const shown = redactDetails(details)
    super(fill(spec.message, shown), cause === undefined ? undefined : { cause })
    this.name = 'Fault'
    this.code = code
    this.details = shown
    this.next = fill(spec.next, shown)
  }
}

/**
 * The only way to make a fault.
 * @param code a row of the catalogue
 * @param details values for the `{placeholders}` of the row's message and next step
 * @param cause the foreign error this one explains
 */
export function fault(code: FaultCode, details: FaultDetails = {}, cause?: unknown): Fault {
  return new Fault(code, details, cause)
}

/** What became of a write that failed: certainly nothing, or it may have taken effect (PROTOCOLS, Writes to GitHub). */
export type WriteEffect = 'none' | 'unknown'

/** The fault of a write. `effect` says whether the write may be sent again at once. */
export class WriteFault extends Fault {
  readonly effect: WriteEffect

  constructor(effect: WriteEffect, code: FaultCode, details: FaultDetails, cause?: unknown) {
    super(code, details, cause)
    this.effect = effect
  }
}

/** The only way to make the fault of a write; nothing has a default, because forgetting the effect costs a duplicate. */
export function writeFault(
  effect: WriteEffect,
  code: FaultCode,
  details: FaultDetails,
  cause?: unknown,
): WriteFault {
  return new WriteFault(effect, code, details, cause)
}

/** A fault that ended a write, with what became of that write. The fault itself stays the cause. */
export function withEffect(effect: WriteEffect, met: Fault): WriteFault {
  return new WriteFault(effect, met.code, met.details, met)
}

/** What became of the write that threw this; whatever does not prove that nothing happened leaves it unknown. */
export function effectOf(thrown: unknown): WriteEffect {
  const isProof = isFault(thrown) && 'effect' in thrown && thrown.effect === 'none'
  return isProof ? 'none' : 'unknown'
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

function textOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message
  try {
    return String(thrown)
  } catch {
    // An object that cannot be turned into text; telling it must not throw in its place.
    return 'something without a text was thrown'
  }
}

function redactDetails(details: FaultDetails): FaultDetails {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      typeof value === 'string' ? redact(value) : value,
    ]),
  )
}

function fill(template: string, details: FaultDetails): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? '?'))
}
