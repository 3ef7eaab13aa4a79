import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { redact } from '../core/redaction.ts'
import { shortenCharacters } from '../core/voice.ts'
import { cutUtf8 } from './cut-utf8.ts'
import {
  FIELDS,
  type FieldRule,
  isObject,
  type JsonObject,
  type JsonValue,
} from './result-fields.ts'
import { findJsonHazard, type JsonHazard } from './strict-json.ts'

/** A worker's result file, checked. */
export type WorkerResult = Readonly<{
  status: 'success'
  summary: string
  commitMessage: string
  pullRequestTitle: string
  artifacts: JsonObject
}>

export type ParsedResult =
  | Readonly<{ kind: 'success'; result: WorkerResult }>
  | Readonly<{ kind: 'failure'; status: string; summary: string }>

const HAZARDS = {
  'duplicate-key': (hazard: JsonHazard) => `the key ${show(hazard)} stands twice`,
  'reserved-key': (hazard: JsonHazard) => `the key ${show(hazard)} is not allowed`,
  'too-deep': () => `it is nested deeper than ${LIMITS.resultDepth} levels`,
} as const satisfies Record<JsonHazard['kind'], (hazard: JsonHazard) => string>

/**
 * A worker's result from the bytes of its file. Secrets are masked before anything is checked, cut or reported: this
 * is where the worker's words come in that go out in commits, pull requests, comments and errors.
 * @param known secret values the worker may have written
 * Faults: worker/result-unreadable (not UTF-8 or not JSON), worker/result-invalid (naming the field).
 */
export function parseResult(
  bytes: Uint8Array,
  transcript = '',
  known: readonly string[] = [],
): ParsedResult {
  const text = decode(bytes, transcript)
  const hazard = findJsonHazard(text, LIMITS.resultDepth)
  if (hazard !== null) throw invalid(HAZARDS[hazard.kind](masked(hazard, known)))
  const value = withoutSecrets(parseJson(text, transcript), known)
  if (!isObject(value)) throw invalid('it is not a JSON object')

  const status = value['status']
  if (typeof status === 'string' && status !== 'success') {
    const summary = value['summary']
    return {
      kind: 'failure',
      status: fixEncoding(shorten(status)),
      summary: typeof summary === 'string' ? fixEncoding(summary) : '',
    }
  }
  const rules: Readonly<Record<string, FieldRule>> = FIELDS
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(rules, name)) throw invalid(`it has the unknown field "${shorten(name)}"`)
  }
  for (const [name, rule] of Object.entries(rules)) {
    const field = value[name]
    if (field === undefined) {
      if (rule.required) throw invalid(`the field ${name} is missing`)
      continue
    }
    const problem = rule.problem(field)
    if (problem !== null) throw invalid(`the field ${name} ${problem}`)
  }
  const textOf = (name: string): string => {
    const field = value[name]
    return typeof field === 'string' ? field : ''
  }
  const artifacts = value['artifacts']
  return {
    kind: 'success',
    result: {
      status: 'success',
      summary: textOf('summary'),
      commitMessage: textOf('commit_message'),
      // A longer title from a file is cut, not refused.
      pullRequestTitle: shortenCharacters(textOf('pull_request_title'), LIMITS.titleCharacters),
      artifacts: artifacts !== undefined && isObject(artifacts) ? artifacts : {},
    },
  }
}

function masked(hazard: JsonHazard, known: readonly string[]): JsonHazard {
  return 'key' in hazard ? { ...hazard, key: redact(hazard.key, known) } : hazard
}

/** Every text in a value masked, the names of its entries too. */
function withoutSecrets(value: JsonValue, known: readonly string[]): JsonValue {
  if (typeof value === 'string') return redact(value, known)
  if (typeof value !== 'object' || value === null) return value
  if (!isObject(value)) return value.map((item) => withoutSecrets(item, known))
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      redact(name, known),
      withoutSecrets(inner, known),
    ]),
  )
}

function decode(bytes: Uint8Array, transcript: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw fault('worker/result-unreadable', { reason: 'it is not UTF-8', transcript }, cause)
  }
}

function parseJson(text: string, transcript: string): JsonValue {
  try {
    // JSON.parse returns exactly the JSON values.
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    throw fault('worker/result-unreadable', { reason: 'it is not JSON', transcript }, cause)
  }
}

/** A worker's words about its failure are shown whatever they are, without half characters and NULs. */
function fixEncoding(text: string): string {
  return cutUtf8(text.replaceAll(/[\p{Surrogate}\0]/gu, '\uFFFD'), LIMITS.summaryBytes)
}

function invalid(reason: string): Error {
  return fault('worker/result-invalid', { reason })
}

function show(hazard: JsonHazard): string {
  return 'key' in hazard ? `"${shorten(hazard.key)}"` : ''
}

function shorten(text: string): string {
  return shortenCharacters(text, 64)
}
