// Checks the shipped tree as the host's install-time scanner does (the goal is its verdict "safe"), and against
// rules of the house: nothing that only makes sense on the machine it was written on.
//   --root DIR   another checkout    --json   for programs    --rules   the names of all rules
import { execFileSync } from 'node:child_process'
import { lstatSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, extname, join, sep } from 'node:path'
import { parseArgs } from 'node:util'
import {
  BINARY_SUFFIXES,
  CODE_SUFFIXES,
  INVISIBLE,
  patternOf,
  RULES,
  SCANNED_SUFFIXES,
} from './scanner-rules.mjs'

/** More files than `filesNoted` are one harmless finding of the host's scanner; their number is free. */
const LIMITS = { filesNoted: 400, bytes: 10 * 1024 * 1024, fileBytes: 1024 * 1024 }

/** Rules of the house, read in every text file; `files` narrows them down. */
const HOUSE_RULES = [
  {
    name: 'build-machine-path',
    pattern: patternOf(String.raw`(?<![\w.}~-])/work·/|/tmp·/team\b`),
    hint: 'no path of the machine it was written on',
  },
  {
    name: 'registry-address',
    files: /(?:^|\/)package-lock\.json$/,
    pattern: /"resolved":\s*"https?:/,
    hint: 'npm install with omit-lockfile-registry-resolved (.npmrc)',
  },
  {
    name: 'skipped-test',
    files: /^test\//,
    pattern: patternOf(String.raw`\b(?:test|it|describe)\.(?:skip|only)\b`),
    hint: 'let it run, or delete it',
  },
]

const { values: options } = parseArgs({
  options: { root: { type: 'string' }, json: { type: 'boolean' }, rules: { type: 'boolean' } },
})
const root = realpathSync.native(options.root ?? dirname(import.meta.dirname))

if (options.rules) console.log(JSON.stringify([...RULES, ...HOUSE_RULES].map(({ name }) => name)))
else checkTree()

function checkTree() {
  const entries = shippedPaths().flatMap(entryAt)
  const bytes = entries.reduce((sum, { size }) => sum + size, 0)
  const findings = [...entries.flatMap(findingsIn), ...findingsOfTree(entries.length, bytes)]
  const serious = findings.filter(({ level }) => level !== 'medium')
  const medium = findings.length - serious.length
  if (options.json) {
    console.log(JSON.stringify({ files: entries.length, bytes, medium, findings: serious }))
  } else {
    for (const finding of serious) console.log(describe(finding))
    console.log(`${entries.length} files, ${bytes} bytes, ${medium} harmless findings`)
  }
  process.exitCode = serious.length === 0 ? 0 : 1
}

/** What a commit of everything would ship. */
function shippedPaths() {
  const list = (...args) =>
    execFileSync('git', ['-C', root, 'ls-files', '-z', ...args], { maxBuffer: 16 * 1024 * 1024 })
      .toString()
      .split('\0')
      .filter((path) => path !== '')
  return [...new Set([...list(), ...list('--others', '--exclude-standard')])]
}

/** Empty for a file that is listed but was deleted. */
function entryAt(path) {
  const status = lstatSync(join(root, path), { throwIfNoEntry: false })
  return status === undefined ? [] : [{ path, size: status.size, isLink: status.isSymbolicLink() }]
}

function findingsOfTree(files, bytes) {
  const found = (level, name, hint) => ({ level, name, path: '.', line: 0, hint })
  return [
    ...(files > LIMITS.filesNoted
      ? [
          found(
            'medium',
            'many-files',
            `${files}; the scanner notes more than ${LIMITS.filesNoted}`,
          ),
        ]
      : []),
    ...(bytes > LIMITS.bytes
      ? [found('high', 'too-large', `${bytes} of at most ${LIMITS.bytes} bytes`)]
      : []),
  ]
}

function findingsIn({ path, size, isLink }) {
  const found = (name, hint, line = 0, level = 'high') => ({ level, name, path, line, hint })
  if (isLink) {
    return staysInside(path)
      ? []
      : [found('link-leaves-tree', 'ship the file itself', 0, 'critical')]
  }
  const findings = []
  if (size > LIMITS.fileBytes) findings.push(found('large-file', `${size} bytes; split it`))
  if (BINARY_SUFFIXES.has(suffixOf(path))) findings.push(found('binary', 'ship sources only'))
  const bytes = readFileSync(join(root, path))
  if (bytes.includes(0)) return findings
  for (const [index, line] of bytes.toString('utf8').split('\n').entries()) {
    for (const { name, hint, level } of rulesBrokenBy(path, line)) {
      findings.push(found(name, hint, index + 1, level))
    }
  }
  return findings
}

function rulesBrokenBy(path, line) {
  const ofHouse = HOUSE_RULES.filter(
    ({ files, pattern }) => (files?.test(path) ?? true) && pattern.test(line),
  )
  if (!SCANNED_SUFFIXES.has(suffixOf(path)) && basename(path) !== 'SKILL.md') return ofHouse
  const isCode = CODE_SUFFIXES.has(suffixOf(path))
  const ofHost = RULES.filter(
    ({ scope, pattern }) => !(isCode && scope === 'doc') && pattern.test(line),
  )
  const hidden = INVISIBLE.test(line)
    ? [{ name: 'invisible-character', level: 'high', hint: 'write it as an escape' }]
    : []
  return [...ofHouse, ...ofHost, ...hidden]
}

function staysInside(path) {
  try {
    return realpathSync.native(join(root, path)).startsWith(root + sep)
  } catch {
    return false
  }
}

function suffixOf(path) {
  return extname(path).toLowerCase()
}

function describe({ level, name, path, line, hint }) {
  return `${level} ${path}${line === 0 ? '' : `:${line}`} ${name} – ${hint}`
}
