// Names on disk are bytes. Inside this folder a path is a string with one character per byte
// (latin1), so that nothing is lost on the way from git, through maps and sets, back to git.

import { Buffer, isUtf8 } from 'node:buffer'

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
