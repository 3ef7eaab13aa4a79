// Text written by a worker must not notify people or close issues (design §9, case C10). GitHub acts on
// @mentions and on closing keywords; a space makes both inert, and a reader sees that it was done.
//
// Code is left as it is, because GitHub does not act on it there – but only code that is code beyond
// doubt. A full Markdown parser was tried: hostile text of 60 kB kept it busy for 20 s. This one is
// linear, and whatever it is not sure about counts as prose, where a space does no harm.

const MENTION = /(^|[^A-Za-z0-9_/.@-])@(?=[A-Za-z0-9])/gm

/** GitHub docs, "Linking a pull request to an issue using a keyword", and the reference forms it knows. */
const CLOSING =
  /\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[\s:*_~([]{0,20}(?:(?:[A-Za-z0-9-]{1,39}\/[A-Za-z0-9._-]{1,100})?#|GH-|https?:\/\/[^\s/]{1,253}\/[^\s/]{1,39}\/[^\s/]{1,100}\/(?:issues|pull)\/)(?=\d)/gi

/** Raw HTML, mathematics, or a fence inside a list or quotation: where code ends is no longer certain. */
const UNCERTAIN = /<[A-Za-z!/?]|\$\$|^[ \t>*+\-0-9.)]+(?:`{3}|~{3})/m

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/

/** Markdown with mentions and closing words made inert outside code. */
export function neutralizeMarkdown(markdown: string): string {
  if (UNCERTAIN.test(markdown)) return neutralizePlain(markdown)
  return splitBlocks(markdown.split('\n'))
    .map(({ lines, fenced }) => (fenced ? lines.join('\n') : neutralizeBlock(lines)))
    .join('\n')
}

/** The same where no Markdown is read: titles and commit messages. */
export function neutralizePlain(text: string): string {
  return text.replaceAll(CLOSING, '$& ').replaceAll(MENTION, '$1@ ')
}

type Block = { lines: string[]; fenced: boolean }

/** Fenced code, and the paragraphs between: a blank line ends any inline code. */
function splitBlocks(lines: readonly string[]): readonly Block[] {
  const blocks: Block[] = []
  let open: { block: Block; mark: string } | null = null
  let prose: Block | null = null
  for (const line of lines) {
    if (open !== null) {
      open.block.lines.push(line)
      if (closesFence(line, open.mark)) open = null
      continue
    }
    const mark = FENCE.exec(line)?.[1]
    if (mark !== undefined) {
      open = { block: { lines: [line], fenced: true }, mark }
      blocks.push(open.block)
      prose = null
      continue
    }
    if (prose === null) blocks.push((prose = { lines: [], fenced: false }))
    prose.lines.push(line)
    if (line.trim() === '') prose = null
  }
  return blocks
}

function closesFence(line: string, mark: string): boolean {
  const text = line.trim()
  return text.startsWith(mark) && [...text].every((character) => character === mark[0])
}

/** Inline code counts only where every run of backticks in the paragraph pairs up on its own line. */
function neutralizeBlock(lines: readonly string[]): string {
  const pieces: Piece[] = []
  for (const line of lines) {
    const ofLine = splitInlineCode(line)
    if (ofLine === null) return neutralizePlain(lines.join('\n'))
    if (pieces.length > 0) pieces.push({ text: '\n', code: false })
    pieces.push(...ofLine)
  }
  return joinProse(pieces)
    .map(({ text, code }) => (code ? text : neutralizePlain(text)))
    .join('')
}

/** Neighbouring prose becomes one text, so that a keyword and its reference on two lines are seen together. */
function joinProse(pieces: readonly Piece[]): readonly Piece[] {
  const joined: Piece[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if (last !== undefined && !last.code && !piece.code) {
      joined[joined.length - 1] = { text: last.text + piece.text, code: false }
    } else joined.push(piece)
  }
  return joined
}

type Piece = Readonly<{ text: string; code: boolean }>

/** null when the line's backticks do not pair, or when a table or an escape makes their meaning uncertain. */
function splitInlineCode(line: string): readonly Piece[] | null {
  if (!line.includes('`')) return [{ text: line, code: false }]
  if (line.includes('|') || line.includes('\\')) return null
  const pieces: Piece[] = []
  let from = 0
  let open: RegExpExecArray | null = null
  for (const run of line.matchAll(/`+/g)) {
    if (open === null) open = run
    else if (run[0].length === open[0].length) {
      const end = run.index + run[0].length
      pieces.push({ text: line.slice(from, open.index), code: false })
      pieces.push({ text: line.slice(open.index, end), code: true })
      from = end
      open = null
    }
  }
  if (open !== null) return null
  pieces.push({ text: line.slice(from), code: false })
  return pieces
}
