/** What a text amounts to as a GitHub token. */
export type TokenText =
  | Readonly<{ kind: 'token'; token: string }>
  | Readonly<{ kind: 'blank' | 'malformed' }>

/** Blanks around a token do not count (R§2.6); what could not stand in a request header is malformed. */
export function readToken(text: string): TokenText {
  const token = text.trim()
  if (token === '') return { kind: 'blank' }
  return /^[\x21-\x7e]+$/.test(token) ? { kind: 'token', token } : { kind: 'malformed' }
}
