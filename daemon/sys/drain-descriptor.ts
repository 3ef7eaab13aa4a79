import { closeSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { ioFault } from './io-fault.ts'
import { waitReadable } from './native.ts'

/** Largest piece handed over at once; one buffer of this size is used again and again. */
const PIECE_BYTES = 64 * 1024

/** A pipe's read end that is being emptied. */
export type Drain = Readonly<{
  /** Resolves when the last writer has closed its end, on a read error, or after `stop`. */
  ended: Promise<void>
  /** Stops reading and closes the descriptor. */
  stop(): void
}>

/**
 * Empties a pipe or socket as fast as it fills, in constant memory; owns the descriptor from now on.
 * @param onBytes called synchronously; the bytes are overwritten after it returns
 */
export function drainDescriptor(fd: number, onBytes: (bytes: Uint8Array) => void): Drain {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES)
  const callback = (length: number): boolean => {
    onBytes(buffer.subarray(0, length))
    return true
  }
  const options: SocketConstructorOpts & ConnectOpts = {
    fd,
    readable: true,
    writable: false,
    onread: { buffer, callback },
  }
  const socket = new Socket(options)
  const ended = new Promise<void>((resolve) => {
    // A broken pipe has nothing more to give either; 'close' follows an error.
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
  socket.resume()
  return { ended, stop: () => socket.destroy() }
}

/**
 * Everything that comes through a pipe or socket until its writers close it, as UTF-8 text; nothing else
 * happens here meanwhile. null = more than `maxBytes`, or no end within `waitMs`. Closes the descriptor.
 * Faults: sys/io, sys/native-unavailable.
 */
export function readDescriptor(fd: number, maxBytes: number, waitMs: number): string | null {
  const until = performance.now() + waitMs
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    for (let left = waitMs; left > 0 && length <= maxBytes; left = until - performance.now()) {
      if (!waitReadable(fd, Math.ceil(left))) continue
      const piece = readAvailable(fd)
      if (piece.length === 0) return Buffer.concat(pieces).toString('utf8')
      pieces.push(piece)
      length += piece.length
    }
    return null
  } finally {
    closeSync(fd)
  }
}

function readAvailable(fd: number): Uint8Array {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES)
  try {
    return buffer.subarray(0, readSync(fd, buffer))
  } catch (error) {
    throw ioFault('Reading', `descriptor ${fd}`, error)
  }
}

// A descriptor that whoever started us left open would reach every process we start, detached ones
// included, and keep somebody's pipe open as long as they live (P§1). Node itself makes those it finds
// at the bottom of the table uninheritable and stops at a gap; what lies higher is closed here.

/** Bit of `flags` in proc(5) for a descriptor that no started program inherits (Linux, octal). */
const CLOSE_ON_EXEC = 0o2000000

const FIRST_OF_OTHERS = 3

/**
 * Closes descriptors from 3 up that a started program would inherit; Node opens none such itself. For
 * the start of a process that was not handed any on purpose. Does nothing where there is no proc(5).
 */
export function closeLeakedDescriptors(): void {
  const folder = `/proc/${process.pid}/fdinfo`
  for (const fd of orNull(() => readdirSync(folder))?.map(Number) ?? []) {
    if (fd < FIRST_OF_OTHERS) continue
    // One is of the listing itself and gone by now.
    const text = orNull(() => readFileSync(`${folder}/${fd}`, 'utf8'))
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(text ?? '') ?? []
    if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) closeSync(fd)
  }
}

function orNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch {
    return null
  }
}
