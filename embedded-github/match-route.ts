import { ROUTES, type Route } from './routes.ts'

/** A request's endpoint, and the decoded values of its template. */
export type Match = Readonly<{ route: Route; params: Readonly<Record<string, string>> }>

/** Parameters that may hold slashes, as branch names do; they come last in their template. */
const GREEDY = ['{branch}', '{ref}']

/**
 * The endpoint of a request, or null. HEAD is GET without a body. Fixed words win over parameters because
 * they come first in ROUTES.
 * @param path as it was sent: decoded only after it was split, so that `%2F` stays within a segment
 */
export function matchRoute(method: string, path: string): Match | null {
  const segments = path.split('/')
  const expected = method === 'HEAD' ? 'GET' : method
  for (const route of ROUTES) {
    const params = route.method === expected ? matchTemplate(route.template, segments) : null
    if (params !== null) return { route, params }
  }
  return null
}

function matchTemplate(
  template: string,
  segments: readonly string[],
): Readonly<Record<string, string>> | null {
  const names = template.split('/')
  const last = names.at(-1) ?? ''
  const isGreedy = GREEDY.includes(last) && segments.length > names.length
  const given = isGreedy
    ? [...segments.slice(0, names.length - 1), segments.slice(names.length - 1).join('/')]
    : segments
  if (given.length !== names.length) return null
  const params: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const value = decode(given[index] ?? '')
    if (value === null) return null
    if (!name.startsWith('{')) {
      if (name !== value) return null
    } else if (value === '') return null
    else params[name.slice(1, -1)] = value
  }
  return params
}

/** null for a malformed percent sequence. */
function decode(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
