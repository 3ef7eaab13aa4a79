import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '../core/fault.ts'
import { emptyWorld, WORLD_FORMAT, type World } from './world.ts'

const MAX_BYTES = 256 * 1024 * 1024

/**
 * What an earlier server left in `<root>/github.json`, or an empty world.
 * Faults: demo/refused when the file is not one of ours.
 */
export function loadWorld(root: string): World {
  const path = fileOf(root)
  if (!existsSync(path)) return emptyWorld()
  if (statSync(path).size > MAX_BYTES) throw unusable(path, 'it is too large')
  const found: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isWorld(found)) throw unusable(path, 'it has another format')
  return found
}

/**
 * Replaces the file in one step, so that a server killed at any moment leaves the old or the new
 * world. Not synced to disk: it has to outlive its process, not the machine.
 */
export function saveWorld(root: string, world: World): void {
  mkdirSync(root, { recursive: true })
  const path = fileOf(root)
  const temporary = `${path}.tmp`
  writeFileSync(temporary, `${JSON.stringify(world)}\n`, { mode: 0o600 })
  renameSync(temporary, path)
}

const fileOf = (root: string): string => join(root, 'github.json')

/** The file is our own and private to its owner, so its format number vouches for the rest. */
function isWorld(value: unknown): value is World {
  return (
    typeof value === 'object' &&
    value !== null &&
    'format' in value &&
    value.format === WORLD_FORMAT &&
    'repositories' in value
  )
}

const unusable = (path: string, reason: string) =>
  fault('demo/refused', { reason: `${path} cannot be used: ${reason}` })
