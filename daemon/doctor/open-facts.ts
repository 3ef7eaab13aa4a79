import type { Build } from '../app/build.ts'
import { inspectProgramConfig } from '../app/load-program-config.ts'
import type { ConfigInspection } from '../config/load-config.ts'
import type { Config } from '../config/make-config.ts'
import { type ResolvedToken, resolveToken } from '../config/resolve-token.ts'
import { isFault } from '../core/fault.ts'
import { parseRepositoryName, type RepositoryName, repositoryId } from '../core/issue-key.ts'
import type { Meta } from '../core/meta.ts'
import type { CloneDeps } from '../git/inspect-clone.ts'
import { makeRunGit, type RunGit } from '../git/run-git.ts'
import { type Connection, openConnection } from '../github/connection.ts'
import { openRequestBuilder, type RequestBuilder } from '../github/http-request.ts'
import { type Gateway, readGateway } from '../host/gateway.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { findProgram } from '../sys/find-program.ts'
import { runProcess } from '../sys/run-process.ts'
import { type Category, type CheckGroup, environmentOfCron, type Finding } from './check-result.ts'

type Environment = Readonly<Record<string, string>>

/** A single request or call of git; checks are for people who wait. */
const CALL_MS = 20_000

/** What checks look at. Everything here only reads. */
export type DoctorFacts = Readonly<{
  build: Build
  /** Of this process. */
  environment: Environment
  /** As a tick that cron starts will see it; without Hermes that of this process. Secret. */
  cron: Environment
  hermesHome: string | null
  /** What the host's `.env` says. Secret. */
  hostVariables: Environment
  gateway: Gateway | null
  inspection: ConfigInspection
  isOffline: boolean
  /** Milliseconds since the epoch. */
  now: number
}>

/** With a configuration, and what is reached through it. */
export type ConfiguredFacts = DoctorFacts &
  Readonly<{
    config: Config
    repositories: readonly RepositoryName[]
    /** What ticks have left; null = nothing, or it cannot be read. */
    meta: Meta | null
    /** As a tick would find it; asked once. Faults: token/*. */
    token: () => Promise<ResolvedToken>
    connection: Connection
    request: RequestBuilder
    git: CloneDeps & Readonly<{ environment: Environment }>
    runGit: RunGit
  }>

type Findings = readonly Finding[] | Promise<readonly Finding[]>

/** One row of a table of checks. A fault that is thrown becomes a failure of this check alone. */
export type Check = Readonly<{
  name: string
  group: CheckGroup
  /** What a failure of it is. */
  category: Category
  needs?: readonly ('network' | 'hermes')[]
}> &
  (
    | Readonly<{ needsConfiguration: false; run: (probe: DoctorFacts) => Findings }>
    | Readonly<{ needsConfiguration: true; run: (probe: ConfiguredFacts) => Findings }>
  )

/**
 * @param hostVariables what the host's `.env` gives a tick
 * A HERMES_HOME that is no absolute path counts as none: the check of the configuration tells it.
 */
export function openFacts(
  build: Build,
  environment: Environment,
  hostVariables: Environment,
  isOffline: boolean,
): DoctorFacts {
  const named = environment['HERMES_HOME'] ?? null
  const hermesHome = named?.startsWith('/') ? named : null
  const gateway = hermesHome === null ? null : gatewayOrNull(hermesHome)
  return {
    build,
    environment,
    cron:
      hermesHome === null
        ? environment
        : environmentOfCron(gateway?.environment ?? null, environment, hostVariables),
    hermesHome,
    hostVariables,
    gateway,
    inspection: inspectProgramConfig(environment),
    isOffline,
    now: systemClock.now(),
  }
}

/** A host's files may be anything; the checks of the host look again and tell. */
function gatewayOrNull(hermesHome: string): Gateway | null {
  try {
    return readGateway(hermesHome)
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    return null
  }
}

/** Null when the configuration does not load. */
export function configuredFacts(probe: DoctorFacts): ConfiguredFacts | null {
  if (probe.inspection.kind === 'invalid') return null
  const { config } = probe.inspection.loaded
  const meta = storedMeta(config)
  const timeoutMs = Math.min(config.gitTimeoutSeconds * 1000, CALL_MS)
  const runGit = makeRunGit(probe.cron, () => timeoutMs)
  let token: Promise<ResolvedToken> | null = null
  const tokenOnce = (): Promise<ResolvedToken> => {
    token ??= resolveToken({ findProgram, runProcess }, config, probe.cron)
    return token
  }
  return {
    ...probe,
    config,
    meta,
    token: tokenOnce,
    runGit,
    repositories: repositoriesOf(config, meta),
    request: openRequestBuilder(config.apiBase.url, probe.build.version),
    connection: openConnection(
      {
        clock: systemClock,
        random: () => 0,
        // The common gate is honoured; what is met here is not stored, because nothing is.
        gate: () => meta?.wait ?? null,
        onWait: () => undefined,
        onAnswer: () => undefined,
      },
      {
        token: async () => (await tokenOnce()).token,
        timeoutMs: Math.min(config.httpTimeoutSeconds * 1000, CALL_MS),
      },
    ),
    git: {
      runGit,
      environment: probe.cron,
      workdirBase: config.workdirBase,
      apiBase: config.apiBase.url,
    },
  }
}

/** The watched ones, and with `discover` those known from the last poll. */
function repositoriesOf(config: Config, meta: Meta | null): readonly RepositoryName[] {
  if (!config.discover) return config.watchedRepos
  const known = new Set(config.watchedRepos.map(repositoryId))
  const remembered = Object.keys(meta?.repositories ?? {}).flatMap((id) => {
    const name = known.has(id) ? null : parseRepositoryName(id)
    return name === null ? [] : [name]
  })
  return [...config.watchedRepos, ...remembered]
}

function storedMeta(config: Config): Meta | null {
  try {
    const store = openJsonStore({ clock: systemClock, archiveCorrupt: false }, config.stateDir)
    return store.exists() ? store.readMeta() : null
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    return null
  }
}
