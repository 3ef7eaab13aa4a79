import { fault } from '../core/fault.ts'
import type { Intent, Journal, Publication, PublishAction } from '../core/journal.ts'
import type { Git, GitHub } from '../core/ports.ts'

/** A run at the point where an action is looked for or performed. */
export type ActionInput = Readonly<{
  git: Git
  github: GitHub
  journal: Journal
  publication: Publication
  base: NonNullable<Journal['base']>
  /** What an earlier try of this action left open; null = none did. */
  intent: Intent | null
}>

/** The marker of an action that must have been recorded. Faults: internal/unexpected. */
export function markerOf(journal: Journal, action: PublishAction): string {
  const marker = journal.markers[action]
  if (marker !== undefined) return marker
  throw fault('internal/unexpected', { reason: `${action} was not recorded` })
}

/** Where the run's commit is, whatever becomes of its branch. */
export function retainedCommit({ journal, base }: ActionInput): string {
  return `${markerOf(journal, 'committed')} in ${base.storePath}`
}
