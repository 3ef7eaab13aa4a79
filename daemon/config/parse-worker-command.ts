import { isAbsolute, join } from 'node:path'
import { type Parsed, type Problem, showFound } from './problem.ts'
import type { ConfigContext } from './resolve-locations.ts'
import type { ConfigFile } from './schema.ts'

/** A program and its arguments. */
export type Argv = readonly [string, ...string[]]

const KEY = 'worker_command'
const PLUGIN_ROOT = '${plugin_root}'

/**
 * `worker_command`, the worker's program and arguments: text is one program, never split; nothing is expanded but
 * `${plugin_root}` in arguments.
 */
export function parseWorkerCommand(
  command: ConfigFile['worker_command'],
  context: ConfigContext,
): Parsed<Argv> {
  if (command === undefined) return defaultCommand(context)
  const [program = '', ...rest] = typeof command === 'string' ? [command] : command
  const at = (index: number): string => (typeof command === 'string' ? KEY : `${KEY}[${index}]`)
  const problems = [
    ...checkProgram(at(0), program),
    ...rest.flatMap((argument, index) => checkArgument(at(index + 1), argument, context)),
  ]
  return { value: [program, ...rest.map((argument) => expand(argument, context))], problems }
}

function defaultCommand(context: ConfigContext): Parsed<Argv> {
  if (context.hermesHome !== null) {
    return { value: [join(context.hermesHome, 'caduceus', 'worker-bridge.py')], problems: [] }
  }
  const problem = {
    path: KEY,
    found: 'nothing',
    wanted: 'the program that does the work (there is a default only under Hermes)',
    fix: 'Set worker_command to the absolute path of your bridge.',
  }
  return { value: [''], problems: [problem] }
}

function checkProgram(path: string, program: string): readonly Problem[] {
  const problem = problemAt(path, program)
  if (program.includes('$')) {
    return [problem('a program without $; it is not expanded here', 'Write the whole path.')]
  }
  if (program.trim() === '') return [problem('a program', 'Name the program that does the work.')]
  if (!isAbsolute(program) && program.includes('/') && !program.includes('~')) {
    // Relative to what? The worker starts in the tree of its run, where anything may lie.
    return [problem('an absolute path, or a name to be found in PATH', 'Write the whole path.')]
  }
  return checkCharacters(path, program)
}

function checkArgument(path: string, argument: string, context: ConfigContext): readonly Problem[] {
  const problem = problemAt(path, argument)
  if (argument.includes(PLUGIN_ROOT) && context.hermesHome === null) {
    return [problem(`no ${PLUGIN_ROOT}; there is none without Hermes`, 'Write the whole path.')]
  }
  const rest = argument.replaceAll(PLUGIN_ROOT, '')
  if (rest.includes('$')) {
    return [problem(`no $ other than in ${PLUGIN_ROOT}; nothing is expanded`, 'Remove the $.')]
  }
  return checkCharacters(path, rest)
}

function checkCharacters(path: string, text: string): readonly Problem[] {
  const problem = problemAt(path, text)
  if (text.includes('~')) return [problem('no ~; it is not expanded here', 'Write the whole path.')]
  if (text.includes('\0')) return [problem('text without NUL characters', 'Remove them.')]
  return []
}

function problemAt(path: string, text: string): (wanted: string, fix: string) => Problem {
  return (wanted, fix) => ({ path, found: showFound(KEY, text), wanted, fix })
}

function expand(argument: string, context: ConfigContext): string {
  if (context.hermesHome === null) return argument
  return argument.replaceAll(PLUGIN_ROOT, () =>
    join(context.hermesHome ?? '', 'plugins', 'caduceus'),
  )
}
