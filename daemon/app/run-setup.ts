import { dirname, join } from 'node:path'
import type { ConfigFiles } from '../config/find-source.ts'
import { type ConfigInspection, inspectConfig } from '../config/load-config.ts'
import type { Config } from '../config/make-config.ts'
import { countEffects } from '../core/effects.ts'
import { asFault } from '../core/fault.ts'
import { formatRepository } from '../core/issue-key.ts'
import { findLabel, type RepositoryLabels } from '../core/labels.ts'
import { openGitHub } from '../github/open-github.ts'
import {
  firstKeys,
  firstSection,
  type PlannedFile,
  planFile,
  writePlanned,
} from '../host/config-section.ts'
import { refreshWrapper, wrapperPartsOf } from '../host/cron-wrapper.ts'
import { type HermesHost, requireHost } from '../host/hermes-cron.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { systemClock } from '../sys/clock.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { homeDirectory, environment as readEnvironment } from '../sys/environment.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import type { Build } from './build.ts'
import { collectUnused, launchedBuild, readBuildInfo } from './builds.ts'
import { openTokenSource, withHostSecrets } from './credentials.ts'
import { paint } from './paint.ts'
import { type BridgePaths, bridgePaths, describeBridge, seedBridge } from './seed-bridge.ts'

export type SetupOptions = Readonly<{ dryRun: boolean; createLabels: boolean }>

/** One thing that setup looked after. */
export type SetupStep = Readonly<{
  name: string
  /** Which of several, such as a repository. */
  subject: string | null
  status: 'ok' | 'warn' | 'fail'
  detail: string
  next: string | null
  /** Lines to be pasted by the user. */
  lines: readonly string[]
}>

/** `setup --json`. */
export type SetupReport = Readonly<{
  dryRun: boolean
  exitCode: 0 | 1
  steps: readonly SetupStep[]
}>

/** Before and after a change that a dry run only tells. */
type Scene = Readonly<{
  build: Build
  environment: Readonly<Record<string, string>>
  /** Null without Hermes. */
  host: HermesHost | null
  bridge: BridgePaths | null
  dryRun: boolean
}>

/**
 * Everything an installation needs besides its build, made where it is absent and otherwise left as it is.
 * No step keeps the others from being made, and all may be repeated.
 * Faults: config/environment when HERMES_HOME is no absolute path.
 */
export async function runSetup(build: Build, options: SetupOptions): Promise<SetupReport> {
  const scene = openScene(build, options.dryRun)
  const { steps: configured, inspection } = setUpConfiguration(scene)
  const config = inspection.kind === 'valid' ? inspection.loaded.config : null
  const steps = [
    ...(await attempt('build', () => inspectBuild(scene))),
    ...configured,
    ...(await attempt('bridge', () => setUpBridge(scene, inspection))),
    ...(await attempt('state', () => setUpState(scene, config))),
    ...(await attempt('cron wrapper', () => setUpWrapper(scene))),
    ...(await attempt('old builds', () => collectOldBuilds(scene, config))),
    ...(options.createLabels ? await attempt('labels', () => createLabels(scene, config)) : []),
  ]
  const exitCode = steps.some(({ status }) => status === 'fail') ? 1 : 0
  return { dryRun: options.dryRun, exitCode, steps }
}

function openScene(build: Build, dryRun: boolean): Scene {
  const environment = readEnvironment()
  const host = environment['HERMES_HOME'] === undefined ? null : requireHost(environment)
  const home = homeDirectory(environment)
  const own = home === null ? null : join(home, '.config', 'caduceus')
  const folder = host === null ? own : join(host.hermesHome, 'caduceus')
  const bridge = folder === null ? null : bridgePaths(build.root, folder)
  return { build, environment, host, bridge, dryRun }
}

type Steps = readonly SetupStep[]

async function attempt(name: string, run: () => Steps | Promise<Steps>): Promise<Steps> {
  try {
    return await run()
  } catch (thrown) {
    return [failure(name, thrown)]
  }
}

function failure(name: string, thrown: unknown, lines: readonly string[] = []): SetupStep {
  const { message, next } = asFault(thrown)
  return { name, subject: null, status: 'fail', detail: message, next: next || null, lines }
}

function done(name: string, detail: string, next: string | null = null): SetupStep {
  return { name, subject: null, status: next === null ? 'ok' : 'warn', detail, next, lines: [] }
}

function inspectBuild({ build, host, dryRun }: Scene): Steps {
  const info = readBuildInfo(build.root)
  if (info === null) return [done('build', `version ${build.version} in ${build.root}`)]
  const { digest, version, bytes } = info
  const detail = `version ${version}, ${digest}, ${(bytes / 1e6).toFixed(1)} MB`
  if (host === null || launchedBuild(host) === digest) return [done('build', detail)]
  if (dryRun) return [done('build', `${detail}; would become the one that ${host.launcher} starts`)]
  return [done('build', `${detail}; the launcher starts another one`, 'Run: hermes caduceus setup')]
}

const FILES: ConfigFiles = { fileStatus, readFileBounded, realPath }

/** Looks for a configuration as every command does; only where there is none, one is written. */
function setUpConfiguration(
  scene: Scene,
): Readonly<{ steps: Steps; inspection: ConfigInspection }> {
  const { environment, dryRun } = scene
  const before = inspectConfig(FILES, environment)
  const target = before.kind === 'invalid' ? writeTarget(scene, before) : null
  if (target === null) return { steps: [describeConfiguration(before)], inspection: before }
  const isShared = scene.host !== null
  const lines = isShared ? firstSection() : firstKeys(scene.bridge?.bridge ?? null)
  try {
    const planned = planFile(target, lines)
    if (!dryRun) writePlanned(planned)
    const inspection = inspectConfig(dryRun ? overlaid(planned) : FILES, environment)
    const what = isShared ? 'a section "caduceus:"' : 'a first configuration'
    const detail = `${dryRun ? 'would write' : 'wrote'} ${what} into ${target}`
    const told = inspection.kind === 'valid' ? [] : [describeConfiguration(inspection)]
    return { steps: [done('configuration', detail), ...told], inspection }
  } catch (thrown) {
    return { steps: [failure('configuration', thrown, lines)], inspection: before }
  }
}

/** The file that lacks a configuration; null when what is wrong is something else. */
function writeTarget(
  { environment, host, bridge }: Scene,
  { fault: found }: Extract<ConfigInspection, { kind: 'invalid' }>,
): string | null {
  if (environment['CADUCEUS_CONFIG'] !== undefined || bridge === null) return null
  const target = join(host?.hermesHome ?? dirname(bridge.bridge), 'config.yaml')
  if (found.code === 'config/not-found') return target
  return found.code === 'config/no-section' && found.details['path'] === target ? target : null
}

function describeConfiguration(inspection: ConfigInspection): SetupStep {
  if (inspection.kind === 'valid') {
    const { path, section } = inspection.loaded.source
    const place = section === null ? path : `${path} (section ${section})`
    return done('configuration', `${place}, left as it is`)
  }
  return failure('configuration', inspection.fault)
}

/** The files as they would be. */
function overlaid(planned: PlannedFile): ConfigFiles {
  const isPlanned = (path: string): boolean => path === planned.path
  return {
    ...FILES,
    realPath: (path) => (isPlanned(path) ? path : realPath(path)),
    readFileBounded: (path, maxBytes) =>
      isPlanned(path) ? Buffer.from(planned.text) : readFileBounded(path, maxBytes),
  }
}

function setUpBridge({ bridge, host, dryRun }: Scene, inspection: ConfigInspection): Steps {
  if (bridge === null) return []
  const command: readonly string[] =
    inspection.kind === 'valid' ? inspection.loaded.config.workerCommand : []
  // Without Hermes there is no place that a bridge is expected in, unless the configuration names ours.
  if (host === null && !command.includes(bridge.bridge)) return []
  const { detail, next } = describeBridge(bridge, seedBridge(bridge, dryRun), dryRun)
  return [done('bridge', detail, next)]
}

/** What an older or newer version has left is recognised before anything runs. */
function setUpState({ dryRun }: Scene, config: Config | null): Steps {
  if (config === null) return []
  const { stateDir } = config
  const isThere = fileStatus(stateDir) !== null
  const store = openJsonStore({ clock: systemClock, archiveCorrupt: false }, stateDir)
  if (isThere && store.exists()) {
    store.readMeta()
    store.readQueue()
  }
  if (!dryRun) prepareDirectories(stateDir)
  return [done('state', `${stateDir}${dryRun && !isThere ? ', would be made' : ''}`)]
}

/** The paths in it may have changed. One that was never installed is not made here. */
function setUpWrapper({ host, dryRun }: Scene): Steps {
  if (host === null || dryRun) return []
  const { path, state, written } = refreshWrapper(wrapperPartsOf(host, process.execPath))
  if (state === 'absent') {
    return [
      done('cron wrapper', 'not installed', 'Have ticks started: hermes caduceus cron-install'),
    ]
  }
  return [done('cron wrapper', `${path}, ${written ? 'made anew' : 'as it should be'}`)]
}

async function collectOldBuilds(
  { build, host, dryRun }: Scene,
  config: Config | null,
): Promise<Steps> {
  if (host === null || config === null) return []
  const removed = await collectUnused(host, build, config.stateDir, dryRun)
  if (removed.length === 0) return []
  return [done('old builds', `${dryRun ? 'would remove' : 'removed'} ${removed.join(', ')}`)]
}

const COLOR = '7C3AED'
const DESCRIPTIONS = {
  code: 'Caduceus: turn this issue into a pull request',
  investigation: 'Caduceus: investigate, and report in a comment',
} as const

/** The two labels in each watched repository; what one of them says does not keep the others from being made. */
async function createLabels(scene: Scene, config: Config | null): Promise<Steps> {
  const next = 'Mend the configuration, then run this again.'
  if (config === null)
    return [{ ...done('labels', 'no configuration loads', next), status: 'fail' }]
  if (config.watchedRepos.length === 0) {
    return [done('labels', 'no repository is watched', 'Name repositories in watched_repos.')]
  }
  const github = openLabels(scene, config)
  const steps: SetupStep[] = []
  for (const repository of config.watchedRepos) {
    const subject = formatRepository(repository)
    const made = await attempt('labels', async () => {
      const known = await github.labels(repository)
      const missing = (['code', 'investigation'] as const)
        .map((ticket) => ({
          name: config.triggerLabels[ticket],
          description: DESCRIPTIONS[ticket],
        }))
        .filter(({ name }) => findLabel(known, name) === null)
      for (const label of scene.dryRun ? [] : missing) {
        await github.createLabel(repository, { ...label, color: COLOR })
      }
      const names = missing.map(({ name }) => `"${name}"`).join(', ')
      if (names === '') return [done('labels', 'both are there')]
      return [done('labels', `${scene.dryRun ? 'would make' : 'made'} ${names}`)]
    })
    steps.push(...made.map((step) => ({ ...step, subject })))
  }
  return steps
}

/** Without the state's gate and cache: setup also runs where there is no state yet. */
function openLabels({ build, environment }: Scene, config: Config): RepositoryLabels {
  const token = openTokenSource(config, withHostSecrets(environment, config), null)
  const nothing = (): undefined => undefined
  const github = openGitHub(
    { clock: systemClock, random: () => 0, gate: () => null, onWait: nothing, onAnswer: nothing },
    {
      apiBase: config.apiBase.url,
      version: build.version,
      maxPages: config.discoveryMaxPages,
      cacheDirectory: layoutOf(config.stateDir).directories.cache,
      token: token.get,
      timeoutMs: config.httpTimeoutSeconds * 1000,
    },
  )
  return countEffects('github', github, announceEffect)
}

const MARKS = {
  ok: paint.good('[OK]'),
  warn: paint.step('[WARN]'),
  fail: paint.bad('[FAIL]'),
} as const satisfies Record<SetupStep['status'], string>

/** For people. */
export function renderSetup({ steps }: SetupReport): readonly string[] {
  return steps.flatMap(({ name, subject, status, detail, next, lines }) => [
    `${MARKS[status]} ${subject === null ? name : `${name} ${subject}`} — ${detail}`,
    ...lines.map((line) => `    ${line}`),
    ...(next === null ? [] : [`    next action: ${next}`]),
  ])
}
