// The names git accepts (git-check-ref-format(1)), checked before they become part of an argument.

const FORBIDDEN = /[\0-\x20~^:?*[\\\x7f]|\.\.|@\{|\/\/|^@$/
const BAD_PART = /^\.|\.lock$|\.$/

/** Whether a text may follow `refs/heads/`. */
export function isBranchName(text: string): boolean {
  return (
    text !== '' &&
    !text.startsWith('-') &&
    !FORBIDDEN.test(text) &&
    text.split('/').every((part) => part !== '' && !BAD_PART.test(part))
  )
}

/** Whether a text is a full object id (SHA-1 or SHA-256). */
export function isObjectId(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text)
}
