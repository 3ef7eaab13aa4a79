// Colours on a terminal, plain text everywhere else; NO_COLOR is honoured (no-color.org).
import { environment } from '../sys/environment.ts'

const STYLES = {
  title: (text: string) => `\n${code(1, text)}`,
  step: (text: string) => code(36, text),
  quiet: (text: string) => code(90, text),
  good: (text: string) => code(32, text),
  bad: (text: string) => code(31, text),
} as const satisfies Record<string, (text: string) => string>

/** Text for people, styled by what it is. */
export const paint = STYLES

function code(style: number, text: string): string {
  const isPlain = !process.stdout.isTTY || 'NO_COLOR' in environment()
  return isPlain ? text : `\u001B[${style}m${text}\u001B[0m`
}
