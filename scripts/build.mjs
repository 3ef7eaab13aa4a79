// Bundles the program into dist/: one file per process, so that each starts with as little as it needs.
//   caduceus.mjs    the launcher and router (checks node, picks the process)
//   cli.mjs         commands        runner.mjs   one run        supervisor.mjs   the worker's keeper
//   github.mjs      the embedded GitHub of the demo and the tests
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core'
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
  // In one folder with the entries: the program finds its own files from wherever a function lands.
  chunkNames: 'part-[hash]',
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
// oclif finds the commands in this package; the manifest spares loading them to know them.
const oclifPackage = {
  name: 'caduceus',
  version,
  type: 'module',
  oclif: {
    bin: 'caduceus',
    commands: { strategy: 'explicit', target: './cli.mjs', identifier: 'COMMANDS' },
    topicSeparator: ' ',
    topics: { config: { description: 'Look at the configuration.' } },
  },
}
const writeJson = (name, content) =>
  writeFileSync(join(out, name), `${JSON.stringify(content, null, 2)}\n`)
writeJson('package.json', oclifPackage)

const plugin = new Plugin({ root: out, ignoreManifest: true, errorOnManifestCreate: true })
await plugin.load()
writeJson('oclif.manifest.json', plugin.manifest)
