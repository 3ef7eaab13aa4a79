// Figures of the house, as Markdown (`npm run figures`): sizes, functions, exports, imports, structure. They are for
// reading and comparing; nothing fails here. What must hold is in `npm run check` and test/architecture.

import { spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import { parseSource } from './figures/parse-source.mjs'
import { countCommentLines, groupBy, quantile, readFiles } from './figures/read-files.mjs'

const files = readFiles()
const parsed = files
  .filter(({ path }) => path.endsWith('.ts'))
  .map((file) => ({ ...file, ...parseSource(file) }))
const source = parsed.filter(({ kind }) => kind === 'source')

const SECTIONS = {
  'Files by kind': sizesBy((file) => file.kind),
  'Files by folder': sizesBy((file) => `${file.folder} (${file.kind})`),
  'Measures of the source': measures(),
  'Longest functions': longestFunctions(),
  'Exports that no other file imports': unusedExports(),
  'Most imported files': mostImported(),
  'File names that occur twice': duplicateNames(),
  Structure: structure(),
}
for (const [title, lines] of Object.entries(SECTIONS))
  console.log(`## ${title}\n\n${lines.join('\n')}\n`)

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

function sizesBy(keyOf) {
  const groups = groupBy(files, keyOf)
  const rows = [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, group]) => {
      const lines = group.map((file) => file.lines)
      const over = (limit) => lines.filter((count) => count > limit).length
      const sum = lines.reduce((total, count) => total + count, 0)
      const shape = [quantile(lines, 0.5), quantile(lines, 0.9), Math.max(...lines)]
      return [name, group.length, sum, ...shape, over(200), over(300)]
    })
  return table(['', 'files', 'lines', 'median', 'p90', 'max', '> 200', '> 300'], rows)
}

function measures() {
  const text = source.map((file) => file.text).join('\n')
  const all = text.split('\n')
  const comments = source.reduce((sum, file) => sum + countCommentLines(file.text), 0)
  const functions = source.flatMap((file) => file.functions)
  const lengths = functions.map(({ length }) => length)
  const suppression = /(?:oxlint|eslint)-disable|biome-ignore|@ts-(?:expect-error|ignore)/g
  const rows = [
    ['comment lines', `${comments} (${((100 * comments) / all.length).toFixed(1)} %)`],
    ['lines over 120 characters', all.filter((line) => [...line].length > 120).length],
    ['suppressions', [...text.matchAll(suppression)].length],
    ['functions', functions.length],
    ['function length, median / p90', `${quantile(lengths, 0.5)} / ${quantile(lengths, 0.9)}`],
    ['functions over 40 / 60 lines', [40, 60].map((limit) => longer(lengths, limit)).join(' / ')],
    ['functions with 5 or more parameters', functions.filter(({ params }) => params > 4).length],
    ['exports', source.reduce((sum, file) => sum + file.exports.length, 0)],
  ]
  return table(['measure', 'value'], rows)
}

function longer(lengths, limit) {
  return lengths.filter((length) => length > limit).length
}

function longestFunctions() {
  const functions = source.flatMap((file) => file.functions)
  const longest = functions.toSorted((a, b) => b.length - a.length).slice(0, 15)
  const rows = longest.map((each) => [
    each.name,
    each.length,
    each.params,
    `${each.path}:${each.line}`,
  ])
  return table(['function', 'lines', 'parameters', 'where'], rows)
}

/** An export that only tests import is one that the product does not need. */
function unusedExports() {
  const importers = groupBy(
    parsed.flatMap((file) => file.imports.map((each) => ({ ...each, kind: file.kind }))),
    ({ path }) => path,
  )
  const rows = source.flatMap((file) =>
    file.exports.flatMap((name) => {
      const uses = (importers.get(file.path) ?? []).filter(
        (each) => each.name === name || each.name === '*',
      )
      if (uses.some(({ kind }) => kind !== 'tests')) return []
      return [[name, uses.length === 0 ? 'no file' : 'tests only', file.path]]
    }),
  )
  const count = (what) => rows.filter(([, by]) => by === what).length
  const sum = `Imported by no file: ${count('no file')}, by tests only: ${count('tests only')}.`
  return [sum, '', ...table(['export', 'imported by', 'file'], rows)]
}

function mostImported() {
  const counts = new Map()
  for (const { path, imports } of source) {
    for (const target of new Set(imports.map((each) => each.path))) {
      if (target !== path) counts.set(target, (counts.get(target) ?? 0) + 1)
    }
  }
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 10)
  return table(['file', 'imported by'], most)
}

function duplicateNames() {
  const groups = groupBy(source, ({ path }) => basename(path))
  const twice = [...groups].filter(([, group]) => group.length > 1)
  const rows = twice.map(([name, group]) => [name, group.map(({ path }) => path).join(', ')])
  return table(['name', 'files'], rows)
}

/** By the rules of the house, as dependency-cruiser applies them. */
function structure() {
  const folders = ['daemon', 'commands', 'embedded-github']
  const rules = ['--config', '.dependency-cruiser.mjs', '--output-type', 'json']
  const argv = ['node_modules/dependency-cruiser/bin/dependency-cruise.mjs', ...rules, ...folders]
  const { stdout } = spawnSync(process.execPath, argv, {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  })
  const { summary } = JSON.parse(stdout)
  const broken = (pattern) =>
    summary.violations.filter(({ rule }) => pattern.test(rule.name)).length
  return table(
    ['measure', 'value'],
    [
      ['modules', summary.totalCruised],
      ['imports', summary.totalDependenciesCruised],
      ['cycles', broken(/^no-cycles$/)],
      ['imports that point up or sideways', broken(/^rank-/)],
      ['other breaches', broken(/^(?!no-cycles$|rank-)/)],
    ],
  )
}
