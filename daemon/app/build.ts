import { dirname, join } from 'node:path'

/** The installed program: the folder of its bundles and what lies beside it. */
export type Build = Readonly<{
  /** Folder of the bundles. */
  dist: string
  root: string
  templates: string
  version: string
}>

// Filled in by scripts/build.mjs; a source run has none.
declare const CADUCEUS_VERSION: string | undefined

/** The build this process runs from. All bundles and their parts lie in one folder. */
export function buildOfThisProgram(): Build {
  const dist = import.meta.dirname
  const root = dirname(dist)
  const version = typeof CADUCEUS_VERSION === 'string' ? CADUCEUS_VERSION : '0.0.0'
  return { dist, root, templates: join(root, 'templates'), version }
}

/** The bundle of one of the program's processes. */
export function bundleOf(
  build: Pick<Build, 'dist'>,
  name: 'caduceus' | 'runner' | 'supervisor' | 'embedded-github',
): string {
  // scripts/build.mjs says why the supervisor is no module.
  return join(build.dist, `${name}.${name === 'supervisor' ? 'cjs' : 'mjs'}`)
}
