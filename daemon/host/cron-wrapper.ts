import { isAbsolute, join } from 'node:path'
import { SCRIPT_NAME } from '../core/cron-job.ts'
import { fault } from '../core/fault.ts'
import {
  ensureDirectory,
  fileStatus,
  isDirectory,
  isExecutableFile,
  readFileBounded,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import type { HermesHost } from './hermes-cron.ts'
import { SCHEDULED_VARIABLE } from './host-environment.ts'

// The script that the host's scheduler runs. The host gives it to bash whatever its first line and permissions
// say, refuses scripts that speak of its gateway's end, and waits as long as any process holds the script's
// output.

const MARKER = '# managed-by: caduceus'
const MODE = 0o755
const MAX_BYTES = 64 * 1024

/** What a wrapper is made of; all paths absolute. */
export type WrapperParts = Readonly<{
  hermesHome: string
  pluginRoot: string
  launcher: string
  node: string
}>

/**
 * absent: no file. foreign: not ours, never touched. outdated: ours, yet not as it would be made
 * now. node-gone: ours and as it should be, but the node it names is gone. current: all is well.
 */
export type WrapperState = 'absent' | 'foreign' | 'outdated' | 'node-gone' | 'current'

export type WrapperInspection = Readonly<{
  path: string
  state: WrapperState
  /** The node that the file names; null when it names none. */
  node: string | null
}>

/** The parts of this process's installation. A path the operator named survives upgrades of node better. */
export function wrapperPartsOf(host: HermesHost, execPath: string): WrapperParts {
  const { hermesHome, pluginRoot, launcher, environment } = host
  const named = environment['CADUCEUS_NODE'] ?? ''
  const node = isAbsolute(named) && isExecutableFile(named) ? named : execPath
  return { hermesHome, pluginRoot, launcher, node }
}

export function wrapperPath(hermesHome: string): string {
  return join(hermesHome, 'scripts', SCRIPT_NAME)
}

/**
 * The text of the wrapper. The braces make bash read all of it before the first line is executed, so
 * that descriptors can be closed whichever one it reads from. Faults: cron/unquotable-path.
 */
export function wrapperText(parts: WrapperParts): string {
  const launcher = quote(parts.launcher)
  return `#!/usr/bin/env bash
${MARKER} - made by setup and cron-install, changes are lost
{
  set -euo pipefail
  export HERMES_HOME=${quote(parts.hermesHome)}
  export CADUCEUS_PLUGIN_ROOT=${quote(parts.pluginRoot)}
  export ${SCHEDULED_VARIABLE}=1
  export CADUCEUS_NODE=${quote(parts.node)}
  if [ ! -x "$CADUCEUS_NODE" ]; then
    if ! CADUCEUS_NODE=$(command -v node); then
      printf '%s\\n' 'caduceus: node was moved and is not in PATH; run: hermes caduceus setup' >&2
      exit 127
    fi
  fi
  if [ ! -x ${launcher} ]; then
    printf '%s\\n' 'caduceus: the plugin has no built program; run: hermes caduceus setup' >&2
    exit 127
  fi
  for descriptor in /dev/fd/*; do
    descriptor=\${descriptor##*/}
    case $descriptor in
      0 | 1 | 2 | *[!0-9]*) ;;
      *) eval "exec $descriptor>&-" ;;
    esac
  done
  exec ${launcher} run "$@" </dev/null
}
`
}

/** What lies at the wrapper's path. Faults: sys/io, cron/unquotable-path. */
export function inspectWrapper(parts: WrapperParts): WrapperInspection {
  const path = wrapperPath(parts.hermesHome)
  const status = fileStatus(path)
  if (status === null) return { path, state: 'absent', node: null }
  const text = status.kind === 'file' ? readText(path, status.size) : null
  if (text === null || !isOurs(text)) return { path, state: 'foreign', node: null }
  const node = nodeNamedBy(text)
  if (node === null || status.mode !== MODE || text !== wrapperText({ ...parts, node })) {
    return { path, state: 'outdated', node }
  }
  return { path, state: isExecutableFile(node) ? 'current' : 'node-gone', node }
}

/**
 * Makes the wrapper, or replaces it by one with the node of now; true = something was written.
 * Faults: cron/foreign-wrapper, cron/unquotable-path, sys/io.
 */
export function writeWrapper(parts: WrapperParts): boolean {
  const text = wrapperText(parts)
  const { path, state, node } = requireOurs(inspectWrapper(parts))
  if (state === 'current' && node === parts.node) return false
  const folder = join(parts.hermesHome, 'scripts')
  // People link this folder into place; the host follows it as well.
  if (!isDirectory(folder)) ensureDirectory(folder)
  writeFileAtomic(path, text, MODE)
  return true
}

/**
 * The same for a wrapper that exists: one that was never made, or was removed, is not made by this.
 * For `setup` and `doctor --fix`; a foreign file is not touched. Faults: cron/unquotable-path, sys/io.
 */
export function refreshWrapper(parts: WrapperParts): WrapperInspection & { written: boolean } {
  const found = inspectWrapper(parts)
  const isOurOwn = found.state !== 'absent' && found.state !== 'foreign'
  const written = isOurOwn && writeWrapper(parts)
  return { ...(written ? inspectWrapper(parts) : found), written }
}

/** Removes the wrapper when it is ours; true = it was there. Faults: sys/io. */
export function removeWrapper(parts: WrapperParts): boolean {
  const { path, state } = inspectWrapper(parts)
  if (state === 'absent' || state === 'foreign') return false
  removeFile(path)
  return true
}

/** Faults: cron/foreign-wrapper. */
export function requireOurs(found: WrapperInspection): WrapperInspection {
  if (found.state === 'foreign') throw fault('cron/foreign-wrapper', { path: found.path })
  return found
}

function readText(path: string, size: number): string | null {
  return size > MAX_BYTES ? null : (readFileBounded(path, MAX_BYTES)?.toString('utf8') ?? null)
}

/** The original implementation marked its script with nothing, but its shape is its own. */
const ORIGINAL =
  /^#!\/usr\/bin\/env bash\nset -euo pipefail\nexec \S.*\/bin\/caduceus'? run "\$@"\n?$/

function isOurs(text: string): boolean {
  const isMarked = text.split('\n', 5).some((line) => line.startsWith(MARKER))
  return isMarked || ORIGINAL.test(text)
}

function nodeNamedBy(text: string): string | null {
  const [, quoted] = /^ {2}export CADUCEUS_NODE=('.*')$/m.exec(text) ?? []
  return quoted === undefined ? null : quoted.slice(1, -1).replaceAll(`'\\''`, `'`)
}

/** One word for the shell. Faults: cron/unquotable-path for line breaks and the like. */
function quote(path: string): string {
  if (/\p{Cc}/u.test(path)) {
    throw fault('cron/unquotable-path', { path: path.replaceAll(/\p{Cc}/gu, '?') })
  }
  return `'${path.replaceAll(`'`, `'\\''`)}'`
}
