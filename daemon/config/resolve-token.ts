import { fault, isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Config } from './make-config.ts'

type Environment = Readonly<Record<string, string>>

/** What finding a token asks of the system (daemon/sys/run-process.ts). */
export type TokenSystem = Readonly<{
  findProgram(name: string, env: Environment): string | null
  runProcess(
    request: Readonly<{
      argv: readonly [string, ...string[]]
      env: Environment
      timeoutMs: number
      maxOutputBytes: number
    }>,
  ): Promise<Readonly<{ code: number | null; stdout: Uint8Array }>>
}>

type TokenSource = 'github_token' | 'CADUCEUS_GITHUB_TOKEN' | 'GITHUB_TOKEN' | 'gh'

export type ResolvedToken = Readonly<{ token: string; source: TokenSource }>

/** All that `gh` gets: where its login is stored, and how to reach the keyring that may hold it. */
const GH_VARIABLES = [
  'PATH',
  'HOME',
  'USER',
  'XDG_CONFIG_HOME',
  'GH_CONFIG_DIR',
  'XDG_RUNTIME_DIR',
  'DBUS_SESSION_BUS_ADDRESS',
] as const

const MAX_TOKEN_BYTES = 4096

/**
 * The first token of the chain: `github_token`, CADUCEUS_GITHUB_TOKEN, GITHUB_TOKEN, `gh auth token`.
 * Call it only where GitHub is about to be used. The token stands in no error.
 * @param ghTimeoutMs deadline for `gh`, which may be a program that prompts
 * Faults: token/not-found, which says what was tried; token/malformed.
 */
export async function resolveToken(
  system: TokenSystem,
  config: Pick<Config, 'githubToken' | 'apiBase'>,
  env: Environment,
  ghTimeoutMs: number = LIMITS.ghTokenMs,
): Promise<ResolvedToken> {
  const given = [
    { source: 'github_token', text: config.githubToken ?? undefined },
    { source: 'CADUCEUS_GITHUB_TOKEN', text: env['CADUCEUS_GITHUB_TOKEN'] },
    { source: 'GITHUB_TOKEN', text: env['GITHUB_TOKEN'] },
  ] as const
  for (const { source, text } of given) {
    const token = acceptToken(source, text ?? '')
    if (token !== null) return { token, source }
  }
  const tried = given.map(
    ({ source, text }) => `${source} is ${text === undefined ? 'not set' : 'blank'}`,
  )
  const answer = await askGh(system, config.apiBase.gitServer, env, ghTimeoutMs)
  if (answer.kind === 'nothing') {
    throw fault('token/not-found', { tried: [...tried, answer.reason].join('; ') })
  }
  return { token: answer.token, source: 'gh' }
}

/** Null = blank. A malformed token is not passed over: the next one may be another user's. */
function acceptToken(source: TokenSource, text: string): string | null {
  const read = readToken(text)
  if (read.kind === 'malformed') throw fault('token/malformed', { source })
  return read.kind === 'token' ? read.token : null
}

type GhAnswer =
  | Readonly<{ kind: 'token'; token: string }>
  | Readonly<{ kind: 'nothing'; reason: string }>

/** Its error output may hold anything, so only the exit code is reported. */
async function askGh(
  system: TokenSystem,
  server: string,
  env: Environment,
  timeoutMs: number,
): Promise<GhAnswer> {
  const nothing = (reason: string): GhAnswer => ({ kind: 'nothing', reason })
  const program = system.findProgram('gh', env)
  if (program === null) return nothing('gh is not installed')
  try {
    const { code, stdout } = await system.runProcess({
      // Named always: without it gh may answer with the token of another server it knows.
      argv: [program, 'auth', 'token', '--hostname', server],
      env: reducedEnvironment(env),
      timeoutMs,
      maxOutputBytes: MAX_TOKEN_BYTES,
    })
    if (code !== 0) return nothing(`gh auth token ended with ${code ?? 'a signal'}`)
    const token = acceptToken('gh', new TextDecoder().decode(stdout))
    return token === null ? nothing('gh auth token printed nothing') : { kind: 'token', token }
  } catch (error) {
    if (!isFault(error)) throw error
    if (error.code === 'sys/process-timeout') {
      return nothing(`gh auth token gave no answer within ${timeoutMs / 1000} s`)
    }
    if (error.code === 'sys/spawn-failed') return nothing('gh could not be started')
    throw error
  }
}

function reducedEnvironment(env: Environment): Environment {
  return Object.fromEntries(
    GH_VARIABLES.flatMap((name) => {
      const value = env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** What a text amounts to as a GitHub token. */
type TokenText =
  | Readonly<{ kind: 'token'; token: string }>
  | Readonly<{ kind: 'blank' | 'malformed' }>

/** Blanks around a token do not count; what could not stand in a request header is malformed. */
export function readToken(text: string): TokenText {
  const token = text.trim()
  if (token === '') return { kind: 'blank' }
  return /^[\x21-\x7e]+$/.test(token) ? { kind: 'token', token } : { kind: 'malformed' }
}
