import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { fault } from '../core/fault.ts'
import { ensureDirectory, fileStatus, readFileBounded, writeFileAtomic } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import { removeUnfinished } from '../sys/replace-file.ts'
import { type BridgePaths, type BridgeState, bridgeState } from './bridge-state.ts'

/** Executable for everybody, writable for its owner. */
const MODE = 0o755
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Makes the worker bridge from the template. A bridge that exists belongs to the user and is never changed;
 * a template that has changed since is written beside it, once. The record is written last, so that a call
 * that died before it is repeated.
 * Faults: sys/io, setup/template-missing, setup/bridge-broken.
 */
export function seedBridge(paths: BridgePaths, dryRun: boolean): BridgeState {
  const template = readFileBounded(paths.template, MAX_BYTES)
  if (template === null) throw fault('setup/template-missing', { path: paths.template })
  const existing = readExisting(paths.bridge)
  const digest = digestOf(template)
  const recorded = readFileBounded(paths.record, MAX_BYTES)?.toString('utf8').trim() ?? null
  const state = bridgeState({
    template: digest,
    bridge: existing === null ? null : digestOf(existing),
    recorded,
    isBeside: fileStatus(paths.beside) !== null,
  })
  if (dryRun) return state
  for (const path of [paths.bridge, paths.beside, paths.record]) removeUnfinished(path)
  if (state === 'seeded') {
    ensureDirectory(dirname(paths.bridge))
    writeFileAtomic(paths.bridge, template, MODE)
  }
  if (state === 'offered') writeFileAtomic(paths.beside, template, MODE)
  if (recorded !== digest) writeFileAtomic(paths.record, `${digest}\n`)
  return state
}

/** Follows a symbolic link, because users may keep their bridge elsewhere. */
function readExisting(path: string): Buffer | null {
  const real = realPath(path)
  if (real !== null) return readFileBounded(real, MAX_BYTES)
  if (fileStatus(path) === null) return null
  throw fault('setup/bridge-broken', { path })
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
