import { formatIssue } from '../core/issue-key.ts'
import type { Journal, Publication } from '../core/journal.ts'
import { fenceMarkdown } from '../core/markdown.ts'
import type { TreeChange } from '../core/ports.ts'

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
