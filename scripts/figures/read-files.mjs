// The files of the checkout that the figures are about, and what can be counted without parsing them.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Which files are of which kind; a file is of the first one that fits. */
const KINDS = [
  { kind: 'tests', pattern: /^test\/.*\.(?:ts|mjs|py)$/ },
  { kind: 'source', pattern: /^(?:daemon|commands|embedded-github)\/.*\.ts$/ },
  { kind: 'scripts', pattern: /^(?:scripts\/.*|bootstrap)\.(?:mjs|ts)$/ },
  { kind: 'docs', pattern: /\.md$/ },
]

/**
 * Every tracked file of a kind, with its text.
 * @returns {readonly { path: string, kind: string, folder: string, text: string, lines: number }[]}
 */
export function readFiles() {
  const listed = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0')
  return listed.filter(Boolean).flatMap((path) => {
    const kind = KINDS.find(({ pattern }) => pattern.test(path))?.kind
    if (kind === undefined) return []
    const text = readFileSync(path, 'utf8')
    return [{ path, kind, folder: folderOf(path), text, lines: text.split('\n').length - 1 }]
  })
}

/** The room of a file: two levels below `daemon` and `test`, one elsewhere. */
function folderOf(path) {
  const parts = path.split('/').slice(0, -1)
  return parts.slice(0, parts[0] === 'daemon' || parts[0] === 'test' ? 2 : 1).join('/') || '.'
}

/** Lines that hold nothing but a comment. */
export function countCommentLines(text) {
  let isInside = false
  return text.split('\n').filter((line) => {
    const trimmed = line.trim()
    const isComment = isInside || /^(?:\/\/|\/\*)/.test(trimmed)
    if (trimmed.startsWith('/*')) isInside = true
    if (trimmed.includes('*/')) isInside = false
    return isComment
  }).length
}

/** The value below which a share of the sorted numbers lies; 0 when there are none. */
export function quantile(numbers, share) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** A map from each key to its items, in their order. */
export function groupBy(items, keyOf) {
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
