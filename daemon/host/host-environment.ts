import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { reasonOf } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'

type Environment = Readonly<Record<string, string>>

/** What reading the host's files asks of the file system (daemon/sys). */
export type HostFiles = Readonly<{
  readFileBounded(path: string, maxBytes: number): Uint8Array | null
  /** Links resolved; null when nothing is there. */
  realPath(path: string): string | null
}>

/** The host's own variables, which it gives to its commands and, in part, to its scheduled scripts. */
export type HostEnvironment = Readonly<{ path: string }> &
  (
    | Readonly<{ kind: 'read'; values: Environment }>
    | Readonly<{ kind: 'absent' }>
    | Readonly<{ kind: 'unreadable'; reason: string }>
  )

/** Set by the scheduled wrapper: then the environment is as old as the host's gateway. */
export const SCHEDULED_VARIABLE = 'CADUCEUS_SCHEDULED'

/**
 * `$HERMES_HOME/.env`; null = there is no host. It is no fault that it cannot be read: a reader that needs a value
 * reports it as missing.
 */
export function readHostEnvironment(
  files: HostFiles,
  environment: Environment,
): HostEnvironment | null {
  const home = environment['HERMES_HOME']
  if (home === undefined || !home.startsWith('/')) return null
  const path = join(home, '.env')
  try {
    const real = files.realPath(path)
    const bytes = real === null ? null : files.readFileBounded(real, LIMITS.configurationBytes)
    if (bytes === null) return { path, kind: 'absent' }
    return { path, kind: 'read', values: textsOf(parseEnv(new TextDecoder().decode(bytes))) }
  } catch (error) {
    return { path, kind: 'unreadable', reason: reasonOf(error) }
  }
}

/**
 * The environment with the host's values of the wanted names, because the host takes secrets away from
 * its scheduled scripts. What the environment says itself counts more – except in a scheduled
 * script, whose values are those of the gateway's start, while the file is what the operator wrote last.
 */
export function withHostValues(
  environment: Environment,
  host: HostEnvironment | null,
  isWanted: (name: string) => boolean,
): Environment {
  if (host?.kind !== 'read') return environment
  const isOld = environment[SCHEDULED_VARIABLE] === '1'
  const added = Object.entries(host.values).filter(
    ([name, value]) =>
      value.trim() !== '' && isWanted(name) && (isOld || (environment[name] ?? '').trim() === ''),
  )
  return { ...environment, ...Object.fromEntries(added) }
}

function textsOf(values: Readonly<Record<string, string | undefined>>): Environment {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
