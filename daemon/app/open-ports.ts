import type { Config } from '../config/make-config.ts'
import { CONTROL_FILES } from '../core/control-files.ts'
import { countEffects } from '../core/effects.ts'
import type { Claims, Clock, Git, GitHub, Journals, Log, Store } from '../core/ports.ts'
import { CAPTURE_LIMITS } from '../git/find-changes.ts'
import { openGit } from '../git/open-git.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf, type StateLayout } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { systemClock } from '../sys/clock.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { leaveWasmUnoptimized } from '../sys/spare-wasm.ts'
import type { Build } from './build.ts'
import { openTokenSource, type TokenOfProcess } from './credentials.ts'
import { type LogProcess, openLog } from './open-log.ts'
import { type LastAnswer, openStoredGitHub } from './open-stored-github.ts'

/** The adapters that tick and runner share; every call of one is counted as an effect. */
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
  /** Status and rate limit that GitHub's last answer to this process showed. */
  lastAnswer: () => LastAnswer
}>

export type OpenRequest = Readonly<{
  config: Config
  environment: Readonly<Record<string, string>>
  build: Build
  process: LogProcess
  /** A token handed over by the parent process; null = this process finds its own. */
  token: string | null
  /** The time this process has left; no request and no call of git lasts longer. */
  timeLeftMs: () => number
}>

/**
 * Opens everything a tick or a run works with. No request is sent and no git started yet.
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
