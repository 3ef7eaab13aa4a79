import type { Config } from '../config/make-config.ts'
import { resolveToken, type TokenSystem } from '../config/resolve-token.ts'
import { isDeniedName } from '../core/denied-environment.ts'
import { looksLikeGithubToken } from '../core/redaction.ts'
import { readHostEnvironment, withHostValues } from '../host/host-environment.ts'
import { readFileBounded } from '../sys/files.ts'
import { findProgram } from '../sys/find-program.ts'
import { realPath } from '../sys/paths.ts'
import { runProcess } from '../sys/run-process.ts'
import { isProviderName } from '../worker/provider-variables.ts'

/** The token, found at its first use and held only in this process's memory. */
export type TokenOfProcess = Readonly<{
  get(): Promise<string>
  /** What must not reach logs and workers: the token, once it is known. */
  known(): readonly string[]
}>

/**
 * @param handed a token this process was given by its parent, or null
 * Faults of `get`: token/*.
 */
export function openTokenSource(
  config: Config,
  environment: Readonly<Record<string, string>>,
  handed: string | null,
): TokenOfProcess {
  const system: TokenSystem = { findProgram, runProcess }
  let token: string | null = handed ?? config.githubToken
  return {
    get: async () => {
      token ??= (await resolveToken(system, config, environment)).token
      return token
    },
    known: () => (token === null ? [] : [token]),
  }
}

/** The one secret of the daemon's own that the host's `.env` may hold. */
const TOKEN_VARIABLE = 'CADUCEUS_GITHUB_TOKEN'

/**
 * The environment a tick or a run works with: this process's own, and of the host's `.env` the token and
 * what workers get for their provider. It is not handed to other processes of ours, which read it themselves.
 */
export function withHostSecrets(
  environment: Readonly<Record<string, string>>,
  config: Pick<Config, 'workerEnvAllowlist'>,
): Readonly<Record<string, string>> {
  const host = readHostEnvironment({ readFileBounded, realPath }, environment)
  return withHostValues(
    environment,
    host,
    (name) => name === TOKEN_VARIABLE || isProviderName(name, config.workerEnvAllowlist),
  )
}

/**
 * An environment for a long-lived process of ours: without GitHub credentials, under any name, so that they are
 * not found where the system shows a process's environment (I2).
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

const SUPERVISOR_NAMES: readonly string[] = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TMPDIR']

/** What a supervisor gets: enough to run, nothing of the operator's (I2). */
export function supervisorEnvironment(
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => SUPERVISOR_NAMES.includes(name)),
  )
}
