import { joinProse, LINE_END, piecesOf, retainsFences, splitBlocks } from './markdown-pieces.ts'

// Text written by a worker must not notify people or close issues (design §9, case C10). GitHub acts on
// @mentions and on closing keywords; a space makes both inert, and a reader sees that it was done.
//
// Code is left as it is, because GitHub does not act on it there – but only code that is code beyond
// doubt. A full Markdown parser was tried: hostile text of 60 kB kept it busy for 20 s. This one is
// linear, and whatever it is not sure about counts as prose, where a space does no harm.
// Emphasis, brackets and other markup before the sign are gone once the text is shown.
const MENTION = /(?<![A-Za-z0-9])@(?=[A-Za-z0-9])/g

/** GitHub docs, "Linking a pull request to an issue using a keyword", and the reference forms it knows. */
const KEYWORD = String.raw`(?<![A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?![A-Za-z0-9])`

/** White space and markup that is not seen; each kind begins with a character of its own, so it is linear. */
const BETWEEN = String.raw`(?:[\s:*_~([\\<]|<[^<>]{0,200}>|&[A-Za-z]{2,31};)*`

const REFERENCE = String.raw`(?:(?:[A-Za-z0-9_-]{1,39}\/[A-Za-z0-9._-]{1,100})?#|GH-|https?:\/\/[^\s/]{1,253}\/[^\s/]{1,39}\/[^\s/]{1,100}\/(?:issues|pull)\/)(?=\d)`
const CLOSING = new RegExp(KEYWORD + BETWEEN + REFERENCE, 'gi')
/** Markdown's other way to write the signs above, and any letter or digit. */
const CHARACTER_REFERENCE =
  /&(?:#(?=(?:\d{1,7}|x[\da-f]{1,6});)|(?=(?:commat|num|sol|period|lowbar|colon);))/gi

/** Markdown with mentions and closing words made inert outside code. */
export function neutralizeMarkdown(markdown: string): string {
  if (!retainsFences(markdown)) return neutralizeProse(markdown)
  const blocks = splitBlocks(markdown.split('\n')).map(piecesOf)
  const pieces = blocks.flatMap((block, at) => (at === 0 ? block : [LINE_END, ...block]))
  return joinProse(pieces)
    .map(({ text, code }) => (code ? text : neutralizeProse(text)))
    .join('')
}

/** The same where no Markdown is read: titles and commit messages. */
export function neutralizePlain(text: string): string {
  return text.replaceAll(CLOSING, '$& ').replaceAll(MENTION, '@ ')
}

function neutralizeProse(markdown: string): string {
  return neutralizePlain(markdown.replaceAll(CHARACTER_REFERENCE, '$& '))
}
