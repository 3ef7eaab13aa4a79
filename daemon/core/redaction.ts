import { encodedForms } from './secret-forms.ts'

// Known secret values, and texts shaped like secrets, must never reach a log, an error or GitHub. The patterns take
// linear time, because a worker decides what is in the texts; and this file contains no text of such a shape
// itself. A mask counts as a whole value, so that a second pass changes nothing.
const MASK = '<redacted>'

/** `NAME=value`, `NAME: value` or `"NAME": "value"` for names of secrets, also escaped inside a JSON string. */
const ASSIGNMENT =
  /((?<![A-Za-z0-9_])[A-Za-z0-9_]*(?:TOKEN|_PAT|API_KEY|SECRET|PASSWORD|github_token)\\*["']?[ \t]*[=:][ \t]*)(?:<redacted>|\\*"[^"\n]*"?|\\*'[^'\n]*'?|[^\s"',;]+)/g

/** The start of a word. An escape before it, such as `%3A` or `\n`, is not part of the word. */
const START = String.raw`(?:(?<![A-Za-z0-9_])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[bfnrt]))`

/** Token shapes of GitHub and of the providers that a worker uses. */
const TOKEN_SHAPES = [
  /gh[pousr]_(?:[0-9]+_)?[A-Za-z0-9]{20,}[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{10,})*/g,
  /github_pat_[A-Za-z0-9_]{20,}/g,
  new RegExp(`${START}(?:sk-|glpat-)[A-Za-z0-9_-]{20,}`, 'g'),
  new RegExp(`${START}AKIA[A-Z0-9]{16}(?![A-Za-z0-9_])`, 'g'),
  new RegExp(`${START}xox[abprs]-[A-Za-z0-9-]{10,}`, 'g'),
]

const AUTHORIZATION =
  /(\bauthorization\\*["']?[ \t]*[:=][ \t]*\\*["']?)(?:((?:digest|aws4-[a-z0-9-]+)[ \t]+)[^\n]+|((?:bearer|basic|token|negotiate|ntlm)[ \t]+)?(?:<redacted>|(?:[^\s"',;\\]|\\[^\s"'])+))/gi

/** A credential has capitals or digits in it, unlike the word that follows "basic" in prose. */
const CREDENTIAL =
  /(\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]+)(?=[a-z+/_.~-]*[A-Z0-9])[A-Za-z0-9+/_.~-]{16,}=*/g

/** Up to the last @ before the path, as URL parsers take it; slashes may be escaped as in JSON. */
const URL_USERINFO = /(:\\?\/\\?\/)[^\s/?#'"]*@/g

/** Two passes suffice, except for texts that are made to defeat the masking. */
const MAX_PASSES = 5

/**
 * Replaces secrets in a text by `<redacted>`: assignments to secret names, token shapes, Authorization headers
 * and the user part of URLs.
 * @param text any text; returned unchanged when nothing in it looks like a secret
 * @param known secret values to mask wherever they occur, in their encoded forms too
 */
export function redact(text: string, known: readonly string[] = []): string {
  let shown = text
  // Longest first: a secret that is the beginning of another one must not leave the rest of it unmasked.
  const forms = known.flatMap(encodedForms).sort((a, b) => b.length - a.length)
  for (const form of new Set(forms)) shown = shown.replaceAll(form, MASK)
  // A mask may join texts that were separate; the next pass masks what that made.
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

/** Whether a value has the shape of a GitHub token; such a value never reaches a worker (I2). */
export function looksLikeGithubToken(value: string): boolean {
  return /gh[pousr]_(?:[0-9]+_)?[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}/.test(value)
}
