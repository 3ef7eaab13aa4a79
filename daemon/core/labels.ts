// One comparison of labels everywhere (design §6): GitHub ignores case, and adds or drops emoji
// variation selectors (U+FE0E, U+FE0F) as it pleases.

const VARIATION_SELECTORS = /[\uFE0E\uFE0F]/gu

/** The form in which two labels are compared. */
export function normalizeLabel(label: string): string {
  // Composed last: both a removed selector and a small letter can open the way to a composed form.
  return label.replaceAll(VARIATION_SELECTORS, '').toLowerCase().normalize('NFC').trim()
}

export function isSameLabel(a: string, b: string): boolean {
  return normalizeLabel(a) === normalizeLabel(b)
}

/** The label as the issue spells it, or null. Its spelling is the one to use in requests. */
export function findLabel(labels: readonly string[], wanted: string): string | null {
  return (
    labels.find((label) => label === wanted) ??
    labels.find((label) => isSameLabel(label, wanted)) ??
    null
  )
}

/** A pictograph in whatever form a font has for it, without a selector that says which. */
const BARE_EMOJI = /\p{Extended_Pictographic}(?![\uFE0E\uFE0F])/gu

/**
 * The spellings to ask GitHub for, the given one first: its filter ignores case, but takes an emoji
 * with a selector for another one than without (case C12).
 */
export function spellingsOf(label: string): readonly string[] {
  const bare = label.replaceAll(VARIATION_SELECTORS, '')
  return [...new Set([label, bare, bare.replaceAll(BARE_EMOJI, '$&\uFE0F')])]
}

export type Ticket = 'code' | 'investigation'

export type TriggerLabels = Readonly<Record<Ticket, string>>

/** Which kind of ticket the labels of an issue ask for; both at once are ambiguous and not picked. */
export function ticketOf(
  labels: readonly string[],
  triggers: TriggerLabels,
): Ticket | 'ambiguous' | null {
  const code = findLabel(labels, triggers.code) !== null
  const investigation = findLabel(labels, triggers.investigation) !== null
  if (code && investigation) return 'ambiguous'
  if (code) return 'code'
  return investigation ? 'investigation' : null
}
