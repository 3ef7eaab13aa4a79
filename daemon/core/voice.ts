// The public-voice rule (design §9, R§8.11): nothing leaves that names a forbidden term or is too long.
// It refuses and never rewrites, so that a human sees what the worker wanted to say.

/** One outgoing text and how long it may be. */
export type OutgoingText = Readonly<{
  /** As shown in a fault: "pull request title", "comment" … */
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
 * The first breach of the rule over all texts; a forbidden word outranks a length.
 * @param forbidden terms compared as lower-case substrings; blank terms are passed over
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

/** Characters as a person counts them: 256 emoji are 256. */
export function characters(text: string): number {
  return [...text].length
}

/** At most `max` characters, the last of them an ellipsis when something was left out. */
export function shortenCharacters(text: string, max: number): string {
  const all = [...text]
  return all.length <= max ? text : `${all.slice(0, max - 1).join('')}…`
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
