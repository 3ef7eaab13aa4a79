// Bundles the program into dist/: one file per process, so that each starts with as little as it needs.
//   caduceus.mjs    the launcher and router (checks node, picks the process)
//   cli.mjs         commands        runner.mjs   one run        supervisor.mjs   the worker's keeper
//   github.mjs      the embedded GitHub of the demo and the tests
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const out = process.argv[2] ?? join(root, 'dist')

const ENTRIES = {
  caduceus: 'daemon/main.ts',
  cli: 'daemon/cli.ts',
  runner: 'daemon/runner.ts',
  supervisor: 'daemon/supervise.ts',
  github: 'daemon/serve-github.ts',
}

rmSync(out, { recursive: true, force: true })
await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  chunkNames: 'parts/[name]-[hash]',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  external: ['koffi'],
  define: { CADUCEUS_VERSION: JSON.stringify(version) },
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
  },
  logLevel: 'warning',
})
writeFileSync(join(out, 'package.json'), `${JSON.stringify({ type: 'module' })}\n`)
