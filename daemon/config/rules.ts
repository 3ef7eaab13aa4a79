// What the schema cannot say: checks across keys, and of keys against the machine. Each is a pure
// function; all problems of all rules are reported together.

import { isDeniedName, mayExposeDenied } from '../core/denied-environment.ts'
import { isSameLabel } from '../core/labels.ts'
import type { FileStatus } from '../sys/files.ts'
import type { Config } from './make-config.ts'
import { NOT_SHOWN, type Problem, showFound } from './problem.ts'
import { readToken } from './resolve-token.ts'
import type { ConfigFile, ConfigKey } from './schema.ts'

/** What lies at a path: nothing (null), something, or something that cannot be inspected. */
export type RuleFacts = FileStatus | null | Readonly<{ kind: 'unreadable'; reason: string }>

export type RuleContext = Readonly<{
  file: ConfigFile
  stateDir: RuleFacts
  repoStorageRoot: RuleFacts
  /** The configuration file, links followed. */
  configFile: RuleFacts
}>

type Rule = (config: Config, context: RuleContext) => readonly Problem[]

/** Rules whose problems stop the load. */
export const RULES = {
  labelsDiffer,
  repositoriesAreWatchedOnce,
  allowlistHoldsNames,
  allowlistExposesNoCredential,
  tokenIsPrintable,
  protectedPathsAreRelative,
  stateDirIsFolder,
  stateBackendIsAvailable,
  repoStorageRootIsPrivate,
  containersHaveImage,
  containersGetNoCredential,
} as const satisfies Readonly<Record<string, Rule>>

/** Rules that only warn. */
export const ADVICE = {
  somethingIsWatched,
  someWordsAreForbidden,
  tokenFileIsPrivate,
} as const satisfies Readonly<Record<string, Rule>>

function labelsDiffer({ triggerLabels }: Config): readonly Problem[] {
  const { code, investigation } = triggerLabels
  if (!isSameLabel(code, investigation)) return []
  return [
    problem(
      'ticket_label_investigation',
      investigation,
      'a label other than ticket_label_code (case and emoji variation selectors do not count)',
      'Choose two labels.',
    ),
  ]
}

function repositoriesAreWatchedOnce(_: Config, { file }: RuleContext): readonly Problem[] {
  const texts = file.watched_repos
  return texts.flatMap((text, index) => {
    const first = texts.findIndex((other) => other.toLowerCase() === text.toLowerCase())
    if (first === index) return []
    const wanted = `each repository once (it is watched_repos[${first}] too; GitHub ignores case)`
    return [problem('watched_repos', text, wanted, 'Remove one of them.', index)]
  })
}

function allowlistHoldsNames({ workerEnvAllowlist }: Config): readonly Problem[] {
  return each('worker_env_allowlist', workerEnvAllowlist, (entry) =>
    /^[A-Za-z0-9_]*\*?$/.test(entry) && entry !== ''
      ? null
      : {
          wanted: 'a name of letters, digits and _, with one * at its end at most',
          fix: 'Write the name of a variable, or a prefix and *.',
        },
  )
}

function allowlistExposesNoCredential({ workerEnvAllowlist }: Config): readonly Problem[] {
  return each('worker_env_allowlist', workerEnvAllowlist, (entry) =>
    mayExposeDenied(entry)
      ? {
          wanted:
            'nothing that could hand a GitHub credential or a secret of the daemon to a worker',
          fix: 'Remove it, or name exactly what the worker needs.',
        }
      : null,
  )
}

function tokenIsPrintable({ githubToken }: Config): readonly Problem[] {
  if (readToken(githubToken ?? '').kind !== 'malformed') return []
  return [
    {
      path: 'github_token',
      found: NOT_SHOWN,
      wanted: 'printable characters without blanks',
      fix: 'Copy the token again.',
    },
  ]
}

function protectedPathsAreRelative({ protectedPaths }: Config): readonly Problem[] {
  return each('protected_paths', protectedPaths, (glob) =>
    /^(?:\/|~|\.\.?(?:\/|$))|\/\.\.(?:\/|$)|\\|\0/.test(glob)
      ? {
          wanted: 'a glob relative to the top of the repository, such as docs/**',
          fix: 'Write it without a leading slash or dots.',
        }
      : null,
  )
}

function stateDirIsFolder({ stateDir }: Config, context: RuleContext): readonly Problem[] {
  const seen = context.stateDir
  if (seen === null || seen.kind === 'directory') return []
  const wanted = 'a folder, or a path where nothing is yet'
  return [occupied('state_dir', stateDir, seen, wanted, 'Use another path.')]
}

function repoStorageRootIsPrivate(config: Config, context: RuleContext): readonly Problem[] {
  const path = config.repoStorageRoot
  const seen = context.repoStorageRoot
  if (seen === null) return []
  if (seen.kind !== 'directory') {
    const wanted = 'a folder, or a path where nothing is yet'
    return [occupied('repo_storage_root', path, seen, wanted, 'Use another path.')]
  }
  if (seen.mode === 0o700) return []
  const mode = seen.mode.toString(8).padStart(4, '0')
  return [
    {
      path: 'repo_storage_root',
      found: `${showFound('repo_storage_root', path)} with mode ${mode}`,
      wanted: 'mode 0700',
      fix: 'Make it private with chmod 0700.',
    },
  ]
}

function containersHaveImage({ executorMode }: Config, { file }: RuleContext): readonly Problem[] {
  if (executorMode !== 'oci' || file.sandbox?.image !== undefined) return []
  const wanted = 'name@sha256:<digest>, because executor_mode is oci'
  return [problem('sandbox', null, wanted, 'Set sandbox.image.', 'image')]
}

function containersGetNoCredential(_: Config, { file }: RuleContext): readonly Problem[] {
  return each('sandbox', file.sandbox?.pass_env ?? [], (name) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      return { wanted: 'the exact name of a variable', fix: 'Write names without * and =.' }
    }
    const isOurs = name.startsWith('CADUCEUS_') || name === 'HOME' || name === 'TMPDIR'
    if (!isOurs && !isDeniedName(name)) return null
    return {
      wanted: 'no credential, no CADUCEUS_ variable, not HOME or TMPDIR',
      fix: 'Remove it.',
    }
  }).map((found) => ({ ...found, path: found.path.replace('sandbox', 'sandbox.pass_env') }))
}

function somethingIsWatched({ watchedRepos, discover }: Config): readonly Problem[] {
  if (watchedRepos.length > 0 || discover) return []
  const wanted = 'at least one owner/name; nothing is watched now'
  return [problem('watched_repos', [], wanted, 'List repositories, or set discover: true.')]
}

function someWordsAreForbidden({ commentForbiddenStrings }: Config): readonly Problem[] {
  if (commentForbiddenStrings.length > 0) return []
  const wanted = 'the words that must not be published; none is looked for now'
  const fix = 'Remove the line to use the default list.'
  return [problem('comment_forbidden_strings', [], wanted, fix)]
}

function tokenFileIsPrivate(
  { githubToken }: Config,
  { configFile }: RuleContext,
): readonly Problem[] {
  const isOpen = configFile?.kind === 'file' && (configFile.mode & 0o077) !== 0
  if (!isOpen || readToken(githubToken ?? '').kind !== 'token') return []
  return [
    {
      path: 'github_token',
      found: 'a token in a file that others may read',
      wanted: 'a file with mode 0600',
      fix: 'Make it private with chmod 600, or keep the token out of the file.',
    },
  ]
}

function stateBackendIsAvailable({ stateBackend }: Config): readonly Problem[] {
  if (stateBackend === 'json') return []
  const wanted = 'json; the SQLite backend is not part of this version'
  return [problem('state_backend', stateBackend, wanted, 'Write state_backend: json.')]
}

function problem(
  key: ConfigKey,
  found: unknown,
  wanted: string,
  fix: string,
  part?: number | string,
): Problem {
  const suffix = typeof part === 'number' ? `[${part}]` : part === undefined ? '' : `.${part}`
  return { path: `${key}${suffix}`, found: showFound(key, found), wanted, fix }
}

function each(
  key: ConfigKey,
  entries: readonly string[],
  check: (entry: string) => Readonly<{ wanted: string; fix: string }> | null,
): readonly Problem[] {
  return entries.flatMap((entry, index) => {
    const wrong = check(entry)
    return wrong === null ? [] : [problem(key, entry, wrong.wanted, wrong.fix, index)]
  })
}

function occupied(
  key: ConfigKey,
  path: string,
  seen: NonNullable<RuleFacts>,
  wanted: string,
  fix: string,
): Problem {
  const what =
    seen.kind === 'unreadable' ? `cannot be looked at (${seen.reason})` : WORDS[seen.kind]
  return { path: key, found: `${showFound(key, path)}, which ${what}`, wanted, fix }
}

const WORDS = {
  file: 'is a file',
  directory: 'is a folder',
  symlink: 'is a symbolic link',
  other: 'is neither a file nor a folder',
} as const satisfies Record<FileStatus['kind'], string>
