// What keys with paths stand for on this machine: folders, files, and the worker's program.

import { isAbsolute, join, resolve } from 'node:path'
import { type Parsed, type Problem, showFound } from './problem.ts'
import type { ConfigFile, ConfigKey } from './schema.ts'

/** What paths and defaults depend on. */
export type ConfigContext = Readonly<{
  /** Null when HOME is not set to an absolute path. */
  home: string | null
  /** Null when not under Hermes. */
  hermesHome: string | null
  /** The folder of the configuration file; relative paths count from it. */
  configDirectory: string
}>

/** The paths of a configuration, absolute. */
export type Locations = Readonly<{
  stateDir: string
  workdirBase: string
  logPath: string
  repoStorageRoot: string
}>

/** Defaults that depend on the machine or on other keys; docs/configuration.md prints the texts. */
export const DERIVED_DEFAULTS = {
  state_dir: '`$HERMES_HOME/caduceus-state`, else `~/.hermes/caduceus-state`',
  log_path: '`processor.log` in state_dir',
  repo_storage_root: '`repos` in state_dir',
  worker_command: '`$HERMES_HOME/caduceus/worker-bridge.py`; none without Hermes: it must be set',
  max_issues_per_tick: 'worker_parallelism × 4',
} as const satisfies Partial<Record<ConfigKey, string>>

/** All paths, with what is wrong about any of them. */
export function resolveLocations(file: ConfigFile, place: ConfigContext): Parsed<Locations> {
  const stateDir = resolvePath('state_dir', file.state_dir ?? defaultStateDir(place), place)
  const workdirBase = resolvePath('workdir_base', file.workdir_base, place)
  const inStateDir = (key: ConfigKey, text: string | undefined, name: string): Parsed<string> =>
    text === undefined
      ? { value: join(stateDir.value, name), problems: [] }
      : resolvePath(key, text, place)
  const logPath = inStateDir('log_path', file.log_path, 'processor.log')
  const storage = inStateDir('repo_storage_root', file.repo_storage_root, 'repos')
  return {
    value: {
      stateDir: stateDir.value,
      workdirBase: workdirBase.value,
      logPath: logPath.value,
      repoStorageRoot: storage.value,
    },
    problems: [stateDir, workdirBase, logPath, storage].flatMap(({ problems }) => problems),
  }
}

/** A leading `~` or `~/` is the home folder; elsewhere a tilde is a character like any other (R§2.5). */
function resolvePath(key: ConfigKey, text: string, place: ConfigContext): Parsed<string> {
  const problem = (wanted: string, fix: string): Parsed<string> => {
    const problems: readonly Problem[] = [{ path: key, found: showFound(key, text), wanted, fix }]
    return { value: text, problems }
  }
  if (text.includes('\0')) {
    return problem('a path', 'Remove the NUL character.')
  }
  if (!text.startsWith('~')) return { value: resolve(place.configDirectory, text), problems: [] }
  if (text !== '~' && !text.startsWith('~/')) {
    return problem('a path; only ~ and ~/ stand for a home folder', 'Write the whole path.')
  }
  if (place.home === null) {
    return problem(
      'an absolute path, because HOME is not set',
      'Set HOME, or write the whole path.',
    )
  }
  return { value: join(place.home, text.slice(1)), problems: [] }
}

function defaultStateDir(place: ConfigContext): string {
  return place.hermesHome === null
    ? join('~', '.hermes', 'caduceus-state')
    : join(place.hermesHome, 'caduceus-state')
}

/** A program and its arguments. */
export type Argv = readonly [string, ...string[]]

const COMMAND_KEY = 'worker_command'
const PLUGIN_ROOT = '${plugin_root}'

/**
 * The worker's program and arguments (R§2.5, R§2.9): text is one program, never split; nothing is
 * expanded but `${plugin_root}` in arguments.
 */
export function parseWorkerCommand(
  command: ConfigFile['worker_command'],
  place: ConfigContext,
): Parsed<Argv> {
  if (command === undefined) return defaultCommand(place)
  const [program = '', ...rest] = typeof command === 'string' ? [command] : command
  const at = (index: number): string =>
    typeof command === 'string' ? COMMAND_KEY : `${COMMAND_KEY}[${index}]`
  const problems = [
    ...checkProgram(at(0), program),
    ...rest.flatMap((argument, index) => checkArgument(at(index + 1), argument, place)),
  ]
  return { value: [program, ...rest.map((argument) => expand(argument, place))], problems }
}

function defaultCommand(place: ConfigContext): Parsed<Argv> {
  if (place.hermesHome !== null) {
    return { value: [join(place.hermesHome, 'caduceus', 'worker-bridge.py')], problems: [] }
  }
  const problem = {
    path: COMMAND_KEY,
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

function checkArgument(path: string, argument: string, place: ConfigContext): readonly Problem[] {
  const problem = problemAt(path, argument)
  if (argument.includes(PLUGIN_ROOT) && place.hermesHome === null) {
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
  return (wanted, fix) => ({ path, found: showFound(COMMAND_KEY, text), wanted, fix })
}

function expand(argument: string, place: ConfigContext): string {
  if (place.hermesHome === null) return argument
  return argument.replaceAll(PLUGIN_ROOT, () => join(place.hermesHome ?? '', 'plugins', 'caduceus'))
}
