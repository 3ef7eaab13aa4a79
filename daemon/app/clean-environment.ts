import { isDeniedName } from '../core/denied-environment.ts'
import { looksLikeGithubToken } from '../core/redaction.ts'

/**
 * An environment for a long-lived process of ours: without GitHub credentials, under whatever name, so
 * that nobody finds them where the system shows a process's environment (design §1.2, §7).
 */
export function withoutCredentials(
  environment: Readonly<Record<string, string>>,
  secrets: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) =>
        !isDeniedName(name) &&
        !looksLikeGithubToken(value) &&
        !secrets.some((secret) => value.includes(secret)),
    ),
  )
}

/** What a supervisor gets: enough to run, nothing of the operator's (design §7). */
const SUPERVISOR_NAMES: readonly string[] = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'NODE_OPTIONS',
]

export function supervisorEnvironment(
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name]) => SUPERVISOR_NAMES.includes(name) || name.startsWith('TEST_'),
    ),
  )
}
