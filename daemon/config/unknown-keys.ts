import leven from 'leven'
import { formatLocation } from '../core/schema-error.ts'
import type { Problem } from './problem.ts'

/** Keys of the original that mean nothing here; they do no harm in a file. */
export const DROPPED_KEYS: readonly string[] = [
  'stale_run_hours',
  'scheduler_lease_ttl_seconds',
  'scheduler_transaction_budget_ms',
  'worker_lease_ttl_seconds',
  'backpressure_budget_ms',
  'reduced_containment_acknowledged',
]

/** Flat keys that once configured containers; ignoring them would drop a protection silently. */
export const REMOVED_KEYS: readonly string[] = [
  'oci_cli',
  'oci_image_digest',
  'oci_pull_policy',
  'oci_stop_timeout_seconds',
  'oci_kill_timeout_seconds',
  'oci_reconcile_timeout_seconds',
  'network_profiles',
  'secret_grants',
  'upgrade_choice',
]

/** What an unknown key amounts to. */
type UnknownKey = Readonly<{ severity: 'error' | 'warning'; problem: Problem }>

/**
 * An unknown key of the top level is ignored with a warning; inside `sandbox`, or when it is a removed flat key,
 * it is an error.
 * @param parent where the key stands; empty for the top level
 * @param known the keys there are at that location
 */
export function classifyUnknownKey(
  parent: readonly string[],
  key: string,
  known: readonly string[],
): UnknownKey {
  const path = formatLocation([...parent, key])
  if (parent.length > 0) return { severity: 'error', problem: unknown(path, key, known, '') }
  if (isRemoved(key)) return { severity: 'error', problem: removed(path) }
  if (isDropped(key)) return { severity: 'warning', problem: dropped(path) }
  return { severity: 'warning', problem: unknown(path, key, known, ' It is ignored.') }
}

/** The known name that a misspelt one is most like, or null when none is alike. */
function nearestName(name: string, known: readonly string[]): string | null {
  const spelling = snakeCase(name)
  const limit = Math.max(2, Math.floor(spelling.length * 0.4))
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: leven(spelling, candidate) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)
  return nearest?.candidate ?? null
}

const isRemoved = (key: string): boolean => REMOVED_KEYS.includes(key) || key.startsWith('oci_')
const isDropped = (key: string): boolean =>
  DROPPED_KEYS.includes(key) || key.startsWith('scheduler_')

function unknown(
  path: string,
  key: string,
  known: readonly string[],
  consequence: string,
): Problem {
  const nearest = nearestName(key, known)
  return {
    path,
    found: 'an unknown key',
    wanted: nearest ?? 'a key that docs/configuration.md lists',
    fix: `${nearest === null ? 'Remove it' : `Rename it to ${nearest}, or remove it`}.${consequence}`,
  }
}

function removed(path: string): Problem {
  return {
    path,
    found: 'a key that was removed',
    wanted: 'the settings under sandbox',
    fix: 'Remove it; what it set is configured under sandbox now.',
  }
}

function dropped(path: string): Problem {
  return {
    path,
    found: 'a key that was dropped',
    wanted: 'no such key',
    fix: 'Remove it; it has no effect any more.',
  }
}

function snakeCase(name: string): string {
  return name
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}
