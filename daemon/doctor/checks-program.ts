import { join } from 'node:path'
import { bundleOf } from '../app/build.ts'
import { inspectCurrency } from '../app/builds.ts'
import { inspectProgramConfig } from '../app/load-program-config.ts'
import { requireExecutor } from '../app/settings-of.ts'
import { describeFault, isFault } from '../core/fault.ts'
import { resolveWorkerCommand } from '../engine/resolve-worker-command.ts'
import { isRecentEnough, parseGitVersion } from '../git/run-git.ts'
import { requireHost } from '../host/hermes-cron.ts'
import { fileStatus, isExecutableFile, readFileBounded } from '../sys/files.ts'
import { findProgram } from '../sys/find-program.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { realPath } from '../sys/paths.ts'
import { runProcess } from '../sys/run-process.ts'
import { type Finding, fail, isAtLeast, ok, parseVersion, skipped, warn } from './check-result.ts'
import type { Check, ConfiguredFacts, DoctorFacts } from './open-facts.ts'

const OLDEST_NODE = [20, 19] as const
const VERSION_MS = 10_000
const MAX_BRIDGE_BYTES = 1024 * 1024

/** The program itself, what it starts, and its configuration. */
export const PROGRAM_CHECKS = [
  {
    name: 'Node',
    group: 'program',
    category: 'host-prerequisite',
    needsConfiguration: false,
    run: () => checkNode(),
  },
  {
    name: 'Build',
    group: 'program',
    category: 'host-prerequisite',
    needsConfiguration: false,
    run: checkBuild,
  },
  {
    name: 'Git',
    group: 'program',
    category: 'host-prerequisite',
    needsConfiguration: false,
    run: checkGit,
  },
  {
    name: 'Bridge',
    group: 'program',
    category: 'host-prerequisite',
    needsConfiguration: true,
    run: checkBridge,
  },
  {
    name: 'Bridge template',
    group: 'program',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkTemplate,
  },
  {
    name: 'Harness',
    group: 'program',
    category: 'host-prerequisite',
    needsConfiguration: true,
    run: checkHarness,
  },
  {
    name: 'Configuration',
    group: 'configuration',
    category: 'configuration-runtime',
    needsConfiguration: false,
    run: checkConfiguration,
  },
  {
    name: 'Executor',
    group: 'configuration',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkExecutor,
  },
  {
    name: 'Configuration path',
    group: 'configuration',
    category: 'configuration-runtime',
    needsConfiguration: false,
    run: checkConfigurationPath,
  },
] as const satisfies readonly Check[]

function checkNode(): readonly Finding[] {
  const { node } = process.versions
  const detail = `${node} at ${process.execPath}`
  const version = parseVersion(node)
  if (version !== null && isAtLeast(version, OLDEST_NODE)) return [ok(detail)]
  return [fail(`${detail} is too old`, `Install Node ${OLDEST_NODE.join('.')} or newer.`)]
}

/** Complete, able to call the system – without its native part nothing can be locked – and of today's sources. */
async function checkBuild({
  build,
  environment,
  hermesHome,
}: DoctorFacts): Promise<readonly Finding[]> {
  const names = ['caduceus', 'runner', 'supervisor'] as const
  const missing = names
    .map((name) => bundleOf(build, name))
    .filter((path) => fileStatus(path)?.kind !== 'file')
  if (missing.length > 0) {
    return [fail(`incomplete: ${missing.join(', ')} is missing`, 'Build it anew: caduceus setup')]
  }
  isLocked(process.execPath)
  const detail = `version ${build.version} in ${build.root}`
  if (hermesHome === null) return [ok(detail)]
  const currency = await inspectCurrency(requireHost(environment))
  if (currency.kind === 'not-built') {
    return [fail('the plugin has no built program to start', 'Run: hermes caduceus setup')]
  }
  if (currency.kind === 'current') return [ok(`${detail}, made of the plugin as it is`)]
  const { launched, sources } = currency
  const wanted = sources === '' ? 'the plugin does not tell' : `the plugin is ${sources}`
  return [warn(`build ${launched} is started, but ${wanted}`, 'Run: hermes caduceus setup')]
}

async function checkGit({ cron }: DoctorFacts): Promise<readonly Finding[]> {
  const next = 'Install git 2.32 or newer where a scheduled tick finds it.'
  const program = findProgram('git', cron)
  if (program === null) return [fail('not found in PATH', next)]
  const { stdout } = await runProcess({
    argv: [program, '--version'],
    env: { PATH: cron['PATH'] ?? '' },
    timeoutMs: VERSION_MS,
  })
  const text = stdout.toString().trim()
  const version = parseGitVersion(text)
  if (version === null) return [fail(`${program} does not tell its version`, next)]
  if (!isRecentEnough(version)) return [fail(`${text} at ${program} is too old`, next)]
  return [ok(`${text.replace(/^git version /, '')} at ${program}`)]
}

function checkBridge({ config, cron }: ConfiguredFacts): readonly Finding[] {
  try {
    const [program] = resolveWorkerCommand(config.workerCommand, cron)
    return [ok(program)]
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    if (thrown.code !== 'worker/command-not-executable') return [fail(thrown.message, thrown.next)]
    const [program] = config.workerCommand
    return [fail(thrown.message, `Make it executable: chmod u+x ${quoted(program)}`)]
  }
}

function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

/** Setup puts a changed template beside the user's own bridge, as `….new` (design §4). */
function checkTemplate({ config }: ConfiguredFacts): readonly Finding[] {
  const bridge = bridgeFile(config.workerCommand)
  if (bridge === null) return [skipped('the worker command is no file of its own')]
  const beside = `${bridge}.new`
  if (fileStatus(beside) === null) return [ok('no newer template lies beside the bridge')]
  const next = `Compare, take over what you want, then remove it: diff ${quoted(bridge)} ${quoted(beside)}`
  return [warn(`a newer template lies at ${beside}`, next)]
}

/** The first part of the command that is a file one could read: the bridge, or an argument of its interpreter. */
function bridgeFile(command: readonly string[]): string | null {
  const files = command.filter((part) => part.startsWith('/') && fileStatus(part) !== null)
  return files.at(-1) ?? null
}

/** The line of the reference bridge that names its harness (plugin-assets/worker-bridge.py). */
const HARNESS_LINE = /^[ \t]*command[ \t]*=[ \t]*\[[ \t]*["']([^"'\n]{1,200})["']/m

function checkHarness({ config, cron, hermesHome }: ConfiguredFacts): readonly Finding[] {
  const bridge = bridgeFile(config.workerCommand)
  const real = bridge === null ? null : realPath(bridge)
  const [, harness] = HARNESS_LINE.exec(real === null ? '' : readBridge(real)) ?? []
  if (harness === undefined) return [skipped('the bridge does not say which harness it calls')]
  const found = harness.startsWith('/')
    ? isExecutableFile(harness)
      ? harness
      : null
    : findProgram(harness, cron)
  if (found !== null) return [ok(`${harness} at ${found}`)]
  const whose = hermesHome === null ? 'PATH' : 'the PATH that a cron job gets'
  return [
    fail(
      `${harness}, which the bridge calls, is not in ${whose}`,
      `Install it, or write its absolute path into ${bridge ?? 'the bridge'}.`,
    ),
  ]
}

/** Empty when it cannot be read: a bridge may be any program. */
function readBridge(path: string): string {
  try {
    return readFileBounded(path, MAX_BRIDGE_BYTES)?.toString() ?? ''
  } catch (thrown) {
    if (isFault(thrown)) return ''
    throw thrown
  }
}

function checkConfiguration({ inspection }: DoctorFacts): readonly Finding[] {
  const { warnings } = inspection.kind === 'valid' ? inspection.loaded : inspection
  const odd = warnings.map(({ path, found, wanted, fix }) =>
    warn(`found ${found}; wanted: ${wanted}`, fix, path),
  )
  if (inspection.kind === 'valid') {
    const { path, section } = inspection.loaded.source
    return [ok(section === null ? path : `${path} (section ${section})`), ...odd]
  }
  const { fault, problems } = inspection
  if (problems.length === 0) return [fail(fault.message, fault.next)]
  const wrong = problems.map(({ path, found, wanted, fix }) =>
    fail(`found ${found}; wanted: ${wanted}`, fix, path),
  )
  return [...wrong, ...odd]
}

/** Faults: config/executor-unavailable, as every tick meets it. */
function checkExecutor({ config }: ConfiguredFacts): readonly Finding[] {
  requireExecutor(config)
  return [ok(config.executorMode)]
}

/** A scheduled tick may look elsewhere than this shell does. */
function checkConfigurationPath(probe: DoctorFacts): readonly Finding[] {
  const { cron, environment, hermesHome, inspection } = probe
  const named = environment['CADUCEUS_CONFIG']
  if (hermesHome === null) {
    return [
      named === undefined
        ? ok('found without help of the environment')
        : ok('named by CADUCEUS_CONFIG, which has to be set wherever ticks are started, too'),
    ]
  }
  const own = inspection.kind === 'valid' ? inspection.loaded.source.path : inspection.source?.path
  const seen = inspectProgramConfig(cron)
  const theirs = seen.kind === 'valid' ? seen.loaded.source.path : seen.source?.path
  if (own === theirs && own !== undefined) return [ok(`a cron job reads ${own}, too`)]
  const host = join(hermesHome, 'config.yaml')
  const next =
    named === undefined
      ? `Put the section "caduceus:" into ${host}.`
      : `Unset CADUCEUS_CONFIG and put the section "caduceus:" into ${host}, or set CADUCEUS_CONFIG in ${join(hermesHome, '.env')}.`
  if (theirs !== undefined)
    return [warn(`a cron job reads ${theirs}, this shell ${own ?? 'none'}`, next)]
  const reason = seen.kind === 'valid' ? '' : `: ${describeFault(seen.fault)}`
  return [fail(`a cron job finds no configuration${reason}`, next)]
}
