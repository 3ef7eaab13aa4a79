import { readOperatorSettings } from './operator-settings.ts'
import { splitCredentials } from './origin.ts'
import type { Environment, Setting } from './profile.ts'
import type { GitCall, RunGit } from './run-git.ts'
import { sshCommand } from './ssh-command.ts'

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

/**
 * Reads the operator's settings anew, so that a changed origin or credential counts at once and
 * none is kept by us. Only they are given to git, not the whole global configuration, whose push
 * options, mirrors or hooks are not meant for the daemon (design §8). Faults: git/failed.
 */
export async function readRemoteAccess(
  deps: Readonly<{ runGit: RunGit; environment: Environment }>,
  clone: Readonly<{ path: string; gitDirectory: string }>,
  purpose: RemotePurpose,
): Promise<RemoteAccess> {
  const settings = await readOperatorSettings(deps.runGit, clone.gitDirectory)
  const urls = splitUrls(settings, purpose)
  const others = settings.filter(([key]) => !NOT_PASSED.test(key) && !isUrlKey(key))
  return {
    profile: 'network',
    // A relative URL is meant from there.
    cwd: clone.path,
    settings: [...others, ...urls.settings],
    secrets: [...urls.secrets, ...secretValues(others)],
    env: { GIT_SSH_COMMAND: sshCommand(sshSettings(deps.environment, settings)) },
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

function secretValues(settings: readonly Setting[]): readonly string[] {
  const headers = settings.filter(([key]) => key.endsWith('.extraheader'))
  return headers.flatMap(([, value]) => [value, value.replace(/^.*[ :]/, '')])
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
