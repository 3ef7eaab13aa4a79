import { describeThrown, type Fault, fault } from '../core/fault.ts'

/** The system's code of a thrown error ('ENOENT'), or null when it has none. */
export function errorCode(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/** What the system said, on one line; Node appends the call and the path, which the fault has in its details. */
export function errorReason(error: unknown): string {
  const text = describeThrown(error)
  return errorCode(error) === null ? text : (text.split(', ')[0] ?? text)
}

/**
 * `sys/io` for a failed operation on a path.
 * @param operation what was tried, as a noun: 'Reading'
 * @param error what Node threw, or a reason in words
 */
export function ioFault(operation: string, path: string, error: unknown): Fault {
  if (typeof error === 'string') return fault('sys/io', { operation, path, reason: error })
  const details = { operation, path, reason: errorReason(error), code: errorCode(error) }
  return fault('sys/io', details, error)
}
