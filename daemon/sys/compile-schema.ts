import { Ajv } from 'ajv'
import type { Checked } from '../core/schema-error.ts'

/** Where a check differs from Ajv's defaults. */
type SchemaOptions = Readonly<{
  /** Every error is reported, not the first alone. */
  allErrors?: boolean
  /** Defaults are filled into the checked data itself. */
  useDefaults?: boolean
}>

/**
 * The check of a JSON schema. In a build it is code already: scripts/compile-schemas.mjs replaces every module
 * that calls this function, so no process of the program loads Ajv. Elsewhere the first check compiles it.
 */
export function compileSchema<T>(
  schema: object,
  options: SchemaOptions = {},
): (data: unknown) => Checked<T> {
  const compile = () => new Ajv({ ...SETTINGS, ...options }).compile<T>(schema)
  let compiled: ReturnType<typeof compile> | null = null
  return (data) => {
    compiled ??= compile()
    return compiled(data) ? { ok: true, value: data } : { ok: false, errors: compiled.errors ?? [] }
  }
}

/** Whether a schema is valid itself is found out by the build. */
const SETTINGS = {
  strict: true,
  allowUnionTypes: true,
  messages: false,
  meta: false,
  validateSchema: false,
} as const
