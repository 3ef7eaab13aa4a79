import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);"

/**
 * Makes a program of a TypeScript fixture, for tests that need real processes. It lies inside the
 * repository, where native packages are found, unless another folder is given.
 * @param name a file of test/fixtures, or another one by its path from there; without `.ts`
 */
export function bundleFixture(
  name: string,
  folder = join(ROOT, '.tmp'),
): { path: string; remove: () => void } {
  mkdirSync(folder, { recursive: true })
  const made = mkdtempSync(join(folder, 'fixture-'))
  // Tests also run it as another user.
  chmodSync(made, 0o755)
  const path = join(made, `${basename(name)}.mjs`)
  execFileSync(join(ROOT, 'node_modules/.bin/esbuild'), [
    join(ROOT, 'test/fixtures', `${name}.ts`),
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--log-level=error',
    `--banner:js=${BANNER}`,
    `--outfile=${path}`,
  ])
  return { path, remove: () => rmSync(made, { recursive: true, force: true }) }
}
