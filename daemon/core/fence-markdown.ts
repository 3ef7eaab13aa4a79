/** A fenced code block that its content cannot close: the fence is longer than any run of backticks inside. */
export function fenceMarkdown(content: string, language: string): string {
  let longest = 0
  for (const [run] of content.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const mark = '`'.repeat(Math.max(3, longest + 1))
  return `${mark}${language}\n${content}\n${mark}`
}
