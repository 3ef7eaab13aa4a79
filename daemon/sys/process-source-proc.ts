// Facts about processes from proc(5).

import { readlinkSync } from 'node:fs'
import { isFault } from '../core/fault.ts'
import { listDirectory, readFileBounded } from './files.ts'
import { errorCode, ioFault } from './io-fault.ts'
import type { ProcessEntry, ProcessSource } from './process-entry.ts'

/** Arguments and environment together cannot be larger than this on Linux (a quarter of 8 MiB, rounded up). */
const MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
const MAX_STAT_BYTES = 4096
const MAX_CHILDREN_BYTES = 4 * 1024 * 1024

/** Gone, going, or not ours to look at; anything else is a fault and must not pass for "no process". */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EACCES', 'EPERM'])

export const procSource: ProcessSource = {
  entry(pid) {
    const text = read(`/proc/${pid}/stat`, MAX_STAT_BYTES)
    return text === null ? null : parseStat(text)
  },

  list() {
    return listDirectory('/proc').flatMap((name) => {
      const entry = /^\d+$/.test(name) ? procSource.entry(Number(name)) : null
      return entry === null ? [] : [entry]
    })
  },

  children(pid) {
    const threads = absentAsNull(() => listDirectory(`/proc/${pid}/task`)) ?? []
    const lists = threads.map((thread) =>
      read(`/proc/${pid}/task/${thread}/children`, MAX_CHILDREN_BYTES),
    )
    // All absent: the kernel was built without these files, or the process has ended.
    if (lists.every((list) => list === null)) return null
    return lists.flatMap((list) => list?.match(/\d+/g) ?? []).map(Number)
  },

  bootId() {
    const id = read('/proc/sys/kernel/random/boot_id', MAX_STAT_BYTES)
    if (id === null) throw ioFault('Reading', '/proc/sys/kernel/random/boot_id', 'absent')
    return id.trim()
  },

  environment(pid) {
    const text = read(`/proc/${pid}/environ`, MAX_ENVIRONMENT_BYTES)
    if (text === null) return null
    const variables = text.split('\0').filter((variable) => variable.includes('='))
    return Object.fromEntries(variables.map(splitVariable))
  },

  workingDirectory(pid) {
    return absentAsNull(() => readlinkSync(`/proc/${pid}/cwd`))
  },
}

/** proc(5): the name is in parentheses and may itself hold spaces and parentheses, so count from the last one. */
function parseStat(text: string): ProcessEntry | null {
  const pid = Number.parseInt(text, 10)
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, ppid, , session] = fields
  const threads = Number(fields[17])
  const startTicks = Number(fields[19])
  if (!Number.isSafeInteger(pid) || !Number.isSafeInteger(startTicks)) return null
  // The first thread may end before the others; then the process is shown as a zombie but still acts.
  const isZombie = (state === 'Z' || state === 'X') && threads <= 1
  return { pid, ppid: Number(ppid), session: Number(session), startTicks, isZombie }
}

function splitVariable(variable: string): [string, string] {
  const end = variable.indexOf('=')
  return [variable.slice(0, end), variable.slice(end + 1)]
}

function read(path: string, maxBytes: number): string | null {
  return absentAsNull(() => readFileBounded(path, maxBytes))?.toString() ?? null
}

function absentAsNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    const code = isFault(error) ? error.details['code'] : errorCode(error)
    if (typeof code === 'string' && NOT_THERE.has(code)) return null
    throw error
  }
}
