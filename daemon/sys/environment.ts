// The only reader of the process's own environment and platform.

/** A copy of this process's environment, without undefined values. */
export function environment(): Readonly<Record<string, string>> {
  const present: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined) present[name] = value
  }
  return present
}

/** The home directory the environment names (HOME), or null when it is unset or not absolute. */
export function homeDirectory(env: Readonly<Record<string, string>>): string | null {
  const home = env['HOME']
  return home?.startsWith('/') ? home : null
}

/** The operating system, as Node names it: 'linux', 'darwin', … */
export function platformName(): string {
  return process.platform
}
