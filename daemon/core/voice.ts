// The public-voice rule: no outgoing text contains a forbidden term or is too long. The rule refuses and never
// rewrites, so that a human sees what the worker wanted to say.

/** One outgoing text and how long it may be. */
export type OutgoingText = Readonly<{
  /** The name shown in a fault, such as "pull request title". */
  where: string
  text: string
  limit: number
  unit: 'bytes' | 'characters'
}>

export type VoiceCheck =
  | Readonly<{ kind: 'fine' }>
  | Readonly<{ kind: 'forbidden'; where: string; word: string }>
  | Readonly<{ kind: 'too-long'; where: string; found: number; limit: number; unit: string }>

/**
 * The first breach of the rule in any text; a forbidden term is reported before a length.
 * @param forbidden terms, found as substrings whatever their case; blank ones are ignored
 */
export function checkVoice(
  texts: readonly OutgoingText[],
  forbidden: readonly string[],
): VoiceCheck {
  const words = forbidden.map(fold).filter((word) => word.trim() !== '')
  for (const { where, text } of texts) {
    const folded = fold(text)
    const word = words.find((candidate) => folded.includes(candidate))
    if (word !== undefined) return { kind: 'forbidden', where, word }
  }
  for (const { where, text, limit, unit } of texts) {
    const found = unit === 'bytes' ? new TextEncoder().encode(text).length : characters(text)
    if (found > limit) return { kind: 'too-long', where, found, limit, unit }
  }
  return { kind: 'fine' }
}

/** The number of code points: an emoji outside the basic plane counts once. */
export function characters(text: string): number {
  return [...text].length
}

/** At most `max` characters, the last one an ellipsis when the text was cut. */
export function shortenCharacters(text: string, max: number): string {
  const all = [...text]
  return all.length <= max ? text : `${all.slice(0, max - 1).join('')}…`
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
