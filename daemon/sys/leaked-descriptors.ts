import { closeSync, readdirSync, readFileSync } from 'node:fs'

// A descriptor that our caller left open would reach every process we start, detached ones included, and keep
// the caller's pipe open as long as they live (PROTOCOLS, Locks and hand-over). Node itself makes those at the
// bottom of the table uninheritable and stops at a gap; the ones above are closed here.

/** Bit of `flags` in proc(5) for a descriptor that no started program inherits (Linux, octal). */
const CLOSE_ON_EXEC = 0o2000000

const FIRST_OF_OTHERS = 3

/**
 * Closes descriptors from 3 up that a started program would inherit; Node opens none such itself. For
 * the start of a process that was not handed any on purpose. Does nothing where there is no proc(5).
 */
export function closeLeakedDescriptors(): void {
  const folder = `/proc/${process.pid}/fdinfo`
  for (const fd of orNull(() => readdirSync(folder))?.map(Number) ?? []) {
    if (fd < FIRST_OF_OTHERS) continue
    // One is of the listing itself and gone by now.
    const text = orNull(() => readFileSync(`${folder}/${fd}`, 'utf8'))
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(text ?? '') ?? []
    if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) closeSync(fd)
  }
}

function orNull<T>(ask: () => T): T | null {
  try {
    return ask()
  } catch {
    return null
  }
}
