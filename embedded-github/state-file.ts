// How the state survives its process: `<root>/github.json`.

import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '../daemon/core/fault.ts'
import { emptyState, type GitHubState, STATE_FORMAT } from './state.ts'

const MAX_BYTES = 256 * 1024 * 1024

/**
 * The state of an earlier server, from `<root>/github.json`, or an empty state.
 * Faults: demo/refused when the file is not one of ours.
 */
export function loadState(root: string): GitHubState {
  const path = fileOf(root)
  if (!existsSync(path)) return emptyState()
  if (statSync(path).size > MAX_BYTES) throw unusable(path, 'it is too large')
  const found: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isState(found)) throw unusable(path, 'it has another format')
  return found
}

/**
 * Replaces the file in one step, so that a server killed at any moment retains the old or the new
 * state. Not synced to disk: it has to outlive its process, not the machine.
 */
export function saveState(root: string, state: GitHubState): void {
  mkdirSync(root, { recursive: true })
  const path = fileOf(root)
  const temporary = `${path}.tmp`
  writeFileSync(temporary, `${JSON.stringify(state)}\n`, { mode: 0o600 })
  renameSync(temporary, path)
}

const fileOf = (root: string): string => join(root, 'github.json')

/** The file is our own and private to its owner, so its format number vouches for the rest. */
function isState(value: unknown): value is GitHubState {
  return (
    typeof value === 'object' &&
    value !== null &&
    'format' in value &&
    value.format === STATE_FORMAT &&
    'repositories' in value
  )
}

const unusable = (path: string, reason: string) =>
  fault('demo/refused', { reason: `${path} cannot be used: ${reason}` })
