import { randomBytes } from 'node:crypto'
import { chmod, lstat, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from './io-fault.ts'

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
    for (const name of await orGone(foldersIn(folder), [])) {
      const child = join(folder, name)
      const isTooLong = Buffer.byteLength(child) > MAX_PATH_BYTES
      waiting.push(isTooLong ? await orGone(moveUp(child, root), child) : child)
    }
  }
}

/** Names of the folders in one, which is made writable; none in what is no folder. */
async function foldersIn(path: string): Promise<readonly string[]> {
  if (!(await makeWritable(path))) return []
  const entries = await readdir(path, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** A removal that has failed may still be at work elsewhere in the tree; what it takes away is done. */
async function orGone<T>(act: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await act
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return otherwise
    throw error
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
