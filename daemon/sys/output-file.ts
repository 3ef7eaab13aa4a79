import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  writeSync,
} from 'node:fs'
import { errorCode, ioFault } from './io-fault.ts'

const FLAGS =
  constants.O_WRONLY |
  constants.O_CREAT |
  constants.O_TRUNC |
  constants.O_APPEND |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK

/** A file that grows piece by piece. */
export class OutputFile {
  readonly #fd: number
  readonly #path: string

  constructor(path: string, fd: number) {
    this.#path = path
    this.#fd = fd
  }

  /** Appends all bytes. Faults: sys/io; then some of them may have been written. */
  append(bytes: Uint8Array): void {
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(this.#fd, bytes, done, bytes.length - done)
      }
    } catch (error) {
      throw ioFault('Writing', this.#path, error)
    }
  }

  /** Bytes in the file now. */
  size(): number {
    return fstatSync(this.#fd).size
  }

  /** Drops everything behind the first `bytes`. Faults: sys/io. */
  truncate(bytes: number): void {
    try {
      ftruncateSync(this.#fd, bytes)
    } catch (error) {
      throw ioFault('Shortening', this.#path, error)
    }
  }

  /** Makes what was written durable. Faults: sys/io. */
  sync(): void {
    try {
      fsyncSync(this.#fd)
    } catch (error) {
      throw ioFault('Syncing', this.#path, error)
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/**
 * Creates a file, or empties it, to be written piece by piece (0600). Faults: sys/io, also for a
 * symbolic link or anything but a regular file.
 */
export function createOutputFile(path: string): OutputFile {
  const fd = openOutput(path)
  try {
    if (!fstatSync(fd).isFile()) throw ioFault('Opening', path, 'not a regular file')
    fchmodSync(fd, 0o600)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return new OutputFile(path, fd)
}

function openOutput(path: string): number {
  try {
    return openSync(path, FLAGS, 0o600)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ELOOP') throw ioFault('Opening', path, 'a symbolic link')
    if (code === 'ENXIO') throw ioFault('Opening', path, 'not a regular file')
    throw ioFault('Opening', path, error)
  }
}
