/**
 * A text of at most `maxBytes` in UTF-8: cut between characters and ended by `...<truncated N bytes>`,
 * where N is what was left out. Unchanged when it fits.
 * @param maxBytes at least 64, so that there is room for the ending
 */
export function cutUtf8(text: string, maxBytes: number): string {
  return measuredCut(text, maxBytes).text
}

/** The same, with how many bytes of the text were left out. */
export function measuredCut(
  text: string,
  maxBytes: number,
): Readonly<{ text: string; droppedBytes: number }> {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return { text, droppedBytes: 0 }
  let end = maxBytes - marker(bytes.length).length
  while (isContinuation(bytes[end])) end -= 1
  const droppedBytes = bytes.length - end
  return { text: bytes.subarray(0, end).toString('utf8') + marker(droppedBytes), droppedBytes }
}

function marker(dropped: number): string {
  return `...<truncated ${dropped} bytes>`
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
