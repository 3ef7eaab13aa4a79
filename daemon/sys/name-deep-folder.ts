import { closeSync, constants, openSync, readlinkSync } from 'node:fs'
import { errorCode } from './io-fault.ts'

/** Opens a folder as a mere position: no right to read it is needed, and nothing is asked of its file system. */
const O_PATH = 0o10000000
const OPEN_FLAGS = O_PATH | constants.O_DIRECTORY

/** Levels climbed at once; their path must fit into one call (4096 bytes). */
const STRIDE = 1000
/** Of a folder that is deeper still, or that is moved down as fast as we climb, nothing is known. */
const MAX_STRIDES = 1000

/**
 * The path of the folder that a link of proc(5) leads to. The system names no path longer
 * than one page, but a process can step down as far as it likes: then the answer is the deepest folder above that
 * has a name.
 * Throws the system's error (Node's, with its code) when there is no such process or it may not be seen.
 */
export function nameFolder(link: string): string {
  return nameOrNull(link) ?? withFolder(link, nameAbove)
}

/** Climbs in strides until a folder has a name, then finds the deepest one of the last stride that has. */
function nameAbove(start: number, strides = 0): string {
  return withFolder(above(start, STRIDE), (higher) => {
    const name = nameOrNull(linkOf(higher))
    if (name !== null) return deepestName(start, STRIDE, name)
    if (strides === MAX_STRIDES) throw new RangeError('no folder above has a name')
    return nameAbove(higher, strides + 1)
  })
}

/** @param name of the folder `nameable` levels above `start`, which itself has none */
function deepestName(start: number, nameable: number, name: string): string {
  let nameless = 0
  let lowest = nameable
  let found = name
  while (lowest - nameless > 1) {
    const middle = Math.floor((nameless + lowest) / 2)
    const middleName = withFolder(above(start, middle), (fd) => nameOrNull(linkOf(fd)))
    if (middleName === null) nameless = middle
    else [lowest, found] = [middle, middleName]
  }
  return found
}

function nameOrNull(link: string): string | null {
  try {
    return readlinkSync(link)
  } catch (error) {
    if (errorCode(error) === 'ENAMETOOLONG') return null
    throw error
  }
}

function withFolder<T>(path: string, use: (fd: number) => T): T {
  const fd = openSync(path, OPEN_FLAGS)
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

const linkOf = (fd: number): string => `/proc/${process.pid}/fd/${fd}`

const above = (fd: number, levels: number): string => `${linkOf(fd)}/${'../'.repeat(levels)}`
