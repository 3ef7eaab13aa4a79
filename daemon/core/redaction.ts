// What must never reach a log, an error or GitHub: known secret values and everything shaped like one.
// Patterns are written so that this file itself does not contain a token shape.

const MASK = '<redacted>'

/** Names whose value is a secret wherever they are assigned: NAME=value, NAME: value, "NAME": "value". */
const SECRET_NAME =
  /\b((?:[A-Za-z0-9_]*(?:GITHUB|GH)[A-Za-z0-9_]*(?:TOKEN|PAT)|[A-Z0-9_]*(?:API_KEY|SECRET|PASSWORD)|github_token)["']?\s*[=:]\s*)("[^"\n]*"|'[^'\n]*'|[^\s"',;]+)/g

/** Raw token shapes of GitHub and of the providers a worker uses. */
const TOKEN_SHAPES = [
  /\bgh[pousr]_[A-Za-z0-9]{20,255}/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,255}/g,
  /\bsk-[A-Za-z0-9_-]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{20,}/g,
  /\bAKIA[A-Z0-9]{16}\b/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
]

const AUTHORIZATION = /(\bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?)[^\s"',;]+/gi
const BEARER = /(\b(?:bearer|basic)\s+)[A-Za-z0-9+/_.~-]{16,}=*/gi
const URL_USERINFO = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:'"]*(?::[^\s/@'"]*)?@/gi

/**
 * Replaces secrets in a text by `<redacted>`: assignments to secret names, raw token shapes,
 * Authorization headers and the user part of URLs (R§10.3 with the shapes W45 misses).
 * @param text any text; returned unchanged when nothing in it looks like a secret
 * @param known secret values to mask wherever they occur, also in their encoded forms
 */
export function redact(text: string, known: readonly string[] = []): string {
  let shown = text
  for (const secret of known.flatMap(encodedForms)) shown = shown.replaceAll(secret, MASK)
  shown = shown.replaceAll(URL_USERINFO, `$1${MASK}@`)
  shown = shown.replaceAll(AUTHORIZATION, `$1${MASK}`)
  shown = shown.replaceAll(BEARER, `$1${MASK}`)
  shown = shown.replaceAll(SECRET_NAME, `$1${MASK}`)
  for (const shape of TOKEN_SHAPES) shown = shown.replaceAll(shape, MASK)
  return shown
}

/** The forms a secret takes on its way through URLs, JSON and basic authentication; short values are no secrets. */
function encodedForms(secret: string): readonly string[] {
  if (secret.length < 8) return []
  const forms = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    ...base64Forms(secret),
  ]
  return [...new Set(forms)].sort((a, b) => b.length - a.length)
}

/** Base64 of the secret at each of the three byte offsets it can have inside a longer encoded text. */
function base64Forms(secret: string): readonly string[] {
  return ['', 'x', 'xx'].flatMap((lead) => {
    const bytes = new TextEncoder().encode(lead + secret)
    const encoded = btoa(String.fromCharCode(...bytes)).replaceAll('=', '')
    const from = Math.ceil((lead.length * 8) / 6)
    const stable = encoded.slice(from, encoded.length - 1)
    return stable.length < 8 ? [] : [stable, stable.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/** Whether a value has the shape of a GitHub token; such a value never reaches a worker (design §7). */
export function looksLikeGithubToken(value: string): boolean {
  return /(?:^|[^A-Za-z0-9_])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/.test(value)
}
