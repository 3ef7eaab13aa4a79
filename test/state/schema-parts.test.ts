import { describe, expect, test } from '@jest/globals'
import { JOURNAL_SCHEMA } from '../../daemon/state/journal-schema.ts'
import { META_SCHEMA, QUEUE_SCHEMA } from '../../daemon/state/store-schema.ts'

const SCHEMAS = { queue: QUEUE_SCHEMA, meta: META_SCHEMA, journal: JOURNAL_SCHEMA }

type Node = Readonly<Record<string, unknown>>

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The schema and every one inside it, with where it stands. */
function walk(node: Node, at: string): readonly (readonly [string, Node])[] {
  const { properties, items, additionalProperties } = node
  const fields = isNode(properties) ? Object.entries(properties) : []
  const inner: readonly (readonly [string, unknown])[] = [
    ...fields,
    ['[]', items],
    ['*', additionalProperties],
  ]
  return [
    [at, node],
    ...inner.flatMap(([name, value]) => (isNode(value) ? walk(value, `${at}.${name}`) : [])),
  ]
}

describe('how strict the schemas of stored files are', () => {
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const nodes = walk(schema, name)

    test(`${name}: every object is closed, or a map of values that are checked`, () => {
      const open = nodes.filter(
        ([, node]) =>
          node['type'] === 'object' &&
          node['additionalProperties'] !== false &&
          !isNode(node['additionalProperties']),
      )
      expect(open.map(([at]) => at)).toEqual([])
    })

    test(`${name}: every value has a type, every list of names allows null where null is allowed`, () => {
      expect(nodes.filter(([, node]) => typeof node['type'] !== 'string')).toEqual([])
      const wrong = nodes.filter(([, { enum: names, nullable }]) =>
        Array.isArray(names) ? names.includes(null) !== (nullable === true) : false,
      )
      expect(wrong.map(([at]) => at)).toEqual([])
    })

    test(`${name}: it names its format and version`, () => {
      expect(schema).toMatchObject({
        required: expect.arrayContaining(['format', 'version']),
        properties: {
          format: { const: expect.stringMatching(/^caduceus-/) },
          version: { const: 2 },
        },
      })
    })
  }
})
