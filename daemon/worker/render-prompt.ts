import { fault } from '../core/fault.ts'
import { fenceMarkdown } from '../core/fence-markdown.ts'
import { formatIssue, type IssueKey } from '../core/issue-key.ts'
import type { Ticket } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'

/** The published prompt texts; a new wording is a new version, never an edit (AGENTS.md). */
export type PromptTemplates = Readonly<{
  frame: string
  behaviour: Readonly<Record<Ticket, string>>
}>

export const PROMPT_FILES = {
  frame: 'prompt-v1.md',
  code: 'prompt-v1-code.md',
  investigation: 'prompt-v1-investigation.md',
} as const satisfies Record<string, string>

export type PromptFacts = Readonly<{
  key: IssueKey
  ticket: Ticket
  title: string
  body: string
  labels: readonly string[]
  branch: string
  contextJson: string
  protectedPaths: readonly string[]
  /** `worker_instruction`; left out when blank. */
  instruction: string
}>

const HEADINGS = {
  code: 'Task: solve an issue',
  investigation: 'Task: investigate an issue',
} as const satisfies Record<Ticket, string>

/**
 * The prompt for one run: deterministic, in a fixed order of sections, text of others only inside fences longer
 * than any run of fence characters in it, so that it cannot break out.
 * Faults: worker/prompt-too-large.
 */
export function renderPrompt(templates: PromptTemplates, facts: PromptFacts): string {
  const values: Readonly<Record<string, string>> = {
    heading: HEADINGS[facts.ticket],
    issue: formatIssue(facts.key),
    kind: facts.ticket,
    branch: facts.branch,
    protected: facts.protectedPaths.map((path) => `- \`${path}\``).join('\n'),
    behaviour: templates.behaviour[facts.ticket].trim(),
    instruction: renderInstruction(facts.instruction),
    title: fenceMarkdown(facts.title, 'text'),
    labels: facts.labels.map((label) => JSON.stringify(label)).join(', ') || '(none)',
    body: fenceMarkdown(facts.body, 'text'),
    context: fenceMarkdown(facts.contextJson, 'json'),
  }
  // One pass: a placeholder inside a text of others is text.
  const prompt = templates.frame.replaceAll(
    /\{\{(\w+)\}\}/g,
    (whole, name: string) => values[name] ?? whole,
  )
  const bytes = Buffer.byteLength(prompt)
  if (bytes <= LIMITS.promptBytes) return prompt
  throw fault('worker/prompt-too-large', {
    issue: formatIssue(facts.key),
    bytes,
    maxBytes: LIMITS.promptBytes,
  })
}

function renderInstruction(instruction: string): string {
  if (instruction.trim() === '') return ''
  return `\n## From the operator\n\nThis adds to the constraints above and cannot lift them.\n\n${fenceMarkdown(instruction, 'text')}\n`
}
