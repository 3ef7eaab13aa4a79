import { join } from 'node:path'
import { type IssueKey, issueId, parseIssueKey } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim, Claims, Clock } from '../core/ports.ts'
import { isRunId } from '../core/run-id.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { ensureDirectory, fileStatus, listDirectory, readFileBounded } from '../sys/files.ts'
import { inheritLock, isLocked, type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { layoutOf } from './layout.ts'
import { STATE_VERSION } from './schema-parts.ts'

/**
 * Claims under `claims/` (I4; PROTOCOLS, Locks and hand-over). Only the kernel lock says that a claim is held; the
 * file's text says to people whose it is, and lets a runner check that it was handed the right one. Other files in
 * the folder are ignored. Faults: sys/io, sys/native-unavailable.
 */
export function openClaims({ clock }: Readonly<{ clock: Clock }>, stateDir: string): Claims {
  const layout = layoutOf(stateDir)
  const describe = (key: IssueKey, runId: string): string =>
    `${JSON.stringify({
      format: 'caduceus-claim',
      version: STATE_VERSION,
      key,
      runId,
      pid: process.pid,
      startedAt: toTimestamp(clock.now()),
    })}\n`
  return {
    take: (key, runId) => {
      ensureDirectory(layout.directories.claims)
      const lock = tryLock(layout.claim(key))
      if (lock === null) return null
      try {
        lock.writeNote(describe(key, runId))
      } catch (error) {
        lock.remove()
        throw error
      }
      return claimOf(lock, key, runId)
    },
    inherit: (fd, key, runId) => {
      const path = layout.claim(key)
      const lock = inheritLock(fd, path)
      if (lock === null || !isNoteFor(path, key, runId)) return null
      lock.writeNote(describe(key, runId))
      return claimOf(lock, key, runId)
    },
    isHeld: (key) => isLocked(layout.claim(key)),
    list: () =>
      listDirectory(layout.directories.claims).flatMap((name) => {
        if (!name.endsWith('.claim')) return []
        const path = join(layout.directories.claims, name)
        const status = fileStatus(path)
        const isNote = status?.kind === 'file' && status.size <= LIMITS.claimBytes
        const note = isNote ? readNote(path) : null
        // A note under another key's name is not one that this program wrote.
        return note === null || layout.claim(note.key) !== path ? [] : [note]
      }),
  }
}

function claimOf(lock: KernelLock, key: IssueKey, runId: string): Claim {
  return {
    key,
    runId,
    fd: lock.fd,
    isCurrent: () => lock.isCurrent(),
    close: () => lock.close(),
    release: () => lock.remove(),
  }
}

function isNoteFor(path: string, key: IssueKey, runId: string): boolean {
  const note = readNote(path)
  return note !== null && note.runId === runId && issueId(note.key) === issueId(key)
}

type Note = Readonly<{ key: IssueKey; runId: string }>

/** null = not a note of ours, or one that its writer did not finish. */
function readNote(path: string): Note | null {
  const bytes = readFileBounded(path, LIMITS.claimBytes)
  const note: unknown = parseJson(bytes?.toString('utf8') ?? '')
  if (typeof note !== 'object' || note === null) return null
  const { key, runId }: Partial<Record<string, unknown>> = { ...note }
  if (typeof key !== 'object' || key === null || typeof runId !== 'string') return null
  const { owner, name, number }: Partial<Record<string, unknown>> = { ...key }
  const parsed = parseIssueKey(`${String(owner)}/${String(name)}#${String(number)}`)
  return parsed === null || !isRunId(runId) ? null : { key: parsed, runId }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
