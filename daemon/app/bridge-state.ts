import { join } from 'node:path'

const NAME = 'worker-bridge.py'

/** The files that belong to a worker bridge. */
export type BridgePaths = Readonly<{
  template: string
  bridge: string
  /** Where a newer template is written, for the user to compare. */
  beside: string
  /** Holds the digest of the template that was written last, as the bridge or beside it. */
  record: string
}>

/**
 * @param root of the build
 * @param folder of the user's bridge
 */
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
 * `seeded`: there was no bridge. `same`: the bridge equals the template. `own`: the user changed the bridge and
 * knows this template. `offered`: a new template is written beside the bridge now. `waiting`: it still lies
 * there.
 */
export type BridgeState = 'seeded' | 'same' | 'own' | 'offered' | 'waiting'

type Facts = Readonly<{
  /** Digests; null = there is no such file. */
  template: string
  bridge: string | null
  recorded: string | null
  isBeside: boolean
}>

/** The state that follows from what is on the disk. */
export function bridgeState({ template, bridge, recorded, isBeside }: Facts): BridgeState {
  if (bridge === null) return 'seeded'
  if (bridge === template) return 'same'
  if (recorded !== template) return 'offered'
  return isBeside ? 'waiting' : 'own'
}

/** The state in words, and what the user has to do; `next` null = nothing. */
export function describeBridge(
  { bridge, beside }: BridgePaths,
  state: BridgeState,
  dryRun: boolean,
): Readonly<{ detail: string; next: string | null }> {
  const would = dryRun ? 'would be ' : ''
  const next = `Compare, take over what you want, then remove it: diff -u ${bridge} ${beside}`
  const descriptions = {
    seeded: { detail: `${bridge}, ${would}made from the template`, next: null },
    same: { detail: `${bridge}, as the template`, next: null },
    own: { detail: `${bridge}, left as it is`, next: null },
    offered: { detail: `the template has changed; it ${would || 'was '}laid beside yours`, next },
    waiting: { detail: 'a changed template still lies beside yours', next },
  } as const satisfies Record<BridgeState, object>
  return descriptions[state]
}
