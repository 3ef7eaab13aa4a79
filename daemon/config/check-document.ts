// A parsed document against the schema: everything wrong at once, and what can still be used of it.

import {
  describeExpectation,
  formatLocation,
  locationOf,
  type SchemaError,
} from '../core/schema-error.ts'
import { type Problem, showFound } from './problem.ts'
import { CONFIG_SCHEMA, type ConfigFile } from './schema.ts'
import { classifyUnknownKey } from './unknown-keys.ts'
import { validateConfigFile } from './validate-config.ts'

type CheckedDocument = Readonly<{
  /** With defaults; unusable values are replaced, so that the other checks can still run. */
  file: ConfigFile | null
  problems: readonly Problem[]
  warnings: readonly Problem[]
}>

type Finding = Readonly<{ severity: 'error' | 'warning'; problem: Problem }>

/** Checks keys and types. The document itself is not changed. */
export function checkDocument(document: unknown): CheckedDocument {
  if (!isMapping(document)) return notAMapping(document)
  const first = validateConfigFile(structuredClone(document))
  if (first.ok) return { file: first.value, problems: [], warnings: [] }
  const findings = onePerPath(first.errors.map((error) => explain(document, error)))
  const rest = validateConfigFile(withoutUnusable(document, first.errors))
  return {
    file: rest.ok ? rest.value : null,
    problems: findings.filter(isError).map(({ problem }) => problem),
    warnings: findings.filter((finding) => !isError(finding)).map(({ problem }) => problem),
  }
}

const isError = (finding: Finding): boolean => finding.severity === 'error'

function notAMapping(document: unknown): CheckedDocument {
  const problem = {
    path: '(document)',
    found: showFound('', document),
    wanted: 'a mapping of keys to values',
    fix: 'Write at least one key, for example watched_repos.',
  }
  return { file: null, problems: [problem], warnings: [] }
}

function explain(document: Mapping, error: SchemaError): Finding {
  const location = locationOf(error)
  const extra = error.params['additionalProperty']
  if (error.keyword === 'additionalProperties' && typeof extra === 'string') {
    return classifyUnknownKey(location, extra, keysAt(location))
  }
  const [key = ''] = location
  const found = valueAt(document, location)
  const path = formatLocation(location)
  const problem = {
    path,
    found: showFound(key, found),
    wanted: WANTED[path] ?? describeExpectation(error),
    fix: fixFor(location, found),
  }
  return { severity: 'error', problem }
}

/** Where the schema's own words are not the best ones. */
const WANTED: Readonly<Record<string, string>> = {
  'sandbox.image': 'name@sha256:<64 lowercase hexadecimal digits>; a tag is not enough',
  'sandbox.network': 'none or unrestricted; the network of the machine itself cannot be shared',
  ticket_label_code: 'the name of a label, at most 50 characters',
  ticket_label_investigation: 'the name of a label, at most 50 characters',
}

function fixFor(location: readonly string[], found: unknown): string {
  const usual = schemaAt(location)?.['default']
  const value = found === null ? 'Write a value' : 'Correct it'
  if (usual === undefined || usual === null) return `${value}, or remove the line.`
  return `${value}, or remove the line to use the default (${JSON.stringify(usual)}).`
}

function onePerPath(findings: readonly Finding[]): readonly Finding[] {
  const seen = new Set<string>()
  return findings.filter(({ problem }) => {
    if (seen.has(problem.path)) return false
    seen.add(problem.path)
    return true
  })
}

/** Passes the schema of every list of texts; what other checks say of it is already reported. */
const PLACEHOLDER = '?'

/** A copy without what the errors are about: a text in a list is replaced, so that positions stay. */
function withoutUnusable(document: Mapping, errors: readonly SchemaError[]): Mapping {
  const copy: Mapping = structuredClone(document)
  for (const error of errors) {
    const location = locationOf(error)
    const extra = error.params['additionalProperty']
    removeAt(copy, typeof extra === 'string' ? [...location, extra] : location)
  }
  return copy
}

function removeAt(document: Mapping, location: readonly string[]): void {
  const parentLocation = location.slice(0, -1)
  const parent = valueAt(document, parentLocation)
  const last = location.at(-1) ?? ''
  if (isMapping(parent)) Reflect.deleteProperty(parent, last)
  else if (Array.isArray(parent) && isTextList(parentLocation)) parent[Number(last)] = PLACEHOLDER
  else if (Array.isArray(parent)) removeAt(document, parentLocation)
}

function valueAt(document: unknown, location: readonly string[]): unknown {
  return location.reduce<unknown>(
    (value, segment) =>
      typeof value === 'object' && value !== null ? Reflect.get(value, segment) : undefined,
    document,
  )
}

type Mapping = Record<string, unknown>

/** The schema of the value at a location (`['sandbox', 'image']`), or null where it describes none. */
function schemaAt(location: readonly string[]): Mapping | null {
  let schema: unknown = CONFIG_SCHEMA
  for (const segment of location) {
    if (!isMapping(schema)) return null
    const properties = schema['properties']
    schema = isMapping(properties) ? properties[segment] : schema['items']
  }
  return isMapping(schema) ? schema : null
}

/** The keys there are at a location; none when no mapping belongs there. */
function keysAt(location: readonly string[]): readonly string[] {
  const properties = schemaAt(location)?.['properties']
  return isMapping(properties) ? Object.keys(properties) : []
}

/** Whether a list of texts belongs at a location. */
function isTextList(location: readonly string[]): boolean {
  const items = schemaAt(location)?.['items']
  return isMapping(items) && items['type'] === 'string'
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
