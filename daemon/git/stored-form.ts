import type { BytePath } from './byte-path.ts'

/**
 * Filters whose stored content differs from the working file in a way that matters: stored as it is,
 * a large file would be lost to everybody else (C25), a secret would be published in clear. Filters
 * never run in a worker's tree, so new content must have the stored form already.
 */
const STORED_FORMS = [
  { filter: /^lfs$/, start: Buffer.from('version https://git-lfs.github.com/spec/') },
  { filter: /^git-crypt(?:-|$)/, start: Buffer.from('\0GITCRYPT\0') },
  { filter: /^crypt$/, start: Buffer.from('U2FsdGVkX1') },
] as const satisfies readonly { filter: RegExp; start: Buffer }[]

/** Paths among `filters` whose content has to be looked at. */
export function pathsToCheck(filters: ReadonlyMap<BytePath, string>): readonly BytePath[] {
  return [...filters.keys()].filter((path) => formOf(filters.get(path)) !== undefined)
}

/** Whether content may be stored under a filter. An empty file is its own stored form. */
export function hasStoredForm(filter: string | undefined, content: Buffer): boolean {
  const form = formOf(filter)
  if (form === undefined || content.length === 0) return true
  return content.subarray(0, form.start.length).equals(form.start)
}

function formOf(filter: string | undefined): (typeof STORED_FORMS)[number] | undefined {
  return STORED_FORMS.find((form) => form.filter.test(filter ?? ''))
}
