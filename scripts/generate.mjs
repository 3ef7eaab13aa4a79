// Writes the generated files of the repository. `--check` writes nothing and exits 1, naming the stale
// ones; `--root DIR` compares with or writes to another folder than this repository.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { compileValidators, declareValidators } from './compile-validator.mjs'
import { importTypeScript } from './import-typescript.mjs'

const REPOSITORY = dirname(import.meta.dirname)

/**
 * Validators compiled from JSON-schema literals: `<output>.js` exports each `name(data)`, which answers
 * `Checked<type>` of daemon/core/schema-error.ts. `ajv` holds what differs from its defaults, such as
 * `allErrors` or `useDefaults` (which fills the given data in place).
 */
const VALIDATORS = [
  {
    output: 'daemon/config/validate-config.generated',
    ajv: { allErrors: true, useDefaults: true },
    validators: [
      {
        name: 'validateConfigFile',
        schema: {
          module: 'daemon/config/schema.ts',
          constant: 'CONFIG_SCHEMA',
          type: 'ConfigFile',
        },
      },
    ],
  },
  {
    output: 'daemon/state/validate-state.generated',
    validators: [
      {
        name: 'validateQueueFile',
        schema: {
          module: 'daemon/state/store-schema.ts',
          constant: 'QUEUE_SCHEMA',
          type: 'QueueFile',
        },
      },
      {
        name: 'validateMetaFile',
        schema: {
          module: 'daemon/state/store-schema.ts',
          constant: 'META_SCHEMA',
          type: 'MetaFile',
        },
      },
      {
        name: 'validateJournalFile',
        schema: {
          module: 'daemon/state/journal-schema.ts',
          constant: 'JOURNAL_SCHEMA',
          type: 'JournalFile',
        },
      },
    ],
  },
]

/** Texts made by a function of a TypeScript module. */
const TEXTS = [
  {
    path: 'docs/configuration.md',
    module: 'scripts/configuration-page.ts',
    make: 'makeConfigurationPage',
  },
  { path: 'docs/lifecycle.md', module: 'scripts/lifecycle-page.ts', make: 'makeLifecyclePage' },
  {
    path: 'docs/troubleshooting.md',
    module: 'scripts/troubleshooting-page.ts',
    make: 'makeTroubleshootingPage',
  },
]

/** Every generated file: where it is, and how its content is made. */
const FILES = [
  ...VALIDATORS.flatMap((row) => [
    { path: `${row.output}.js`, make: () => compileValidators(REPOSITORY, row) },
    { path: `${row.output}.d.ts`, make: () => declareValidators(row) },
  ]),
  ...TEXTS.map(({ path, module, make }) => ({
    path,
    make: async () => (await importTypeScript(REPOSITORY, module))[make](),
  })),
]

const { values } = parseArgs({
  options: { check: { type: 'boolean', default: false }, root: { type: 'string' } },
})
const root = values.root ?? REPOSITORY

const stale = []
for (const { path, make } of FILES) {
  const content = await make()
  const target = join(root, path)
  if (existsSync(target) && readFileSync(target, 'utf8') === content) continue
  stale.push(path)
  if (values.check) continue
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, content)
}

if (values.check && stale.length > 0) {
  console.error(`Stale, run npm run generate:\n${stale.map((path) => `  ${path}`).join('\n')}`)
  process.exitCode = 1
} else if (!values.check) {
  for (const path of stale) console.log(`written: ${relative(root, join(root, path))}`)
}
