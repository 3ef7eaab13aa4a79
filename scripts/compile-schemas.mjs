// Ajv's part of a build: the modules that call `compileSchema` are replaced by the code that Ajv makes of their
// schemas, so that the program checks its files without loading Ajv.

import { relative } from 'node:path'
import { Ajv } from 'ajv'
import standaloneCode from 'ajv/dist/standalone/index.js'
import { importTypeScript } from './import-typescript.mjs'

/** The modules that hold nothing but calls of `compileSchema`. */
const CALLERS = /\/daemon\/(?:config\/validate-config|state\/validate-stored)\.ts$/
const COMPILED = 'compiled-schema'

/** The plugin of esbuild, for sources below `root`. */
export function compileSchemas(root) {
  /** The code of every check, by its name. */
  const code = new Map()
  return {
    name: 'compile-schemas',
    setup: ({ onResolve, onLoad }) => {
      onLoad({ filter: CALLERS }, async ({ path }) => {
        const calls = await importTypeScript(root, relative(root, path), [recordCalls])
        for (const [name, call] of Object.entries(calls)) code.set(name, compile(call))
        return { contents: Object.keys(calls).map(exportCheck).join('\n') }
      })
      onResolve({ filter: new RegExp(`^${COMPILED}:`) }, ({ path }) => ({
        path: path.slice(COMPILED.length + 1),
        namespace: COMPILED,
      }))
      onLoad({ filter: /.*/, namespace: COMPILED }, ({ path }) => ({
        contents: code.get(path),
        resolveDir: root,
      }))
      onResolve({ filter: /^ajv$/ }, ({ importer }) => ({
        errors: [{ text: `${importer} would load ajv; is its importer missing in CALLERS?` }],
      }))
    },
  }
}

/** While this plugin is in force, `compileSchema` answers with what it was given. */
const recordCalls = {
  name: 'record-calls',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/daemon\/sys\/compile-schema\.ts$/ }, () => ({
      contents: 'export const compileSchema = (schema, options) => ({ schema, options })',
    }))
  },
}

function compile({ schema, options }) {
  const ajv = new Ajv({
    strict: true,
    allowUnionTypes: true,
    messages: false,
    code: { source: true, esm: true, lines: true },
    ...options,
  })
  return standaloneCode.default(ajv, ajv.compile(withoutDescriptions(schema)))
}

const exportCheck = (name) => `
import matches${name} from '${COMPILED}:${name}'
export const ${name} = (data) =>
  matches${name}(data) ? { ok: true, value: data } : { ok: false, errors: matches${name}.errors ?? [] }`

/** Keywords that only describe; with them the code would contain the documentation. */
const DESCRIPTIVE = new Set([
  '$comment',
  '$schema',
  'description',
  'examples',
  'title',
  'writeOnly',
])

function withoutDescriptions(schema) {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]) => {
      if (DESCRIPTIVE.has(keyword)) return []
      if (keyword !== 'properties') return [[keyword, withoutDescriptions(value)]]
      // Below `properties` stand names, not keywords.
      const named = Object.entries(value).map(([name, inner]) => [name, withoutDescriptions(inner)])
      return [[keyword, Object.fromEntries(named)]]
    }),
  )
}
