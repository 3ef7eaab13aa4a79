// Text written by a worker must not notify people or close issues (design §9, case C10). GitHub acts on
// @mentions and on closing keywords; both stay readable but lose their effect. Code is left alone:
// GitHub does not act on it there.

/** A zero-width joiner between the sign and the name: GitHub no longer reads a mention or reference. */
const BREAK = '\u2060'

const MENTION = /(^|[^A-Za-z0-9_`/.@-])@(?=[A-Za-z0-9])/g

/** GitHub docs, "Linking a pull request to an issue using a keyword". */
const CLOSING =
  /\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(\s*:?\s+)((?:[A-Za-z0-9-]+\/[A-Za-z0-9._-]+)?#\d+|GH-\d+|https?:\/\/[^\s/]+\/[^\s/]+\/[^\s/]+\/(?:issues|pull)\/\d+)/gi

/** Markdown code: fenced blocks, and spans of any run length. */
const CODE = /(^|\n)([ \t]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:\n[ \t]*\3[`~]*[ \t]*(?=\n|$)|$)|(`+)(?!`)[\s\S]*?[^`]\4(?!`)/g

/** The text with mentions and closing words made inert outside code; otherwise unchanged. */
export function neutralize(text: string): string {
  let out = ''
  let from = 0
  for (const code of text.matchAll(CODE)) {
    out += neutralizeProse(text.slice(from, code.index)) + code[0]
    from = code.index + code[0].length
  }
  return out + neutralizeProse(text.slice(from))
}

function neutralizeProse(prose: string): string {
  return prose
    .replaceAll(MENTION, `$1@${BREAK}`)
    .replaceAll(CLOSING, (_, word: string, gap: string, target: string) => {
      const inert = target.includes('#')
        ? target.replace('#', `#${BREAK}`)
        : target.replace(/(issues\/|pull\/|GH-)/i, `$1${BREAK}`)
      return word + gap + inert
    })
}

/** The same for one line that Markdown does not format, such as a title or a commit message. */
export function neutralizePlain(text: string): string {
  return neutralizeProse(text)
}
