import { readdirSync, readlinkSync } from 'node:fs'
import { isFaultOf } from '../core/fault.ts'
import { listDirectory, readFileBounded } from './files.ts'
import { errorCode, ioFault } from './io-fault.ts'
import { nameFolder } from './name-deep-folder.ts'
import type { ProcessEntry, ProcessSource } from './process-entry.ts'

// Facts about processes from proc(5). What stands there is in the hands of processes that may be hostile, huge
// or just ending: no answer about one of them may break a search over all (PROTOCOLS, Ending processes).

/** Arguments and environment together cannot be larger than this on Linux (a quarter of 8 MiB, rounded up). */
const MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
const MAX_STAT_BYTES = 4096
const MAX_CHILDREN_BYTES = 4 * 1024 * 1024
/** Proc(5) adds this to the name of a file that was removed meanwhile. */
const REMOVED = ' (deleted)'

/** What we ourselves may be short of. It says nothing about a process, and must not pass for "no process". */
const OWN_SHORTAGES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM'])

export const procSource: ProcessSource = {
  entry(pid) {
    const text = read(pid, 'stat', MAX_STAT_BYTES)
    return text === null ? null : parseStat(text)
  },

  list() {
    return listDirectory('/proc').flatMap((name) => {
      const entry = /^\d+$/.test(name) ? procSource.entry(Number(name)) : null
      return entry === null ? [] : [entry]
    })
  },

  children(pid) {
    const threads = answerOf(() => listDirectory(`/proc/${pid}/task`)) ?? []
    const lists = threads.map((thread) => read(pid, `task/${thread}/children`, MAX_CHILDREN_BYTES))
    // The kernel was built without these files, or a thread or the whole process has ended.
    if (lists.length === 0 || lists.includes(null)) return null
    return lists.flatMap((list) => list?.match(/\d+/g) ?? []).map(Number)
  },

  bootId() {
    const path = '/proc/sys/kernel/random/boot_id'
    const id = readFileBounded(path, MAX_STAT_BYTES)
    if (id === null) throw ioFault('Reading', path, 'absent')
    return id.toString().trim()
  },

  environment(pid) {
    const text = read(pid, 'environ', MAX_ENVIRONMENT_BYTES)
    if (text === null) return null
    const variables = text.split('\0').filter((variable) => variable.includes('='))
    return Object.fromEntries(variables.map(splitVariable))
  },

  workingDirectory(pid) {
    const name = answerOf(() => nameFolder(`/proc/${pid}/cwd`))
    return name?.endsWith(REMOVED) ? name.slice(0, -REMOVED.length) : name
  },

  openFiles(pid) {
    const folder = `/proc/${pid}/fd`
    const descriptors = answerOf(() => readdirSync(folder)) ?? []
    return descriptors.flatMap((fd) => answerOf(() => readlinkSync(`${folder}/${fd}`)) ?? [])
  },

  commandLine(pid) {
    const text = read(pid, 'cmdline', MAX_ENVIRONMENT_BYTES)
    return (text ?? '').replaceAll('\0', ' ').trim()
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

function read(pid: number, name: string, maxBytes: number): string | null {
  return answerOf(() => readFileBounded(`/proc/${pid}/${name}`, maxBytes))?.toString() ?? null
}

/**
 * A fact about one process; null = it has ended, is not ours to look at, or has made the answer too large or
 * too deep to be given.
 */
function answerOf<T>(ask: () => T): T | null {
  try {
    return ask()
  } catch (error) {
    const code = isFaultOf(error, 'sys/io') ? error.details.code : errorCode(error)
    if (typeof code === 'string' && OWN_SHORTAGES.has(code)) throw error
    return null
  }
}
