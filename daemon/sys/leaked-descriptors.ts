import { closeSync, readdirSync, readFileSync } from 'node:fs'

// A descriptor that whoever started us left open would reach every process we start, detached ones
// included, and keep somebody's pipe open as long as they live (P§1). Node itself makes those it finds
// at the bottom of the table uninheritable and stops at a gap; what lies higher is closed here.

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

function orNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch {
    return null
  }
}
