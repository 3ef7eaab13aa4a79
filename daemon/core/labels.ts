// Labels are compared in one way everywhere: GitHub ignores case, and adds or drops emoji variation selectors
// (U+FE0E, U+FE0F).

const VARIATION_SELECTORS = /[\uFE0E\uFE0F]/gu

/** The form in which two labels are compared. */
export function normalizeLabel(label: string): string {
  // Composed last: both a removed selector and a small letter can open the way to a composed form.
  return label.replaceAll(VARIATION_SELECTORS, '').toLowerCase().normalize('NFC').trim()
}

export function isSameLabel(a: string, b: string): boolean {
  return normalizeLabel(a) === normalizeLabel(b)
}

/** The label in the issue's own spelling, which requests have to use; null = the issue does not have it. */
export function findLabel(labels: readonly string[], name: string): string | null {
  return (
    labels.find((label) => label === name) ??
    labels.find((label) => isSameLabel(label, name)) ??
    null
  )
}

/** A pictograph without a variation selector. */
const BARE_EMOJI = /\p{Extended_Pictographic}(?![\uFE0E\uFE0F])/gu

/**
 * The spellings to ask GitHub for, the given one first. Its filter ignores case, but an emoji with a variation
 * selector and the same emoji without one are different labels to it.
 */
export function spellingsOf(label: string): readonly string[] {
  const bare = label.replaceAll(VARIATION_SELECTORS, '')
  return [...new Set([label, bare, bare.replaceAll(BARE_EMOJI, '$&\uFE0F')])]
}

export type Ticket = 'code' | 'investigation'

export type TriggerLabels = Readonly<Record<Ticket, string>>

/** The kind of ticket that an issue's labels ask for; null = none of the trigger labels is set. */
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
