import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'

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
