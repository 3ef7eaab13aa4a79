/** GIT_CONFIG_GLOBAL; everything else we use is older. Ubuntu 22.04 has 2.34. */
const OLDEST = [2, 32] as const

export const OLDEST_GIT = OLDEST.join('.')

/** The version in the output of `git --version`, or null when it is none. */
export function parseGitVersion(output: string): readonly [number, number] | null {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(output) ?? []
  return major === undefined || minor === undefined ? null : [Number(major), Number(minor)]
}

export function isRecentEnough([major, minor]: readonly [number, number]): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}
