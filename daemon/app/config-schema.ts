import { CONFIG_SCHEMA } from '../config/schema.ts'

/** The JSON schema of the configuration, as editors want it. */
export function configJsonSchema(): object {
  return CONFIG_SCHEMA
}
