// The configuration's one schema: types, checks, defaults and docs/configuration.md (`npm run generate`) come
// from it.

import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import {
  CIRCUIT_KEYS,
  GITHUB_KEYS,
  PUBLISH_KEYS,
  REPOSITORY_KEYS,
  STATE_KEYS,
} from './daemon-keys.ts'
import { SANDBOX_SCHEMA, WORKER_KEYS } from './worker-keys.ts'

/** The keys by area, in the order of the documentation. */
export const CONFIG_AREAS = [
  { title: 'Repositories and pace', keys: REPOSITORY_KEYS },
  { title: 'GitHub', keys: GITHUB_KEYS },
  { title: 'Worker', keys: WORKER_KEYS },
  { title: 'Publishing', keys: PUBLISH_KEYS },
  { title: 'Files and retention', keys: STATE_KEYS },
  { title: 'Circuit breaker', keys: CIRCUIT_KEYS },
] as const satisfies readonly {
  title: string
  keys: Readonly<Record<string, JSONSchema>>
}[]

/** JSON schema (draft 7) of a configuration, for editors and for the validator. */
export const CONFIG_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Caduceus configuration',
  type: 'object',
  additionalProperties: false,
  properties: {
    ...REPOSITORY_KEYS,
    ...GITHUB_KEYS,
    ...WORKER_KEYS,
    ...PUBLISH_KEYS,
    ...STATE_KEYS,
    ...CIRCUIT_KEYS,
    sandbox: SANDBOX_SCHEMA,
  },
} as const satisfies JSONSchema

/** A configuration as written, valid in itself and with the defaults that do not depend on the machine. */
export type ConfigFile = FromSchema<typeof CONFIG_SCHEMA>

/** The name of a key of the top level. */
export type ConfigKey = keyof typeof CONFIG_SCHEMA.properties

export const CONFIG_KEYS: readonly string[] = Object.keys(CONFIG_SCHEMA.properties)
