/** Code points HFS+ ignores in names, and others that are not seen. */
const INVISIBLE = /[\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF]/gu

/**
 * Whether one part of a path is `.git` to some file system: other case, other normal form, invisible
 * characters (HFS+), trailing dots or spaces, streams and short names (NTFS). Such a name in a commit
 * plants a repository on the reader's disk (git's verify_path; R§8.2).
 */
export function isGitDirectoryName(component: string): boolean {
  const folded = component
    .normalize('NFKC')
    .replaceAll(INVISIBLE, '')
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '')
  return folded === '.git' || /^git~[0-9]+$/.test(folded)
}
