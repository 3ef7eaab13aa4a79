import { requireObjectId } from './commit-tree.ts'
import type { RunGit } from './run-git.ts'

/**
 * The difference of two trees as people read it: a summary per file, then the patch. Read from
 * objects only; no driver of the repository runs. What exceeds `maxBytes` is dropped, and said so.
 * Faults: git/failed.
 */
export async function describeDifference(
  runGit: RunGit,
  storePath: string,
  fromTree: string,
  toTree: string,
  maxBytes: number,
): Promise<string> {
  for (const oid of [fromTree, toTree]) requireObjectId('diff-tree', oid)
  const { stdout } = await runGit({
    profile: 'tree',
    operation: 'diff-tree',
    args: [
      'diff-tree',
      '-r',
      '--stat',
      '--patch',
      '--find-renames',
      '--no-ext-diff',
      '--no-textconv',
      '--no-color',
      fromTree,
      toTree,
    ],
    gitDirectory: storePath,
    maxOutputBytes: maxBytes + 1,
    cut: true,
  })
  if (stdout.length <= maxBytes) return stdout.toString()
  const note = `\n[cut at ${maxBytes} bytes]\n`
  return cutText(stdout, maxBytes - Buffer.byteLength(note)) + note
}

/** At most so many bytes, never half a character. */
function cutText(bytes: Buffer, maxBytes: number): string {
  let end = Math.max(0, maxBytes)
  // 10xxxxxx continues a character (RFC 3629).
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
