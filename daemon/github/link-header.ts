// RFC 8288 as GitHub uses it: `<url>; rel="next", <url>; rel="last"`.

const LINK = /<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s",;]+))*)/g
const REL = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i

/** The target of `rel="next"`; no other relation counts (R§5.4). */
export function nextLink(header: string | null): string | null {
  for (const [, target, parameters] of (header ?? '').matchAll(LINK)) {
    const rel = REL.exec(parameters ?? '')
    const names = (rel?.[1] ?? rel?.[2] ?? '').toLowerCase().split(/\s+/)
    if (target !== undefined && names.includes('next')) return target
  }
  return null
}
