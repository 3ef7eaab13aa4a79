import { isAbsolute, join, resolve } from 'node:path'
import { describeThrown, fault } from '../core/fault.ts'
import { redact } from '../core/redaction.ts'
import { systemClock } from '../sys/clock.ts'
import { ensureDirectory, isDirectory, isExecutableFile } from '../sys/files.ts'
import { findProgram } from '../sys/find-program.ts'
import { type KernelLock, waitForLock } from '../sys/kernel-lock.ts'
import { runProcess } from '../sys/run-process.ts'

// The host's own command line, through which alone its jobs are changed. Its exit code is 0 whatever
// happens and its words are no contract, so nothing here says whether a call succeeded: the caller reads the
// jobs afterwards.

type Environment = Readonly<Record<string, string>>

/** Where the host and the plugin are. */
export type HermesHost = Readonly<{
  hermesHome: string
  pluginRoot: string
  /** The program that `setup` switches; its presence means that the plugin is built. */
  launcher: string
  environment: Environment
}>

const TIMEOUT_MS = 30_000
/** A call that is under way, and some time around it. */
const LOCK_WAIT_MS = TIMEOUT_MS + 10_000
/** What is shown of the host's words. */
const REASON_CHARACTERS = 300

/** The host this process was started for. Faults: host/absent. */
export function requireHost(environment: Environment): HermesHost {
  const home = environment['HERMES_HOME'] ?? ''
  if (!isAbsolute(home)) {
    const reason = home === '' ? 'HERMES_HOME is not set' : 'HERMES_HOME is not an absolute path'
    throw fault('host/absent', { reason })
  }
  const hermesHome = resolve(home)
  const roots = [environment['HERMES_CADUCEUS_ROOT'], environment['CADUCEUS_PLUGIN_ROOT']]
  const named = roots.find((root) => root !== undefined && isAbsolute(root))
  const pluginRoot = resolve(named ?? join(hermesHome, 'plugins', 'caduceus'))
  return { hermesHome, pluginRoot, launcher: join(pluginRoot, 'bin', 'caduceus'), environment }
}

/** The host's program, absolute; null = it is nowhere to be found. */
export function findHermes(environment: Environment): string | null {
  const named = environment['CADUCEUS_HERMES_BIN'] ?? ''
  if (isAbsolute(named) && isExecutableFile(named)) return named
  return findProgram('hermes', environment)
}

/**
 * The lock under which the host's jobs are read and changed. A call of the host holds it as well: a
 * command that was killed in the middle of one is not followed by another before the host has finished.
 * The one that takes it removes it. Faults: state/lock-busy, sys/io, sys/native-unavailable.
 */
export async function lockJobs({ hermesHome }: HermesHost): Promise<KernelLock> {
  const folder = join(hermesHome, 'caduceus')
  if (!isDirectory(folder)) ensureDirectory(folder)
  return waitForLock(systemClock, join(folder, 'cron.lock'), LOCK_WAIT_MS)
}

/**
 * Calls the host with arguments beginning with `cron`, and returns what it said, on one line and
 * redacted; its end, or that it did not end in time, is returned the same way. Faults: host/absent.
 */
export async function callHermes(
  host: HermesHost,
  lock: Pick<KernelLock, 'fd'>,
  args: readonly string[],
  timeoutMs = TIMEOUT_MS,
): Promise<string> {
  const program = findHermes(host.environment)
  if (program === null) {
    throw fault('host/absent', { reason: 'its program "hermes" was not found' })
  }
  try {
    const { code, signal, stdout, stderr } = await runProcess({
      argv: [program, ...args],
      env: environmentOfCall(host),
      timeoutMs,
      extraFds: [lock.fd],
    })
    const said = `${stdout.toString('utf8')} ${stderr.toString('utf8')}`
    const end = code === 0 ? '' : ` (ended with ${code ?? signal})`
    return `${shorten(said)}${end}`.trim() || 'it said nothing'
  } catch (error) {
    return describeThrown(error)
  }
}

/** Without the marks of an agent's session, which would send the job's messages to its chat. */
function environmentOfCall({ environment, hermesHome }: HermesHost): Environment {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith('HERMES_SESSION_'))
  return { ...Object.fromEntries(kept), HERMES_HOME: hermesHome, NO_COLOR: '1' }
}

/** The end of a long text: there a traceback has its cause. */
function shorten(text: string): string {
  const line = redact(text)
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return line.length <= REASON_CHARACTERS ? line : `… ${line.slice(-REASON_CHARACTERS)}`
}
