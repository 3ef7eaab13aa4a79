import { randomBytes } from 'node:crypto'
import { chmod, lstat, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'

/** A nest whose paths get longer than this is moved up: one call takes at most 4,096 bytes. */
const MAX_PATH_BYTES = 2048

/**
 * Makes everything below a folder removable: folders without write permission get it, and nests
 * deeper than a path can name are moved to the top. Links are never followed. What Node throws
 * passes through.
 */
export async function openUpFolders(root: string): Promise<void> {
  const waiting = [root]
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (!(await makeWritable(folder))) continue
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const child = join(folder, entry.name)
      waiting.push(Buffer.byteLength(child) > MAX_PATH_BYTES ? await moveUp(child, root) : child)
    }
  }
}

/**
 * Makes a folder one that can be changed and moved; what Node throws passes through.
 * @returns false when the path is no folder; a link to one is none
 */
export async function makeWritable(path: string): Promise<boolean> {
  const status = await lstat(path)
  if (!status.isDirectory()) return false
  if ((status.mode & 0o700) !== 0o700) await chmod(path, (status.mode & 0o777) | 0o700)
  return true
}

async function moveUp(path: string, root: string): Promise<string> {
  // A folder must be writable itself to get another parent.
  await makeWritable(path)
  const target = join(root, `.moved-${randomBytes(8).toString('hex')}`)
  await rename(path, target)
  return target
}
