import { join, resolve } from 'node:path'
import { type Parsed, type Problem, showFound } from './problem.ts'
import type { ConfigFile, ConfigKey } from './schema.ts'

/** What the paths of a configuration, and defaults of other keys, depend on. */
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

/** All paths, with what is wrong about any of them. */
export function resolveLocations(file: ConfigFile, context: ConfigContext): Parsed<Locations> {
  const stateDir = resolvePath('state_dir', file.state_dir ?? defaultStateDir(context), context)
  const workdirBase = resolvePath('workdir_base', file.workdir_base, context)
  const inStateDir = (key: ConfigKey, text: string | undefined, name: string): Parsed<string> =>
    text === undefined
      ? { value: join(stateDir.value, name), problems: [] }
      : resolvePath(key, text, context)
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

/** A leading `~` or `~/` is the home folder; elsewhere a tilde is a character like any other. */
function resolvePath(key: ConfigKey, text: string, context: ConfigContext): Parsed<string> {
  const problem = (wanted: string, fix: string): Parsed<string> => {
    const problems: readonly Problem[] = [{ path: key, found: showFound(key, text), wanted, fix }]
    return { value: text, problems }
  }
  if (text.includes('\0')) {
    return problem('a path', 'Remove the NUL character.')
  }
  if (!text.startsWith('~')) return { value: resolve(context.configDirectory, text), problems: [] }
  if (text !== '~' && !text.startsWith('~/')) {
    return problem('a path; only ~ and ~/ stand for a home folder', 'Write the whole path.')
  }
  if (context.home === null) {
    return problem(
      'an absolute path, because HOME is not set',
      'Set HOME, or write the whole path.',
    )
  }
  return { value: join(context.home, text.slice(1)), problems: [] }
}

function defaultStateDir(context: ConfigContext): string {
  return context.hermesHome === null
    ? join('~', '.hermes', 'caduceus-state')
    : join(context.hermesHome, 'caduceus-state')
}
