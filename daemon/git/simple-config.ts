// Reads a repository's configuration file without git, where it is as simple as git itself writes it.
// Anything else is left to git: an idle tick must not start a program per repository, and must never
// misjudge one either (design §3).

/** Values by full key (`remote.origin.url`), section and variable in lower case. */
export type SimpleConfig = ReadonlyMap<string, readonly string[]>

const EMPTY = /^[ \t]*(?:[#;].*)?$/
const SECTION = /^[ \t]*\[([A-Za-z0-9-]+)(?: "([^"\\]*)")?\][ \t]*$/
const VARIABLE = /^[ \t]*([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*([^"\\#;]*?))?[ \t]*$/

/** These change what the file means, or how the repository is to be read. */
const ONLY_FOR_GIT: ReadonlySet<string> = new Set(['include', 'includeif', 'extensions', 'url'])

/** The keys of a configuration file; null = only git can say (quotes, escapes, includes, extensions …). */
export function parseSimpleConfig(text: string): SimpleConfig | null {
  const found = new Map<string, string[]>()
  let section: string | null = null
  for (const line of text.split(/\r?\n/)) {
    if (EMPTY.test(line)) continue
    const [, name, subsection] = SECTION.exec(line) ?? []
    if (name !== undefined) {
      if (ONLY_FOR_GIT.has(name.toLowerCase())) return null
      section = [name.toLowerCase(), ...(subsection === undefined ? [] : [subsection])].join('.')
      continue
    }
    const [, variable, value] = VARIABLE.exec(line) ?? []
    if (variable === undefined || section === null) return null
    const key = `${section}.${variable.toLowerCase()}`
    found.set(key, [...(found.get(key) ?? []), value ?? 'true'])
  }
  return found
}
