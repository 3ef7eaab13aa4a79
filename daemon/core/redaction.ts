import { encodedForms } from './secret-forms.ts'

// What must never reach a log, an error or GitHub: known secret values and everything shaped like one.
// Patterns are written so that this file itself does not contain a token shape, and so that none of
// them takes more than linear time: a worker decides what is in the texts they run over. A mask counts
// as a whole value, so that a second pass changes nothing.
const MASK = '<redacted>'

/** NAME=value, NAME: value, "NAME": "value", also inside a JSON string (\"NAME\": …), for names of secrets. */
const ASSIGNMENT =
  /((?<![A-Za-z0-9_])[A-Za-z0-9_]*(?:TOKEN|_PAT|API_KEY|SECRET|PASSWORD|github_token)\\*["']?[ \t]*[=:][ \t]*)(?:<redacted>|\\*"[^"\n]*"?|\\*'[^'\n]*'?|[^\s"',;]+)/g

/** Not preceded by a part of a longer word; an escape before it (%3A, \n) is no part of the word. */
const START = String.raw`(?:(?<![A-Za-z0-9_])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[bfnrt]))`

/** Raw token shapes of GitHub and of the providers a worker uses. */
const TOKEN_SHAPES = [
  /gh[pousr]_(?:[0-9]+_)?[A-Za-z0-9]{20,}[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{10,})*/g,
  /github_pat_[A-Za-z0-9_]{20,}/g,
  new RegExp(`${START}(?:sk-|glpat-)[A-Za-z0-9_-]{20,}`, 'g'),
  new RegExp(`${START}AKIA[A-Z0-9]{16}(?![A-Za-z0-9_])`, 'g'),
  new RegExp(`${START}xox[abprs]-[A-Za-z0-9-]{10,}`, 'g'),
]

const AUTHORIZATION =
  /(\bauthorization\\*["']?[ \t]*[:=][ \t]*\\*["']?)(?:((?:digest|aws4-[a-z0-9-]+)[ \t]+)[^\n]+|((?:bearer|basic|token|negotiate|ntlm)[ \t]+)?(?:<redacted>|(?:[^\s"',;\\]|\\[^\s"'])+))/gi

/** Prose goes on with a word after "basic"; a credential has capitals or digits in it. */
const CREDENTIAL =
  /(\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]+)(?=[a-z+/_.~-]*[A-Z0-9])[A-Za-z0-9+/_.~-]{16,}=*/g

/** Up to the last @ before the path, as URL parsers take it; slashes may be escaped as in JSON. */
const URL_USERINFO = /(:\\?\/\\?\/)[^\s/?#'"]*@/g

/** Each pass that changes something leaves less to mask; two suffice but for texts made to trick it. */
const MAX_PASSES = 5

/**
 * Replaces secrets in a text by `<redacted>`: assignments to secret names, raw token shapes,
 * Authorization headers and the user part of URLs (R§10.3 with the shapes W45 misses).
 * @param text any text; returned unchanged when nothing in it looks like a secret
 * @param known secret values to mask wherever they occur, also in their encoded forms
 */
export function redact(text: string, known: readonly string[] = []): string {
  let shown = text
  // Longest first, so that a secret that begins another one does not leave the rest of it.
  const forms = known.flatMap(encodedForms).sort((a, b) => b.length - a.length)
  for (const form of new Set(forms)) shown = shown.replaceAll(form, MASK)
  // A mask may join what stood apart; the next pass sees that.
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const before = shown
    shown = maskShapes(before)
    if (shown === before) break
  }
  return shown
}

function maskShapes(text: string): string {
  let shown = text.replaceAll(URL_USERINFO, `$1${MASK}@`)
  shown = shown.replaceAll(
    AUTHORIZATION,
    (_, lead: string, listScheme: string | undefined, scheme: string | undefined) =>
      `${lead}${listScheme ?? scheme ?? ''}${MASK}`,
  )
  shown = shown.replaceAll(CREDENTIAL, `$1${MASK}`)
  shown = shown.replaceAll(ASSIGNMENT, `$1${MASK}`)
  for (const shape of TOKEN_SHAPES) shown = shown.replaceAll(shape, MASK)
  return shown
}

/** Whether a value has the shape of a GitHub token; such a value never reaches a worker (design §7). */
export function looksLikeGithubToken(value: string): boolean {
  return /gh[pousr]_(?:[0-9]+_)?[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}/.test(value)
}
