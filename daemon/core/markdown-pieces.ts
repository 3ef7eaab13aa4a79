/**
 * Raw HTML, mathematics, a fence inside a list or quotation, or a line that ends as on old Macs: where code
 * ends is no longer certain.
 */
const UNCERTAIN = /<[A-Za-z!/?]|\$\$|\r(?!\n)|^[ \t>*+\-0-9.)\uFEFF]+(?:`{3}|~{3})/m

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/

/** Whether a fence that follows this Markdown certainly begins code; raw HTML, for one, could swallow it. */
export function retainsFences(markdown: string): boolean {
  return !UNCERTAIN.test(markdown)
}

type Block = { lines: string[]; fenced: boolean }

/** Fenced code, and the paragraphs between: a blank line ends any inline code. */
export function splitBlocks(lines: readonly string[]): readonly Block[] {
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

/** Only spaces and tabs make a blank line; a paragraph with any other white space goes on. */
const BLANK = /^[ \t\r]*$/

function closesFence(line: string, mark: string): boolean {
  const run = /^(`+|~+)[ \t\r]*$/.exec(line)?.[1] ?? ''
  return run.startsWith(mark)
}

export const LINE_END: Piece = { text: '\n', code: false }

/** Inline code counts only where every run of backticks in the paragraph pairs up on its own line. */
export function piecesOf({ lines, fenced }: Block): readonly Piece[] {
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

/** Neighbouring prose becomes one text, so that a keyword and its reference on two lines are seen together. */
export function joinProse(pieces: readonly Piece[]): readonly Piece[] {
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

/** null when the line's backticks do not pair, or when something else on it makes their meaning uncertain. */
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

/** A bare address goes on to the next white space and takes a backtick with it. */
function endsInAddress(text: string): boolean {
  return /:\/\/|www\./i.test(text.split(/[\s<]/).at(-1) ?? '')
}
