import type { RepositoryName } from './issue-key.ts'

/** Kinds of garbage under the state directory. */
export const GARBAGE_KINDS = {
  temporary: { meaning: 'a file in the making that its writer did not finish' },
  tree: { meaning: 'the checkout of a run' },
  run: { meaning: 'the files of a run: journal, transcript, result, report' },
  archived: { meaning: 'the tree of a failed attempt, kept aside' },
  folder: { meaning: 'an empty folder in which trees lay' },
} as const satisfies Record<string, { meaning: string }>

export type GarbageKind = keyof typeof GARBAGE_KINDS

/** One thing that lies there, as its folder shows it. */
export type GarbageItem = Readonly<{
  kind: GarbageKind
  path: string
  runId: string | null
  repository: RepositoryName | null
  /** false = a symbolic link or something else lies where a folder belongs. */
  isPlain: boolean
  /** Newest change, milliseconds since the epoch. */
  changedAt: number
  /** Of a run: what there is of it, best first. */
  holds: 'journal' | 'files' | 'nothing'
}>

/** Finds and removes garbage. Nothing outside the state directory, no link is followed. */
export type Garbage = {
  /** Oldest run first. Faults: sys/io. */
  list(kind: GarbageKind): readonly GarbageItem[]
  /** Whether a supervisor or a process of a worker still holds a lock of the run. Faults: sys/io. */
  isInUse(runId: string): boolean
  /** Anything but a tree, which goes by way of git. Repeatable. Faults: sys/io. */
  remove(item: GarbageItem): Promise<void>
}
