// Reading fields of JSON that came from outside: null is "not there, or not what it should be".

type Json = Readonly<Record<string, unknown>>

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function recordOf(value: unknown, name: string): Json | null {
  const field = fieldOf(value, name)
  return isJson(field) ? field : null
}

export function textOf(value: unknown, name: string): string | null {
  const field = fieldOf(value, name)
  return typeof field === 'string' ? field : null
}

/** A positive whole number, as GitHub's ids and numbers are. */
export function idOf(value: unknown, name: string): number | null {
  const field = fieldOf(value, name)
  return typeof field === 'number' && Number.isSafeInteger(field) && field > 0 ? field : null
}

/** A moment in milliseconds since the epoch. */
export function timeOf(value: unknown, name: string): number | null {
  const text = textOf(value, name)
  const time = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? null : time
}

export function fieldOf(value: unknown, name: string): unknown {
  return isJson(value) && Object.hasOwn(value, name) ? value[name] : undefined
}
