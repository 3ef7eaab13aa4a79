import { splitMarkdown } from './markdown-pieces.ts'

// Text written by a worker must not notify people or close issues. GitHub acts on @mentions and on closing
// keywords; a space makes both inert, in a way that a reader can see. Code is not changed, because GitHub does not
// act on it there.

/** Emphasis, brackets and other markup may stand before the sign: GitHub has removed them when it acts. */
const MENTION = /(?<![A-Za-z0-9])@(?=[A-Za-z0-9])/g

/** The keywords and forms of reference of GitHub docs, "Linking a pull request to an issue using a keyword". */
const KEYWORD = String.raw`(?<![A-Za-z0-9])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?![A-Za-z0-9])`

/** White space and markup that is not shown. Each kind begins with another character, so matching is linear. */
const BETWEEN = String.raw`(?:[\s:*_~([\\<]|<[^<>]{0,200}>|&[A-Za-z]{2,31};)*`

const REFERENCE = String.raw`(?:(?:[A-Za-z0-9_-]{1,39}\/[A-Za-z0-9._-]{1,100})?#|GH-|https?:\/\/[^\s/]{1,253}\/[^\s/]{1,39}\/[^\s/]{1,100}\/(?:issues|pull)\/)(?=\d)`
const CLOSING = new RegExp(KEYWORD + BETWEEN + REFERENCE, 'gi')
/** Character references, with which Markdown can write the signs above, and any letter or digit. */
const CHARACTER_REFERENCE =
  /&(?:#(?=(?:\d{1,7}|x[\da-f]{1,6});)|(?=(?:commat|num|sol|period|lowbar|colon);))/gi

/** Markdown with mentions and closing keywords made inert outside code. */
export function neutralizeMarkdown(markdown: string): string {
  return splitMarkdown(markdown)
    .map(({ text, code }) => (code ? text : neutralizeProse(text)))
    .join('')
}

/** The same for text that is not Markdown: titles and commit messages. */
export function neutralizePlain(text: string): string {
  return text.replaceAll(CLOSING, '$& ').replaceAll(MENTION, '@ ')
}

function neutralizeProse(markdown: string): string {
  return neutralizePlain(markdown.replaceAll(CHARACTER_REFERENCE, '$& '))
}
