import { join } from 'node:path'
import type { Config } from '../config/make-config.ts'
import { countEffects } from '../core/effects.ts'
import { LIMITS } from '../core/limits.ts'
import type { RateLimit } from '../core/meta.ts'
import type { Claims, Clock, Git, GitHub, Journals, Log, Store } from '../core/ports.ts'
import { fromTimestamp, plausibleWait } from '../core/timestamp.ts'
import { CAPTURE_LIMITS } from '../git/find-changes.ts'
import { openGit } from '../git/open-git.ts'
import { openGitHub } from '../github/open-github.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf, type StateLayout } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { systemClock } from '../sys/clock.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { leaveWasmUnoptimized } from '../sys/spare-wasm.ts'
import { CONTROL_FILES } from '../worker/build-environment.ts'
import type { Build } from './build.ts'
import { openTokenSource, type TokenOfProcess } from './credentials.ts'
import { type LogProcess, openLog } from './open-log.ts'

/** The adapters that tick and runner share, each counted (design §2). */
export type Ports = Readonly<{
  clock: Clock
  log: Log
  layout: StateLayout
  store: Store
  journals: Journals
  claims: Claims
  git: Git
  github: GitHub
  token: TokenOfProcess
  random: () => number
  /** What GitHub's last answer to this process said about itself. */
  lastAnswer: () => LastAnswer
}>

/** Of GitHub's answers to this process, what is worth remembering. */
export type LastAnswer = Readonly<{ status: number | null; rate: RateLimit | null }>

export type OpenRequest = Readonly<{
  config: Config
  environment: Readonly<Record<string, string>>
  build: Build
  process: LogProcess
  /** A token handed over by the parent process, or null. */
  token: string | null
  /** What is left of the time this process has; no request or call of git lasts longer. */
  timeLeftMs: () => number
}>

/**
 * Opens everything a tick or a run works with; nothing is asked of GitHub or git yet.
 * Faults: state/directory-refused, sys/io.
 */
export function openPorts(request: OpenRequest): Ports {
  const { config, environment } = request
  leaveWasmUnoptimized()
  const clock = systemClock
  const layout = layoutOf(config.stateDir)
  prepareDirectories(config.stateDir)
  const token = openTokenSource(config, environment, request.token)
  const log = openLog(config.logPath, request.process, clock, token.known)
  const store = counted('store', openJsonStore({ clock, archiveCorrupt: true }, config.stateDir))
  const random = Math.random
  let lastAnswer: LastAnswer = { status: null, rate: null }
  const onAnswer = (answer: LastAnswer): void => {
    lastAnswer = { status: answer.status, rate: answer.rate ?? lastAnswer.rate }
  }
  return {
    clock,
    log,
    layout,
    store,
    random,
    token,
    journals: counted('journals', openJournals(config.stateDir)),
    claims: counted('claims', openClaims({ clock }, config.stateDir)),
    git: counted(
      'git',
      openGit(
        { clock, environment },
        {
          workdirBase: config.workdirBase,
          storageRoot: config.repoStorageRoot,
          apiBase: config.apiBase.url,
          timeoutMs: config.gitTimeoutSeconds * 1000,
          timeLeftMs: request.timeLeftMs,
          controlFiles: Object.values(CONTROL_FILES),
          captureLimits: {
            maxFiles: Math.max(config.maxChangedFiles, CAPTURE_LIMITS.maxFiles),
            maxFileBytes: Math.max(config.maxFileBytes, CAPTURE_LIMITS.maxFileBytes),
            maxTotalBytes: Math.max(config.maxDiffBytes, CAPTURE_LIMITS.maxTotalBytes),
          },
        },
      ),
    ),
    github: counted(
      'github',
      openStoredGitHub({ ...request, clock, store, layout, token, random, onAnswer }),
    ),
    lastAnswer: () => lastAnswer,
  }
}

function counted<P extends object>(name: string, port: P): P {
  return countEffects(name, port, announceEffect)
}

/** GitHub behind the one gate that all processes share: the wait stored in the metadata (design §10). */
function openStoredGitHub(
  parts: Pick<Ports, 'clock' | 'store' | 'layout' | 'token' | 'random'> &
    Pick<OpenRequest, 'config' | 'build' | 'timeLeftMs'> &
    Readonly<{ onAnswer: (answer: LastAnswer) => void }>,
): GitHub {
  const { clock, store, config, random, onAnswer } = parts
  return openGitHub(
    {
      clock,
      random,
      onAnswer,
      gate: () => store.readMeta().wait,
      onWait: (wait) =>
        store.changeMeta((meta) => {
          const now = clock.now()
          const known = plausibleWait(meta.wait?.until ?? null, now, LIMITS.rateLimitCapMs) ?? 0
          const isLonger = fromTimestamp(wait.until) > known
          return { state: isLonger ? { ...meta, wait } : meta, value: undefined }
        }),
    },
    {
      apiBase: config.apiBase.url,
      version: parts.build.version,
      maxPages: config.discoveryMaxPages,
      cacheDirectory: join(parts.layout.directories.cache, 'http'),
      token: parts.token.get,
      timeoutMs: config.httpTimeoutSeconds * 1000,
      timeLeftMs: parts.timeLeftMs,
    },
  )
}
