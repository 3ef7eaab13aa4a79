import { describe, expect, test } from '@jest/globals'
import { compileSchema } from '../../daemon/sys/compile-schema.ts'

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: { count: { type: 'integer', default: 3 }, name: { type: 'string' } },
}

type Document = Readonly<{ count?: number; name?: string }>

describe('compileSchema', () => {
  test('data that follows the schema is answered as it is, with its type', () => {
    const data = { name: 'x' }
    const checked = compileSchema<Document>(SCHEMA)(data)
    expect(checked).toEqual({ ok: true, value: { name: 'x' } })
    expect(checked.ok && checked.value).toBe(data)
  })

  test('of what is wrong the first error is reported, or every one', () => {
    const data = { count: 'many', name: 5 }
    const errors = [
      { instancePath: '/count', keyword: 'type', params: { type: 'integer' } },
      { instancePath: '/name', keyword: 'type', params: { type: 'string' } },
    ]
    const first = compileSchema<Document>(SCHEMA)(data)
    expect(first).toMatchObject({ ok: false, errors: errors.slice(0, 1) })
    const all = compileSchema<Document>(SCHEMA, { allErrors: true })(data)
    expect(all).toMatchObject({ ok: false, errors })
  })

  test('defaults are filled into the data when that is asked for', () => {
    const data = {}
    expect(compileSchema<Document>(SCHEMA)(data)).toEqual({ ok: true, value: {} })
    expect(compileSchema<Document>(SCHEMA, { useDefaults: true })(data).ok).toBe(true)
    expect(data).toEqual({ count: 3 })
  })

  test('one check may be used again and again', () => {
    const check = compileSchema<Document>(SCHEMA)
    expect([{ count: 'x' }, { count: 1 }, []].map((data) => check(data).ok)).toEqual([
      false,
      true,
      false,
    ])
  })
})
