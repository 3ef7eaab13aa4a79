// The fields of a request, and what is wrong with them.

import type { FieldProblem } from './replies.ts'
import type { StateReason } from './state.ts'

/** Longest body GitHub takes, for issues, pull requests and comments alike; in characters. */
const MAX_BODY_CHARACTERS = 65_536
const MAX_TITLE_CHARACTERS = 256

export type Fields = Readonly<Record<string, unknown>>

/** The fields of a JSON object; of anything else none. */
export function fieldsOf(body: unknown): Fields {
  return isFields(body) ? body : {}
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text, or null when the field is absent, null or something else. */
export function textField(fields: Fields, name: string): string | null {
  const value = fields[name]
  return typeof value === 'string' ? value : null
}

/** Names of labels, given as texts or as objects with a name; null when it is neither. */
export function labelNames(value: unknown): readonly string[] | null {
  if (!Array.isArray(value)) return null
  const names = value.map((entry: unknown) => {
    return typeof entry === 'string' ? entry : textField(fieldsOf(entry), 'name')
  })
  return names.every((name) => name !== null && name !== '')
    ? names.filter((n) => n !== null)
    : null
}

/** What is wrong with fields that have to be texts, or null, when they are given. */
export function textProblems(
  resource: string,
  fields: Fields,
  names: readonly string[],
): readonly FieldProblem[] {
  const isWrong = (value: unknown) =>
    value !== undefined && value !== null && typeof value !== 'string'
  return names
    .filter((name) => isWrong(fields[name]))
    .map((field) => ({ resource, field, code: 'invalid' }))
}

/** @param isRequired whether there has to be a title */
export function titleProblems(
  resource: string,
  fields: Fields,
  isRequired: boolean,
): readonly FieldProblem[] {
  const title = textField(fields, 'title')
  const isAbsent = (fields['title'] ?? null) === null
  if (title === null && !(isRequired && isAbsent)) return []
  if (title === null || title.trim() === '') {
    return [{ resource, field: 'title', code: 'missing_field' }]
  }
  if (characters(title) <= MAX_TITLE_CHARACTERS) return []
  const message = `title is too long (maximum is ${MAX_TITLE_CHARACTERS} characters)`
  return [{ resource: 'Issue', field: 'title', code: 'custom', message }]
}

/** GitHub reports it on the issue that every pull request is. */
export function bodyProblems(fields: Fields): readonly FieldProblem[] {
  const body = textField(fields, 'body') ?? ''
  if (characters(body) <= MAX_BODY_CHARACTERS) return []
  const message = `body is too long (maximum is ${MAX_BODY_CHARACTERS} characters)`
  return [{ resource: 'Issue', field: 'body', code: 'custom', message }]
}

/** Of a comment, where the body has to be there, and GitHub reports its length in another way. */
export function commentProblems(fields: Fields): readonly FieldProblem[] {
  const body = textField(fields, 'body')
  if (body === null || body.trim() === '') {
    return [{ resource: 'IssueComment', field: 'body', code: 'missing_field' }]
  }
  if (characters(body) <= MAX_BODY_CHARACTERS) return []
  const message = `Body is too long (maximum is ${MAX_BODY_CHARACTERS} characters)`
  return [{ resource: 'IssueComment', field: 'data', code: 'unprocessable', message }]
}

/** Unicode characters, not UTF-16 units: an emoji is one. */
const characters = (text: string): number =>
  text.length <= 256 ? text.length : Array.from(text).length

const REASONS = ['completed', 'not_planned', 'duplicate', 'reopened'] as const

export function stateProblems(fields: Fields): readonly FieldProblem[] {
  const state = textField(fields, 'state')
  const reason = textField(fields, 'state_reason')
  const isState = state === null || state === 'open' || state === 'closed'
  const isReason = reason === null || REASONS.some((known) => known === reason)
  return [
    ...(isState ? [] : [{ resource: 'Issue', field: 'state', code: 'invalid' }]),
    ...(isReason ? [] : [{ resource: 'Issue', field: 'state_reason', code: 'invalid' }]),
  ]
}

export function closingReason(fields: Fields): StateReason {
  const reason = textField(fields, 'state_reason')
  return REASONS.find((known) => known === reason && known !== 'reopened') ?? 'completed'
}
