import { fault, reasonOf } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { redact } from '../core/redaction.ts'
import { shortenCharacters } from '../core/voice.ts'
import { readFileBounded } from '../sys/files.ts'
import { cutUtf8 } from './cut-utf8.ts'
import { findJsonHazard, type JsonHazard } from './strict-json.ts'

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export type JsonObject = Readonly<{ [name: string]: JsonValue }>

/** What a worker left, checked (design §6, R§7.2 without `investigation`). */
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

// C0 and C1 controls and the line separators; \n \r \t are allowed where text may have lines.
const CONTROL = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/u
const CONTROL_BUT_LINES = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/u
const UNPAIRED_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

type FieldRule = Readonly<{ required: boolean; problem: (value: JsonValue) => string | null }>

const FIELDS = {
  status: {
    required: true,
    problem: (value) => (typeof value === 'string' ? null : 'is not a text'),
  },
  summary: { required: true, problem: summaryProblem },
  commit_message: { required: true, problem: commitMessageProblem },
  pull_request_title: { required: true, problem: titleProblem },
  artifacts: { required: false, problem: artifactsProblem },
} as const satisfies Record<string, FieldRule>

const HAZARDS = {
  'duplicate-key': (hazard: JsonHazard) => `the key ${show(hazard)} stands twice`,
  'reserved-key': (hazard: JsonHazard) => `the key ${show(hazard)} is not allowed`,
  'too-deep': () => `it is nested deeper than ${LIMITS.resultDepth} levels`,
} as const satisfies Record<JsonHazard['kind'], (hazard: JsonHazard) => string>

/**
 * A worker's result from the bytes of its file. Secrets are masked before anything is judged, cut or told: this
 * is where the worker's words come in that go out in commits, pull requests, comments and errors.
 * @param known secret values the worker may have told
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
      // A longer title from a file is cut, not refused (R§7.2).
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

function summaryProblem(value: JsonValue): string | null {
  return textProblem(value, (text) =>
    Buffer.byteLength(text) > LIMITS.summaryBytes
      ? `is longer than ${LIMITS.summaryBytes} bytes`
      : null,
  )
}

function commitMessageProblem(value: JsonValue): string | null {
  return textProblem(value, (text) => {
    if (CONTROL_BUT_LINES.test(text)) return 'has a control character'
    return Buffer.byteLength(text) > LIMITS.commitMessageBytes
      ? `is longer than ${LIMITS.commitMessageBytes} bytes`
      : null
  })
}

function titleProblem(value: JsonValue): string | null {
  return textProblem(value, (text) =>
    CONTROL.test(text) ? 'has a control character or more than one line' : null,
  )
}

/** What every text has to be, then what this one has to be. */
function textProblem(value: JsonValue, further: (text: string) => string | null): string | null {
  if (typeof value !== 'string') return 'is not a text'
  if (value.trim() === '') return 'is blank'
  if (value.includes('\0')) return 'has a NUL character'
  if (UNPAIRED_SURROGATE.test(value)) return 'has half a character (an unpaired surrogate)'
  return further(value)
}

function artifactsProblem(value: JsonValue): string | null {
  if (!isObject(value)) return 'is not an object'
  const keys = Object.keys(value)
  if (keys.length > LIMITS.artifacts) return `has more than ${LIMITS.artifacts} entries`
  const isBad = (key: string): boolean =>
    key === '' || Buffer.byteLength(key) > LIMITS.artifactKeyBytes || CONTROL.test(key)
  return keys.some(isBad)
    ? `has a key that is empty, longer than ${LIMITS.artifactKeyBytes} bytes or has a control character`
    : null
}

/** What a worker says of its failure is told, whatever it is: half characters and NULs are not. */
function fixEncoding(text: string): string {
  return cutUtf8(text.replaceAll(/[\p{Surrogate}\0]/gu, '\uFFFD'), LIMITS.summaryBytes)
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
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

/**
 * The result file of a run. The file is opened without following links and only when it is a regular
 * file with no other name, for another one may lie where the worker may not look; no more than 1 MiB is
 * read (R§7.2). The bytes are those of the file, secrets and all.
 * @param transcript where the worker's output is; named in the faults
 * @param known secret values the worker may have told
 * Faults: worker/result-missing, worker/result-unreadable, worker/result-invalid.
 */
export function readResult(
  path: string,
  transcript: string,
  known: readonly string[],
): { parsed: ParsedResult; bytes: Uint8Array } {
  const bytes = readOrFault(path, transcript)
  if (bytes === null) throw fault('worker/result-missing', { transcript })
  return { parsed: parseResult(bytes, transcript, known), bytes }
}

function readOrFault(path: string, transcript: string): Uint8Array | null {
  try {
    return readFileBounded(path, LIMITS.resultBytes, { refuseHardLinks: true })
  } catch (cause) {
    // What the worker put there in place of a file is the worker's doing, not a fault around us.
    const reason = `it is ${reasonOf(cause)}`
    throw fault('worker/result-unreadable', { reason, transcript }, cause)
  }
}
