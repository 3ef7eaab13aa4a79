import type { Config } from '../config/config.ts'
import { resolveToken, type TokenSystem } from '../config/resolve-token.ts'
import { findProgram, runProcess } from '../sys/run-process.ts'

/** The token, found at its first use and kept only in this process's memory (design §10). */
export type TokenOfProcess = Readonly<{
  get(): Promise<string>
  /** What has to be kept out of logs and workers: the token, once it is known. */
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
