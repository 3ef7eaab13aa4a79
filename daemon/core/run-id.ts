// A run id is a ULID: 48 bits of time and 80 random bits in Crockford base 32, so ids sort by time.

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const RUN_ID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/**
 * @param now milliseconds since the epoch
 * @param random ten random bytes
 */
export function makeRunId(now: number, random: Uint8Array): string {
  let time = ''
  for (let rest = now, i = 0; i < 10; i += 1, rest = Math.floor(rest / 32)) {
    time = ALPHABET.charAt(rest % 32) + time
  }
  let bits = 0n
  for (const byte of random.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte)
  let tail = ''
  for (let i = 0; i < 16; i += 1, bits >>= 5n) tail = ALPHABET.charAt(Number(bits & 31n)) + tail
  return time + tail
}

export function isRunId(text: string): boolean {
  return RUN_ID.test(text)
}

/** The branch of a run. Every run has its own, so no generation can run into an older one's. */
export function branchOf(issueNumber: number, runId: string): string {
  return `automation/issue-${issueNumber}-${runId.toLowerCase()}`
}
