import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fault } from '../core/fault.ts'
import { ensureDirectory, fileStatus, readFileBounded, writeFileAtomic } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import { removeUnfinished } from '../sys/replace-file.ts'

// The bridge belongs to the user from the moment it is there. A template that has changed since is laid
// beside it once; whoever has taken over what he wants removes it, and is not asked again.

const MODE = 0o755
const MAX_BYTES = 16 * 1024 * 1024
const NAME = 'worker-bridge.py'

/** The paths a bridge has to do with. */
export type BridgePaths = Readonly<{
  template: string
  bridge: string
  /** A newer template, to be compared. */
  beside: string
  /** Names the template that was last seeded or laid beside, by its digest. */
  record: string
}>

/** @param root of the build; @param folder where the user's bridge lies */
export function bridgePaths(root: string, folder: string): BridgePaths {
  const bridge = join(folder, NAME)
  return {
    template: join(root, 'plugin-assets', NAME),
    bridge,
    beside: `${bridge}.new`,
    record: join(folder, '.worker-bridge.template'),
  }
}

/**
 * seeded: there was none. same: it is the template. own: the user's, and he has seen this template.
 * offered: a template he has not seen lies beside it now. waiting: it still does.
 */
export type BridgeState = 'seeded' | 'same' | 'own' | 'offered' | 'waiting'

type Facts = Readonly<{
  /** Digests; null = there is no such file. */
  template: string
  bridge: string | null
  recorded: string | null
  isBeside: boolean
}>

/** Pure. */
export function bridgeState({ template, bridge, recorded, isBeside }: Facts): BridgeState {
  if (bridge === null) return 'seeded'
  if (bridge === template) return 'same'
  if (recorded !== template) return 'offered'
  return isBeside ? 'waiting' : 'own'
}

/**
 * Seeds the bridge, or lays a changed template beside it. The file that is told of comes before the record,
 * so that a call that dies in between is repeated. Faults: sys/io, setup/template-missing, setup/bridge-broken.
 */
export function seedBridge(paths: BridgePaths, dryRun: boolean): BridgeState {
  const template = readFileBounded(paths.template, MAX_BYTES)
  if (template === null) throw fault('setup/template-missing', { path: paths.template })
  const own = readOwn(paths.bridge)
  const digest = digestOf(template)
  const recorded = readFileBounded(paths.record, MAX_BYTES)?.toString('utf8').trim() ?? null
  const state = bridgeState({
    template: digest,
    bridge: own === null ? null : digestOf(own),
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

/** What is told of it. */
export function describeBridge(
  { bridge, beside }: BridgePaths,
  state: BridgeState,
  dryRun: boolean,
): Readonly<{ detail: string; next: string | null }> {
  const would = dryRun ? 'would be ' : ''
  const next = `Compare, take over what you want, then remove it: diff -u ${bridge} ${beside}`
  const told = {
    seeded: { detail: `${bridge}, ${would}made from the template`, next: null },
    same: { detail: `${bridge}, as the template`, next: null },
    own: { detail: `${bridge}, left as it is`, next: null },
    offered: { detail: `the template has changed; it ${would || 'was '}laid beside yours`, next },
    waiting: { detail: 'a changed template still lies beside yours', next },
  } as const satisfies Record<BridgeState, object>
  return told[state]
}

/** People link their bridge into place. */
function readOwn(path: string): Buffer | null {
  const real = realPath(path)
  if (real !== null) return readFileBounded(real, MAX_BYTES)
  if (fileStatus(path) === null) return null
  throw fault('setup/bridge-broken', { path })
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
