// Which parts of a Markdown text are code beyond doubt. Everything else counts as prose. This takes linear time: a
// full Markdown parser was tried, and 60 kB of hostile text kept it busy for 20 seconds.

/** A part of a Markdown text: certainly code, or prose. */
export type Piece = Readonly<{ text: string; code: boolean }>

/** The text in parts that make up the whole again. */
export function splitMarkdown(markdown: string): readonly Piece[] {
  if (!retainsFences(markdown)) return [{ text: markdown, code: false }]
  const blocks = splitBlocks(markdown.split('\n')).map(piecesOf)
  const pieces = blocks.flatMap((block, at) => (at === 0 ? block : [LINE_END, ...block]))
  return joinProse(pieces)
}

/** Makes the end of code uncertain: raw HTML, mathematics, a fence in a list or quotation, a lone carriage return. */
const UNCERTAIN = /<[A-Za-z!/?]|\$\$|\r(?!\n)|^[ \t>*+\-0-9.)\uFEFF]+(?:`{3}|~{3})/m

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/

/** Whether a fence after this Markdown certainly starts code; raw HTML, for example, could contain it. */
export function retainsFences(markdown: string): boolean {
  return !UNCERTAIN.test(markdown)
}

type Block = { lines: string[]; fenced: boolean }

/** Fenced code, and the paragraphs in between: a blank line ends all inline code. */
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
    if (BLANK.test(line)) prose = null
  }
  return blocks
}

/** A line with other white space than spaces and tabs is not blank to Markdown. */
const BLANK = /^[ \t\r]*$/

function closesFence(line: string, mark: string): boolean {
  const run = /^(`+|~+)[ \t\r]*$/.exec(line)?.[1] ?? ''
  return run.startsWith(mark)
}

const LINE_END: Piece = { text: '\n', code: false }

/** Inline code counts only in a paragraph in which every run of backticks has its pair on the same line. */
function piecesOf({ lines, fenced }: Block): readonly Piece[] {
  const whole: Piece = { text: lines.join('\n'), code: fenced }
  if (fenced) return [whole]
  const pieces: Piece[] = []
  for (const line of lines) {
    const ofLine = splitInlineCode(line)
    if (ofLine === null) return [whole]
    if (pieces.length > 0) pieces.push(LINE_END)
    for (const piece of ofLine) pieces.push(piece)
  }
  return pieces
}

/** Joins neighbouring prose, so that a keyword and its reference are found together across lines. */
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

/** Null when the line's backticks do not pair, or when something else on it makes their meaning uncertain. */
function splitInlineCode(line: string): readonly Piece[] | null {
  if (!line.includes('`')) return [{ text: line, code: false }]
  if (/[|\\]|\$.*\$/.test(line)) return null // a table, an escape, mathematics
  const pieces: Piece[] = []
  let from = 0
  let open: RegExpExecArray | null = null
  for (const run of line.matchAll(/`+/g)) {
    if (open === null) {
      if (endsInAddress(line.slice(from, run.index))) return null
      open = run
    } else if (run[0].length === open[0].length) {
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

/** A bare address reaches to the next white space, and includes a backtick. */
function endsInAddress(text: string): boolean {
  return /:\/\/|www\./i.test(text.split(/[\s<]/).at(-1) ?? '')
}
