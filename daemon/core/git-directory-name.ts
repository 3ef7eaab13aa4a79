/** Code points that HFS+ ignores in names, and others that are invisible. */
const INVISIBLE = /[\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF]/gu

/**
 * Whether a file system may take one part of a path for `.git`: other case, other normal form, invisible
 * characters (HFS+), trailing dots or spaces, streams and short names (NTFS). Such a name in a commit would
 * create a repository in the reader's checkout, which git refuses as well (`verify_path` in git's source).
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
