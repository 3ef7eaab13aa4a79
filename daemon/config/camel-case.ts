/** `poll_interval_seconds` becomes `pollIntervalSeconds`. */
export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

/** The fields of a record, under names in camel case. */
export type CamelCased<Fields> = {
  readonly [Name in keyof Fields & string as CamelCase<Name>]: Fields[Name]
}

export function camelCased<Fields extends Readonly<Record<string, unknown>>>(
  fields: Fields,
): CamelCased<Fields> {
  const renamed = Object.entries(fields).map(([name, value]) => [camelCase(name), value])
  // The type says of each name what `camelCase` does to it; no check could say it again.
  return Object.fromEntries(renamed) as CamelCased<Fields>
}

function camelCase(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
}
