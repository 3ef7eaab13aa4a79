/** The forms of a secret in URLs, JSON and basic authentication; none for a value too short to be a secret. */
export function encodedForms(secret: string): readonly string[] {
  if (secret.length < 8) return []
  // Half of a surrogate pair has no URL form.
  const inUrl = /\p{Surrogate}/u.test(secret) ? secret : encodeURIComponent(secret)
  return [
    secret,
    inUrl,
    inUrl.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()),
    JSON.stringify(secret).slice(1, -1),
    ...base64Forms(secret),
  ]
}

/** Base64 of the secret at each of the three byte offsets it can have inside a longer encoded text. */
function base64Forms(secret: string): readonly string[] {
  return ['', 'x', 'xx'].flatMap((lead) => {
    const bytes = new TextEncoder().encode(lead + secret)
    const encoded = btoa(String.fromCharCode(...bytes)).replaceAll('=', '')
    // The characters at both ends also depend on what stands beside the secret.
    const from = Math.ceil((lead.length * 8) / 6)
    const stable = encoded.slice(from, encoded.length - 1)
    return stable.length < 8 ? [] : [stable, stable.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
