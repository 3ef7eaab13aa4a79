// Shapes that all stored files share. Objects are closed, so an unknown field is noticed instead of lost at the next
// write; and every schema carries the type it describes, so a schema that differs from its type does not compile.

declare const DESCRIBES: unique symbol

/** A JSON schema whose documents have the type `T`, no more and no less. */
export type Schema<T> = Readonly<Record<string, unknown>> & {
  readonly [DESCRIBES]?: (value: T) => T
}

type TypeOf<S> = S extends Schema<infer T> ? T : never
type ObjectOf<F> = { [K in keyof F]: TypeOf<F[K]> }

export const TEXT: Schema<string> = { type: 'string' }
export const FLAG: Schema<boolean> = { type: 'boolean' }
export const COUNT: Schema<number> = {
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
}

/** RFC 3339 in UTC with milliseconds, as core/timestamp writes it. */
export const TIME: Schema<string> = {
  type: 'string',
  pattern:
    '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z$',
}

export const RUN_ID: Schema<string> = {
  type: 'string',
  pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$',
}

/** An object with these fields and no others. */
export function closedObject<F extends object>(fields: F): Schema<ObjectOf<F>> {
  return {
    type: 'object',
    additionalProperties: false,
    required: Object.keys(fields),
    properties: fields,
  }
}

/** As `closedObject`, with further fields that may be absent. */
export function closedObjectWith<F extends object, O extends object>(
  fields: F,
  optional: O,
): Schema<ObjectOf<F> & Partial<ObjectOf<O>>> {
  const { type, additionalProperties, required } = closedObject(fields)
  return { type, additionalProperties, required, properties: { ...fields, ...optional } }
}

export function mapOf<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return { type: 'object', additionalProperties: values }
}

export function listOf<T>(items: Schema<T>): Schema<readonly T[]> {
  return { type: 'array', items }
}

/** One of these names. */
export function oneOf<const N extends string>(names: readonly N[]): Schema<N> {
  return { type: 'string', enum: names }
}

/** One of the names of a table. */
export function keyOf<T extends object>(table: T): Schema<keyof T> {
  return { type: 'string', enum: Object.keys(table) }
}

/** The schema, or null; it must have a `type`. */
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  const { enum: values, ...rest }: Partial<Record<string, unknown>> = schema
  // In JSON Schema a closed list of values must name null as well.
  const names = Array.isArray(values) ? { enum: values.concat(null) } : {}
  return { ...rest, nullable: true, ...names }
}

const ISSUE_NUMBER: Schema<number> = { type: 'integer', minimum: 1, maximum: 9_999_999_999 }

/** The grammar of the names is that of core/issue-key.ts; stored-formats.ts checks it. */
export const ISSUE_KEY = closedObject({ owner: TEXT, name: TEXT, number: ISSUE_NUMBER })

export const RECORDED_ERROR = closedObject({ code: TEXT, message: TEXT, at: TIME })

/** The version this program writes; the original's files have version 1 and no format name. */
export const STATE_VERSION = 2

/** What every stored file starts with: `format` and `version`. */
export type StoredFields = Readonly<{ format: string; version: number }>

/** The two fields, for one format. */
export function storedFields(format: string) {
  const name: Schema<string> = { type: 'string', const: format }
  const version: Schema<number> = { type: 'integer', const: STATE_VERSION }
  return { format: name, version }
}
