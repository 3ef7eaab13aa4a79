import { compileSchema } from '../sys/compile-schema.ts'
import { CONFIG_SCHEMA, type ConfigFile } from './schema.ts'

/** Whether a document follows the schema, with everything that is wrong; defaults are filled into the document. */
export const validateConfigFile = compileSchema<ConfigFile>(CONFIG_SCHEMA, {
  allErrors: true,
  useDefaults: true,
})
