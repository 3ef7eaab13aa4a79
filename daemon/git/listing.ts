// Pure readers of git's output. What does not parse is a fault: skipped, it would be a lost change.

import { Buffer, isUtf8 } from 'node:buffer'
import { fault } from '../core/fault.ts'

/** A line of raw difference output (git-diff-files(1), "RAW OUTPUT FORMAT"). */
export type RawChange = Readonly<{
  path: BytePath
  /** A, M, D, T, U … */
  status: string
  oldMode: string
  newMode: string
  oldOid: string
  newOid: string
}>

/** An entry of an index or tree. */
export type ListedEntry = Readonly<{ path: BytePath; mode: string; oid: string }>

export const GITLINK = '160000'
export const SYMBOLIC_LINK = '120000'

const RAW = /^:([0-7]+) ([0-7]+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])[0-9]*$/
const STAGED = /^([0-7]+) ([0-9a-f]+) [0-3]\t(.+)$/s

/** Of `-r -z` without rename detection: each record is followed by one path. */
export function parseRawChanges(output: Buffer): readonly RawChange[] {
  const fields = splitNul(output)
  const changes: RawChange[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [, oldMode, newMode, oldOid, newOid, status] = RAW.exec(fields[at] ?? '') ?? []
    const path = fields[at + 1]
    if (oldMode === undefined || newMode === undefined || path === undefined) throw unreadable()
    if (oldOid === undefined || newOid === undefined || status === undefined) throw unreadable()
    changes.push({ path, status, oldMode, newMode, oldOid, newOid })
  }
  return changes
}

/** Of `ls-files -z --stage`. */
export function parseStaged(output: Buffer): readonly ListedEntry[] {
  return splitNul(output).map((record) => {
    const [, mode, oid, path] = STAGED.exec(record) ?? []
    if (mode === undefined || oid === undefined || path === undefined) throw unreadable()
    return { path, mode, oid }
  })
}

/** Of `ls-files -z`: paths, a repository of its own with a slash at the end. */
export function parsePaths(output: Buffer): readonly BytePath[] {
  return splitNul(output)
}

/** Of `check-attr -z` for one attribute: path, attribute, value. */
export function parseAttribute(output: Buffer): ReadonlyMap<BytePath, string> {
  const fields = splitNul(output)
  const values = new Map<BytePath, string>()
  for (let at = 0; at < fields.length; at += 3) values.set(fields[at] ?? '', fields[at + 2] ?? '')
  return values
}

/** Of `cat-file --batch`, by object id: header line, content, newline. */
export function parseBatch(output: Buffer): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>()
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0x0a, at)
    if (end < 0) break
    const [oid = '', , size] = output.toString('latin1', at, end).split(' ')
    at = end + 1
    // "<oid> missing" has no content.
    if (size === undefined) continue
    found.set(oid, output.subarray(at, at + Number(size)))
    at += Number(size) + 1
  }
  return found
}

/** Of `cat-file --batch-check='%(objectname) %(objectsize)'`, by object id. */
export function parseSizes(output: Buffer): ReadonlyMap<string, number> {
  const lines = output.toString('latin1').split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [oid, size] = line.split(' ')
      return oid === undefined || size === undefined ? [] : [[oid, Number(size)] as const]
    }),
  )
}

function splitNul(output: Buffer): readonly string[] {
  return output.toString('latin1').split('\0').slice(0, -1)
}

function unreadable(): Error {
  return fault('git/failed', { operation: 'listing', reason: 'its output has an unknown form' })
}

// Names on disk are bytes. Inside this folder a path is a string with one character per byte
// (latin1), so that nothing is lost on the way from git, through maps and sets, back to git.

/** A path as bytes, one character each. Never shown. */
export type BytePath = string

export function toBytes(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1')
}

/** A path of ours, for comparing. */
export function bytePathOf(text: string): BytePath {
  return Buffer.from(text).toString('latin1')
}

/** For ports and people: UTF-8 as it is; in anything else the bytes beyond ASCII as `\xNN`. */
export function displayPath(path: BytePath): string {
  const bytes = toBytes(path)
  if (isUtf8(bytes)) return bytes.toString()
  return path.replaceAll(
    /[\x80-\xff]/g,
    (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** For one line of a message: quoted, control characters escaped. */
export function quotePath(path: BytePath): string {
  return JSON.stringify(displayPath(path))
}

/** Input for git's `-z --stdin`: each path ends with NUL. */
export function nulTerminated(paths: readonly BytePath[]): Buffer {
  return toBytes(paths.map((path) => `${path}\0`).join(''))
}
