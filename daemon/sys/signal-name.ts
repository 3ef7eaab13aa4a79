import { constants } from 'node:os'

/** Real-time signals have no names; they are counted from the first one that the C library gives to programs. */
const FIRST_REAL_TIME = 34

/** The name of a signal by its number: 'SIGTERM', 'SIGRTMIN+3', or 'signal 33' where it has none. */
export function signalName(signal: number): string {
  const known = Object.entries(constants.signals).find(([, number]) => number === signal)
  if (known !== undefined) return known[0]
  const above = signal - FIRST_REAL_TIME
  return above < 0 ? `signal ${signal}` : `SIGRTMIN+${above}`
}
