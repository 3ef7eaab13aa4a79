// What the check of a JSON schema answers (sys/compile-schema.ts), and how to say it.

/** One way in which a document differs from its schema. */
export type SchemaError = Readonly<{
  /** JSON pointer to the value, '' for the document itself. */
  instancePath: string
  /** The JSON-schema keyword that was not met. */
  keyword: string
  params: Readonly<Record<string, unknown>>
}>

/** The result of a check: the typed document, or how it differs from its schema. */
export type Checked<T> =
  | Readonly<{ ok: true; value: T }>
  | Readonly<{ ok: false; errors: readonly SchemaError[] }>

/** What the schema expects at the location of the error, as a phrase: "a whole number", "at least 1". */
export function describeExpectation(error: SchemaError): string {
  return EXPECTATIONS[error.keyword]?.(error.params) ?? `something else (${error.keyword})`
}

/** The keys and positions that lead from the top of the document to the value. */
export function locationOf(error: SchemaError): readonly string[] {
  const [, ...segments] = error.instancePath.split('/')
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** A location as people write it: `sandbox.resources.cpus`, `watched_repos[1]`. */
export function formatLocation(location: readonly string[]): string {
  return location
    .map((segment, index) => {
      if (/^\d+$/.test(segment)) return `[${segment}]`
      return index === 0 ? segment : `.${segment}`
    })
    .join('')
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  null: 'nothing (null)',
}

const EXPECTATIONS: Readonly<
  Record<string, (params: Readonly<Record<string, unknown>>) => string>
> = {
  type: ({ type }) =>
    listed(type)
      .map((name) => TYPE_NAMES[name] ?? name)
      .join(' or '),
  enum: ({ allowedValues }) => `one of ${listed(allowedValues).join(', ')}`,
  const: ({ allowedValue }) => String(allowedValue),
  minimum: ({ limit }) => `at least ${String(limit)}`,
  maximum: ({ limit }) => `at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `more than ${String(limit)}`,
  minLength: ({ limit }) =>
    limit === 1 ? 'text that is not empty' : `at least ${String(limit)} characters`,
  maxLength: ({ limit }) => `at most ${String(limit)} characters`,
  minItems: ({ limit }) =>
    limit === 1 ? 'a list that is not empty' : `at least ${String(limit)} entries`,
  maxItems: ({ limit }) => `at most ${String(limit)} entries`,
  pattern: ({ pattern }) => `text that matches ${String(pattern)}`,
  required: ({ missingProperty }) => `a value for ${String(missingProperty)}`,
  additionalProperties: ({ additionalProperty }) => `no key ${String(additionalProperty)}`,
}

function listed(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [String(value)]
}
