/**
 * A text of at most `maxBytes` in UTF-8: cut between characters and ended by `...<truncated N bytes>`,
 * where N is what was left out (R§5.9). Unchanged when it fits.
 */
export function cutUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  const room = maxBytes - marker(bytes.length).length
  let end = Math.max(room, 0)
  while (end > 0 && isContinuation(bytes[end])) end -= 1
  return bytes.subarray(0, end).toString('utf8') + marker(bytes.length - end)
}

function marker(dropped: number): string {
  return `...<truncated ${dropped} bytes>`
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
