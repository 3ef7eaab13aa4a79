import { isAbsolute, join } from 'node:path'
import { isExecutableFile } from './files.ts'

/** The absolute path of a program: itself, or found in the absolute folders of PATH; null = none. */
export function findProgram(name: string, env: Readonly<Record<string, string>>): string | null {
  if (name.includes('/')) return isAbsolute(name) && isExecutableFile(name) ? name : null
  const folders = (env['PATH'] ?? '').split(':').filter(isAbsolute)
  return folders.map((folder) => join(folder, name)).find(isExecutableFile) ?? null
}
