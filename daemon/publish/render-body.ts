import { fenceMarkdown } from '../core/fence-markdown.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, Publication } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import { retainsFences } from '../core/markdown-pieces.ts'
import { neutralizeMarkdown, neutralizePlain } from '../core/neutralize.ts'
import type { TreeChange } from '../core/ports.ts'
import { characters } from '../core/voice.ts'

/**
 * Parts of a body, top to bottom. Only `summary` and `artifacts` come from the worker; what must take
 * effect stands in `lead`, above them, where an unclosed fence or comment of theirs cannot reach it.
 */
export type BodyParts = Readonly<{
  lead: string
  summary: string
  /** Lines of ours below the summary. */
  lines: readonly string[]
  artifacts: Readonly<Record<string, unknown>>
  marker: string
  maxCharacters: number
}>

const CUT_NOTE = '\n\n*(The text was longer and has been cut.)*'

/**
 * A pull request body or comment within its limit. What is too long is cut from the summary,
 * between characters; our own lines and the marker always stay (R§8.4). Same parts, same bytes.
 */
export function renderBody(parts: BodyParts): string {
  const summary = parts.summary.trim()
  const artifacts = renderArtifacts(parts.artifacts, retainsFences(summary))
  const tail = [...parts.lines, artifacts, parts.marker].filter((part) => part !== '')
  const assemble = (text: string): string =>
    [parts.lead, text, ...tail].filter((part) => part !== '').join('\n\n')

  let body = assemble(neutralizeMarkdown(summary))
  let over = characters(body) - parts.maxCharacters
  if (over <= 0) return body
  const all = [...summary]
  over += CUT_NOTE.length
  for (let kept = all.length; over > 0 && kept > 0; ) {
    kept = Math.max(kept - over, 0)
    // Made inert after the cut: code whose end was cut off is code no longer.
    body = assemble(neutralizeMarkdown(all.slice(0, kept).join('')) + CUT_NOTE)
    over = characters(body) - parts.maxCharacters
  }
  return body
}

/**
 * Artifacts as pretty JSON with sorted keys, in a fence their text cannot close, size-limited; empty when
 * there are none.
 * @param fenceHolds false when the summary above may make prose of what is inside
 */
function renderArtifacts(
  artifacts: Readonly<Record<string, unknown>>,
  fenceHolds: boolean,
): string {
  const count = Object.keys(artifacts).length
  if (count === 0) return ''
  const json = JSON.stringify(sortKeys(artifacts), null, 2)
  const bytes = Buffer.byteLength(json)
  const shown =
    bytes <= LIMITS.artifactsRenderedBytes
      ? json
      : `${Buffer.from(json)
          .subarray(0, LIMITS.artifactsRenderedBytes)
          .toString('utf8')
          .replace(/\uFFFD+$/u, '')}\n…`
  const note = shown === json ? '' : ` – ${bytes} bytes, shown in part`
  const text = fenceHolds ? shown : neutralizePlain(shown)
  return `Artifacts (${count}${note}):\n\n${fenceMarkdown(text, 'json')}`
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
      .map(([key, inner]) => [key, sortKeys(inner)]),
  )
}

/** What a dry run shows besides the texts. */
export type DryRunFacts = Readonly<{
  changes: readonly TreeChange[]
  difference: string
  transcriptPath: string
  resultPath: string
  treePath: string
  /** What would have kept it from being published. */
  warnings: readonly string[]
  writtenAt: string
}>

/** The report of a dry run (R§8.9): everything that would be published, and nothing was. */
export function renderDryRun(
  journal: Journal,
  publication: Publication | null,
  facts: DryRunFacts,
): string {
  const rows = [
    ['Run', journal.runId],
    ['Issue', formatIssue(journal.key)],
    ['Kind', journal.ticket],
    ['Proposed branch', journal.branch],
    ['Base', journal.base === null ? '–' : `${journal.base.branch} at ${journal.base.oid}`],
    ['Transcript', facts.transcriptPath],
    ['Worker result', facts.resultPath],
    ['Tree', facts.treePath],
    ['Written', facts.writtenAt],
  ]
  const sections = [
    '# Dry run',
    'Nothing was committed, pushed or written to GitHub.',
    ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n'),
    ...warningSection(facts.warnings),
    ...publicationSections(journal, publication),
    ...changeSections(facts),
  ]
  return `${sections.join('\n\n')}\n`
}

function warningSection(warnings: readonly string[]): readonly string[] {
  if (warnings.length === 0) return []
  return ['## Warnings', warnings.map((warning) => `- ${warning}`).join('\n')]
}

function publicationSections(journal: Journal, publication: Publication | null): readonly string[] {
  if (publication === null) return []
  const comment = ['## Proposed comment', fenceMarkdown(publication.comment, 'markdown')]
  if (journal.ticket === 'investigation') return comment
  return [
    '## Proposed commit message',
    fenceMarkdown(publication.commitMessage, 'text'),
    '## Proposed pull request title',
    fenceMarkdown(publication.pullTitle, 'text'),
    '## Proposed pull request body',
    fenceMarkdown(publication.pullBody, 'markdown'),
    ...comment,
  ]
}

function changeSections({ changes, difference }: DryRunFacts): readonly string[] {
  const files = changes.map(({ status, path }) => `${status}  ${path}`).join('\n')
  const listed = changes.length === 0 ? 'None.' : fenceMarkdown(files, 'text')
  const shown = difference === '' ? [] : ['## Difference', fenceMarkdown(difference, 'diff')]
  return [`## Changed files (${changes.length})`, listed, ...shown]
}
