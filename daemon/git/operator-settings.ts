import type { Setting } from './profile.ts'
import type { RunGit } from './run-git.ts'

/** What says how to reach a remote, and what kind of clone this is; POSIX extended, keys as git prints them. */
const KEYS = [
  String.raw`^url\..*\.(insteadof|pushinsteadof)$`,
  String.raw`^(credential|http|protocol)\.`,
  String.raw`^ssh\.variant$`,
  String.raw`^core\.(sshcommand|gitproxy)$`,
  String.raw`^remote\.origin\.(url|pushurl|proxy|proxyauthmethod|uploadpack|receivepack|vcs)$`,
  String.raw`^remote\..*\.(promisor|partialclonefilter)$`,
  String.raw`^extensions\.partialclone$`,
].join('|')

const MAX_BYTES = 1024 * 1024

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
    args: ['config', '--null', '--get-regexp', KEYS],
    gitDirectory,
    maxOutputBytes: MAX_BYTES,
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
