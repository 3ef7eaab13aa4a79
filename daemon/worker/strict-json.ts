// JSON.parse is lenient where a hostile writer profits: the last of two equal keys wins silently, and
// depth is bounded only by the stack. This scan runs first and names such a hazard.

export type JsonHazard =
  | Readonly<{ kind: 'duplicate-key'; key: string }>
  | Readonly<{ kind: 'too-deep'; depth: number }>
  | Readonly<{ kind: 'reserved-key'; key: string }>

const RESERVED_KEYS: ReadonlySet<string> = new Set(['__proto__'])

/**
 * The first hazard in a JSON text, or null. The text need not be valid JSON; JSON.parse decides that.
 * @param maxDepth deepest nesting of objects and arrays that is accepted
 */
export function findJsonHazard(text: string, maxDepth: number): JsonHazard | null {
  const open: (Set<string> | null)[] = []
  let expectsKey = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '"') {
      const end = endOfString(text, at)
      const keys = open.at(-1)
      if (expectsKey && keys) {
        const key = decodeKey(text.slice(at, end + 1))
        if (RESERVED_KEYS.has(key)) return { kind: 'reserved-key', key }
        if (keys.has(key)) return { kind: 'duplicate-key', key }
        keys.add(key)
        expectsKey = false
      }
      at = end
    } else if (character === '{' || character === '[') {
      open.push(character === '{' ? new Set() : null)
      expectsKey = character === '{'
      if (open.length > maxDepth) return { kind: 'too-deep', depth: maxDepth }
    } else if (character === '}' || character === ']') {
      open.pop()
      expectsKey = false
    } else if (character === ',') {
      expectsKey = open.at(-1) instanceof Set
    }
  }
  return null
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '\\') at += 1
    else if (character === '"') return at
  }
  return text.length
}

function decodeKey(literal: string): string {
  try {
    const key: unknown = JSON.parse(literal)
    return typeof key === 'string' ? key : literal
  } catch {
    return literal // not JSON; JSON.parse of the whole says so with a better message
  }
}
