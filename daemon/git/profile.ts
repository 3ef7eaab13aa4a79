// How git is called: what it may read besides the repository itself, and what it never does.
// Keys on the command line win over every file; in a private configuration file a planted fsmonitor
// still ran (P§5).

import { isDeniedName } from '../core/denied-environment.ts'

export type Environment = Readonly<Record<string, string>>

/** A configuration key and its value; keys may repeat. */
export type Setting = readonly [key: string, value: string]

/** Neutral in both profiles: nothing a repository configures is run, nothing is asked, nothing is tidied up. */
const NEUTRAL_KEYS = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'false',
  'core.splitIndex': 'false',
  'core.attributesFile': '/dev/null',
  'core.excludesFile': '/dev/null',
  'core.pager': 'cat',
  'core.askPass': '',
  'core.logAllRefUpdates': 'false',
  'commit.gpgSign': 'false',
  'push.gpgSign': 'false',
  'push.followTags': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'submodule.recurse': 'false',
  'fetch.recurseSubmodules': 'false',
  'advice.detachedHead': 'false',
  'core.quotePath': 'false',
} as const satisfies Record<string, string>

/** Only for the network profile; obeyed from git 2.46 on. */
const NETWORK_KEYS = {
  'credential.interactive': 'false',
} as const satisfies Record<string, string>

/** Only for the tree profile: bytes in are bytes out, no driver runs, no transport but a local one. */
const TREE_KEYS = {
  'core.autocrlf': 'false',
  'core.safecrlf': 'false',
  'core.sshCommand': 'false',
  'core.gitProxy': 'false',
  'credential.helper': '',
  'protocol.ext.allow': 'never',
  'protocol.http.allow': 'never',
  'protocol.https.allow': 'never',
  'protocol.ssh.allow': 'never',
  'protocol.git.allow': 'never',
  'diff.ignoreSubmodules': 'all',
  'filter.lfs.clean': '',
  'filter.lfs.smudge': '',
  'filter.lfs.process': '',
  'filter.lfs.required': 'false',
} as const satisfies Record<string, string>

/** Durable before git returns (2.36 on; the store's file system is synced besides). */
export const DURABLE_KEYS = {
  'core.fsync': 'all',
} as const satisfies Record<string, string>

/** What can be made again at any time need not wait for the disk. */
export const FLEETING_KEYS = {
  'core.fsync': 'none',
} as const satisfies Record<string, string>

export const PROFILES = {
  /** No system or global configuration, no home. For everything that touches a worker's tree. */
  tree: { keys: { ...NEUTRAL_KEYS, ...TREE_KEYS }, environment: treeEnvironment },
  /** The operator's environment; their settings are given one by one (remote-access.ts). */
  network: { keys: { ...NEUTRAL_KEYS, ...NETWORK_KEYS }, environment: networkEnvironment },
  /** For reading the operator's own configuration as they see it themselves. */
  operator: { keys: NEUTRAL_KEYS, environment: operatorEnvironment },
} as const satisfies Record<
  string,
  { keys: Record<string, string>; environment: (operator: Environment) => Environment }
>

export type ProfileName = keyof typeof PROFILES

/** `-c key=value` for each key. Never for secrets: arguments are readable by everybody. */
export function keyArguments(keys: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(keys).flatMap(([key, value]) => ['-c', `${key}=${value}`])
}

/** Settings as environment variables, which only our own user can read (git-config(1), GIT_CONFIG_COUNT). */
export function settingsEnvironment(settings: readonly Setting[]): Environment {
  if (settings.length === 0) return {}
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key
    variables[`GIT_CONFIG_VALUE_${index}`] = value
  }
  return variables
}

/** Variables of git's own that say how to reach a server, where git lies, or which files are the operator's. */
const PASSED_GIT_VARIABLES =
  /^GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|PROXY_\w+|HTTP_\w+|ALLOW_PROTOCOL|PROTOCOL_FROM_USER|EXEC_PATH)$/
const OPERATOR_CONFIGURATION = /^GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)$/

const NO_GLOBAL_CONFIGURATION = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
} as const satisfies Environment

const NO_PROMPTS = {
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  SSH_ASKPASS_REQUIRE: 'never',
  GCM_INTERACTIVE: 'never',
  GIT_EDITOR: 'false',
} as const satisfies Environment

/** An object is what its id says, whatever a repository puts in its place (git-replace(1)). */
const NO_REPLACEMENTS = { GIT_NO_REPLACE_OBJECTS: '1' } as const satisfies Environment

const PLAIN_LANGUAGE = { LC_ALL: 'C', LANGUAGE: '' } as const satisfies Environment

function treeEnvironment(operator: Environment): Environment {
  const kept = Object.entries(operator).filter(([name]) => KEPT_BY_TREE.has(name))
  return {
    ...Object.fromEntries(kept),
    ...NO_GLOBAL_CONFIGURATION,
    ...NO_PROMPTS,
    ...NO_REPLACEMENTS,
    ...PLAIN_LANGUAGE,
    // Git's optional writes (refreshing an index while reading it) are not wanted either.
    GIT_OPTIONAL_LOCKS: '0',
    HOME: '/nonexistent',
  }
}

const KEPT_BY_TREE: ReadonlySet<string> = new Set([
  'PATH',
  'TMPDIR',
  'LD_LIBRARY_PATH',
  'GIT_EXEC_PATH',
])

function networkEnvironment(operator: Environment): Environment {
  return {
    ...withoutGit(operator),
    ...NO_GLOBAL_CONFIGURATION,
    ...NO_PROMPTS,
    ...NO_REPLACEMENTS,
    ...PLAIN_LANGUAGE,
  }
}

function operatorEnvironment(operator: Environment): Environment {
  const files = Object.entries(operator).filter(([name]) => OPERATOR_CONFIGURATION.test(name))
  return {
    ...withoutGit(operator),
    ...Object.fromEntries(files),
    ...NO_PROMPTS,
    ...NO_REPLACEMENTS,
    ...PLAIN_LANGUAGE,
  }
}

/** Without the daemon's tokens, and without what would lead git to another repository or configuration. */
function withoutGit(operator: Environment): Environment {
  const kept = Object.entries(operator).filter(
    ([name]) =>
      !isDeniedName(name) && (!name.startsWith('GIT_') || PASSED_GIT_VARIABLES.test(name)),
  )
  return Object.fromEntries(kept)
}
