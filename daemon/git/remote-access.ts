import { basename } from 'node:path'
import { secretsIn } from './captured-remote.ts'
import { splitCredentials } from './origin.ts'
import type { Environment, Setting } from './profile.ts'
import type { GitCall, RunGit } from './run-git.ts'

/** What a call of git needs to reach the operator's origin the way the operator does. */
export type RemoteAccess = Required<
  Pick<GitCall, 'profile' | 'cwd' | 'settings' | 'secrets' | 'env'>
>

/** `fetch` reads, `push` writes, `probe` reads where `push` writes. */
export type RemotePurpose = 'fetch' | 'push' | 'probe'

/** Facts about the clone, not about the way to its origin. */
const NOT_PASSED =
  /^(?:remote\.(?!origin\.)|extensions\.|remote\.origin\.(?:promisor|partialclone))/
const URL_KEYS = ['remote.origin.url', 'remote.origin.pushurl'] as const

/** Access as the operator's settings are now. Faults: git/failed. */
export async function readRemoteAccess(
  deps: Readonly<{ runGit: RunGit; environment: Environment }>,
  clone: Readonly<{ path: string; gitDirectory: string }>,
  purpose: RemotePurpose,
): Promise<RemoteAccess> {
  const settings = await readOperatorSettings(deps.runGit, clone.gitDirectory)
  return accessOf(deps.environment, clone.path, settings, purpose)
}

/**
 * Access by given settings. Only they are given to git, not the whole global configuration, whose push
 * options, mirrors or hooks are not meant for the daemon (design §8). Pure.
 * @param cwd a relative URL is meant from there
 */
export function accessOf(
  environment: Environment,
  cwd: string,
  settings: readonly Setting[],
  purpose: RemotePurpose,
): RemoteAccess {
  const urls = splitUrls(settings, purpose)
  const others = settings.filter(([key]) => !NOT_PASSED.test(key) && !isUrlKey(key))
  return {
    profile: 'network',
    cwd,
    settings: [...others, ...urls.settings],
    secrets: [...urls.secrets, ...secretsIn(others)],
    env: { GIT_SSH_COMMAND: sshCommand(sshSettings(environment, settings)) },
  }
}

/** Where the call goes: the first URL of its kind, without what is secret in it. */
function splitUrls(
  settings: readonly Setting[],
  purpose: RemotePurpose,
): Readonly<{ settings: readonly Setting[]; secrets: readonly string[] }> {
  const first = (key: string): string | null => settings.find(([name]) => name === key)?.[1] ?? null
  const pushUrl = purpose === 'fetch' ? null : first('remote.origin.pushurl')
  const { url, header, secret } = splitCredentials(pushUrl ?? first('remote.origin.url') ?? '')
  const server = /^https?:\/\/[^/]*/i.exec(url)?.[0]
  return {
    settings: [
      ...(header === null ? [] : [[`http.${server}/.extraheader`, header] as const]),
      ['remote.origin.url', url],
      // A URL written for pushing is not rewritten by pushInsteadOf, another one is.
      ...(purpose === 'push' && pushUrl !== null ? [['remote.origin.pushurl', url] as const] : []),
    ],
    secrets: [secret, header].filter((value) => value !== null),
  }
}

function sshSettings(
  environment: Environment,
  settings: readonly Setting[],
): Parameters<typeof sshCommand>[0] {
  const last = (key: string): string | null =>
    settings.findLast(([name]) => name === key)?.[1] ?? null
  return {
    environmentCommand: environment['GIT_SSH_COMMAND'] ?? null,
    configuredCommand: last('core.sshcommand'),
    program: environment['GIT_SSH'] ?? null,
    variant: environment['GIT_SSH_VARIANT'] ?? last('ssh.variant'),
  }
}

function isUrlKey(key: string): boolean {
  return URL_KEYS.some((known) => known === key)
}

/** What says how to reach a remote, and what kind of clone this is; POSIX extended, keys as git prints them. */
const SETTING_KEYS = [
  String.raw`^url\..*\.(insteadof|pushinsteadof)$`,
  String.raw`^(credential|http|protocol)\.`,
  String.raw`^ssh\.variant$`,
  String.raw`^core\.(sshcommand|gitproxy)$`,
  String.raw`^remote\.origin\.(url|pushurl|proxy|proxyauthmethod|uploadpack|receivepack|vcs)$`,
  String.raw`^remote\..*\.(promisor|partialclonefilter)$`,
  String.raw`^extensions\.partialclone$`,
].join('|')

/** They are kept in a journal, escaped, beside what is published (LIMITS.journalBytes). */
const MAX_SETTINGS_BYTES = 256 * 1024

/**
 * The operator's settings about remotes as they hold inside a clone: system, global and local ones,
 * with everything included, also by the clone's place (includeIf). In git's order, so that later ones
 * win as they do for the operator. Values may be secret. Faults: git/failed.
 */
export async function readOperatorSettings(
  runGit: RunGit,
  gitDirectory: string,
): Promise<readonly Setting[]> {
  const { stdout } = await runGit({
    profile: 'operator',
    operation: `config in ${gitDirectory}`,
    args: ['config', '--null', '--get-regexp', SETTING_KEYS],
    gitDirectory,
    maxOutputBytes: MAX_SETTINGS_BYTES,
    answers: [0, 1],
  })
  return parseSettings(stdout.toString())
}

/** `key\nvalue\0`…; a key without a value means true. */
export function parseSettings(output: string): readonly Setting[] {
  return output
    .split('\0')
    .filter((record) => record !== '')
    .map((record) => {
      const at = record.indexOf('\n')
      return at < 0 ? [record, 'true'] : [record.slice(0, at), record.slice(at + 1)]
    })
}

/** How each kind of ssh program is told never to ask (ssh_config(5) BatchMode; plink -batch). */
const BATCH_OPTIONS = {
  ssh: ' -oBatchMode=yes',
  plink: ' -batch',
  putty: ' -batch',
  tortoiseplink: '',
  simple: '',
} as const satisfies Record<string, string>

/** What the operator configured about ssh; null = nothing. */
type SshSettings = Readonly<{
  /** GIT_SSH_COMMAND: a shell command. */
  environmentCommand: string | null
  /** core.sshCommand: a shell command. */
  configuredCommand: string | null
  /** GIT_SSH: one program, not a shell command. */
  program: string | null
  /** GIT_SSH_VARIANT or ssh.variant. */
  variant: string | null
}>

/**
 * The value for GIT_SSH_COMMAND: what git itself would choose, in git's order, told not to prompt
 * (C32). A program that is not known to be something else is taken for OpenSSH, as its wrappers are.
 */
export function sshCommand(settings: SshSettings): string {
  const { environmentCommand, configuredCommand, program } = settings
  const command = environmentCommand ?? configuredCommand ?? quoteProgram(program ?? 'ssh')
  return command + batchOption(settings.variant ?? guessVariant(command))
}

function batchOption(variant: string): string {
  return isKnownVariant(variant) ? BATCH_OPTIONS[variant] : BATCH_OPTIONS.ssh
}

function isKnownVariant(variant: string): variant is keyof typeof BATCH_OPTIONS {
  return Object.hasOwn(BATCH_OPTIONS, variant)
}

/** By the name of the program, as git does it. */
function guessVariant(command: string): string {
  const program = /^\s*(?:'([^']*)'|"([^"]*)"|(\S+))/.exec(command)
  const name = basename(program?.[1] ?? program?.[2] ?? program?.[3] ?? '').toLowerCase()
  return name.replace(/\.exe$/, '')
}

function quoteProgram(program: string): string {
  return /^[\w./-]+$/.test(program) ? program : `'${program.replaceAll("'", `'\\''`)}'`
}
