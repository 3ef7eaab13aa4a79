import { LIMITS } from '../core/limits.ts'

// What each field of a result has to be.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export type JsonObject = Readonly<{ [name: string]: JsonValue }>

// C0 and C1 controls and the line separators; \n \r \t are allowed where text may have lines.
const CONTROL = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/u
const CONTROL_BUT_LINES = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/u
const UNPAIRED_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export type FieldRule = Readonly<{
  required: boolean
  problem: (value: JsonValue) => string | null
}>

/** Every field there is; another one is refused. */
export const FIELDS = {
  status: {
    required: true,
    problem: (value) => (typeof value === 'string' ? null : 'is not a text'),
  },
  summary: { required: true, problem: summaryProblem },
  commit_message: { required: true, problem: commitMessageProblem },
  pull_request_title: { required: true, problem: titleProblem },
  artifacts: { required: false, problem: artifactsProblem },
} as const satisfies Record<string, FieldRule>

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

export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
