// Bundles the program into dist/: one file per process, so that each starts with as little as it needs.
//   caduceus.mjs    the launcher and router (checks node, picks the process)
//   cli.mjs         commands        runner.mjs   one run        supervisor.cjs   the worker's keeper
//   embedded-github.mjs   the GitHub that the demo and the tests talk to
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core'
import { build } from 'esbuild'
import { compileSchemas } from './compile-schemas.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const out = process.argv[2] ?? join(root, 'dist')

const ENTRIES = {
  caduceus: 'daemon/main.ts',
  cli: 'daemon/cli.ts',
  runner: 'daemon/runner.ts',
  'embedded-github': 'embedded-github/main.ts',
}

/** One file, not parts shared with others: every worker waits for its start. */
const ALONE = { supervisor: 'daemon/supervise.ts' }

/**
 * Parts of packages that no command of ours reaches, yet that every start would load. What stands in for
 * one does nothing, as the part itself would, or says that it is missing.
 */
const LEFT_OUT = {
  // They write only when a variable such as DEBUG asks for it.
  debug: 'module.exports = () => Object.assign(() => {}, { enabled: false })',
  '@dabh/diagnostics': 'module.exports = () => () => {}',
  // For oclif's own spinner.
  'cli-spinners': 'module.exports = { dots2: { interval: 80, frames: ["-"] } }',
  // For commands and plugins that have to be searched for; ours are listed by name.
  lilconfig: missing('lilconfig'),
  minimatch: missing('minimatch'),
  tinyglobby: missing('glob'),
}

function missing(name) {
  return `exports.${name} = () => { throw new Error('${name} is left out of this build') }`
}

const leaveOut = {
  name: 'leave-out',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^[@a-z]/ }, ({ path }) =>
      Object.hasOwn(LEFT_OUT, path) ? { path, namespace: 'left-out' } : null,
    )
    onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({ contents: LEFT_OUT[path] }))
  },
}

rmSync(out, { recursive: true, force: true })
const SHARED = {
  absWorkingDir: root,
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  external: ['koffi'],
  define: { CADUCEUS_VERSION: JSON.stringify(version) },
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
  },
  plugins: [leaveOut, compileSchemas(root)],
  logLevel: 'warning',
}
await build({
  ...SHARED,
  entryPoints: ENTRIES,
  splitting: true,
  // In one folder with the entries: the program finds its own files from wherever a function lands.
  chunkNames: 'part-[hash]',
})
// CommonJS: Node starts it in less time, because the loader of modules stays asleep.
await build({
  ...SHARED,
  entryPoints: ALONE,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  define: { ...SHARED.define, 'import.meta.url': '__filename' },
  banner: {},
})
// oclif finds the commands in this package; the manifest spares loading them to know them.
const oclifPackage = {
  name: 'caduceus',
  version,
  type: 'module',
  oclif: {
    bin: 'caduceus',
    description: `${description}.\nWithout a command it does what run does, as cron calls it: one tick. First steps: caduceus setup, then caduceus doctor.`,
    commands: { strategy: 'explicit', target: './cli.mjs', identifier: 'COMMANDS' },
    topicSeparator: ' ',
    topics: {
      config: { description: 'Look at the configuration.' },
      queue: { description: 'Look at the issues, and let them go on.' },
    },
  },
}
const writeJson = (name, content) =>
  writeFileSync(join(out, name), `${JSON.stringify(content, null, 2)}\n`)
writeJson('package.json', oclifPackage)

const plugin = new Plugin({ root: out, ignoreManifest: true, errorOnManifestCreate: true })
await plugin.load()
writeJson('oclif.manifest.json', plugin.manifest)
