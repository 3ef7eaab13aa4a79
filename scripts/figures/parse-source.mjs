// What the syntax of one TypeScript file shows: its functions, exports and imports.

import { dirname, join } from 'node:path'
import { parseSync } from '@swc/core'

/** The kinds of functions that the parser knows, and where each keeps its parameters. */
const FUNCTIONS = {
  FunctionDeclaration: (node) => node.params,
  FunctionExpression: (node) => node.params,
  ArrowFunctionExpression: (node) => node.params,
  ClassMethod: (node) => node.function.params,
  MethodProperty: (node) => node.params,
}

/**
 * Functions with their length in lines and number of parameters, the names the file exports, and the names it
 * imports from files of the repository. `*` stands for all names.
 */
export function parseSource({ path, text }) {
  const bytes = Buffer.from(text)
  const lineAt = (position) =>
    bytes
      .subarray(0, position - 1)
      .toString()
      .split('\n').length
  const program = parseSync(text, { syntax: 'typescript', target: 'es2022' })
  const functions = []
  const imports = []
  const visit = (node, name) => {
    if (Array.isArray(node)) for (const each of node) visit(each, name)
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return
    const ownName = nameOf(node) ?? name
    const paramsOf = FUNCTIONS[node.type]
    if (paramsOf !== undefined) {
      const { start, end } = node.span
      const line = lineAt(start)
      const length = lineAt(end) - line + 1
      functions.push({ path, line, name: ownName ?? '?', length, params: paramsOf(node).length })
    }
    for (const child of Object.values(node)) visit(child, ownName)
  }
  visit(program.body, null)
  for (const item of program.body) imports.push(...importsOf(item))
  for (const [, names, from] of text.matchAll(/\{([^{}]*)\}\s*=\s*await import\(\s*'([^']+)'/g)) {
    for (const name of names.split(',')) imports.push({ from, name: name.split(':')[0].trim() })
  }
  return {
    functions,
    exports: program.body.flatMap(exportsOf),
    imports: imports
      .filter(({ from }) => from.startsWith('.'))
      .map(({ from, name }) => ({ name, path: join(dirname(path), from) })),
  }
}

function nameOf(node) {
  const name = node.identifier ?? node.id ?? node.key
  return name?.value
}

/** A name that is not imported under its own name is `imported`. */
function importsOf(item) {
  const from = item.source?.value
  if (from === undefined) return []
  if (item.type === 'ExportAllDeclaration') return [{ from, name: '*' }]
  return (item.specifiers ?? []).map((specifier) => {
    if (specifier.type === 'ImportDefaultSpecifier') return { from, name: 'default' }
    if (specifier.type === 'ImportNamespaceSpecifier') return { from, name: '*' }
    return { from, name: (specifier.imported ?? specifier.orig ?? specifier.local).value }
  })
}

function exportsOf(item) {
  if (item.type === 'ExportDefaultDeclaration') return ['default']
  if (item.type !== 'ExportDeclaration') return []
  const { declaration } = item
  if (declaration.type !== 'VariableDeclaration') return [nameOf(declaration)]
  return declaration.declarations.flatMap(({ id }) => id.value ?? [])
}
