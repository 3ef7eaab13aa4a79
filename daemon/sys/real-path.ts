import { realpathSync } from 'node:fs'
import { errorCode, ioFault } from './io-fault.ts'

/** The path with every link resolved; null when it leads nowhere. Faults: sys/io. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw ioFault('Resolving', path, error)
  }
}
