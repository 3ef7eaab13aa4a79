import { CONFIG_SCHEMA } from './schema.ts'

export type Mapping = Record<string, unknown>

/** The schema of the value at a location (`['sandbox', 'image']`), or null where it describes none. */
export function schemaAt(location: readonly string[]): Mapping | null {
  let schema: unknown = CONFIG_SCHEMA
  for (const segment of location) {
    if (!isMapping(schema)) return null
    const properties = schema['properties']
    schema = isMapping(properties) ? properties[segment] : schema['items']
  }
  return isMapping(schema) ? schema : null
}

/** The keys there are at a location; none when no mapping belongs there. */
export function keysAt(location: readonly string[]): readonly string[] {
  const properties = schemaAt(location)?.['properties']
  return isMapping(properties) ? Object.keys(properties) : []
}

/** Whether a list of texts belongs at a location. */
export function isTextList(location: readonly string[]): boolean {
  const items = schemaAt(location)?.['items']
  return isMapping(items) && items['type'] === 'string'
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
