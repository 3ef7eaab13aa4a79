// Everything that can be checked without running the program, in one command: `npm run check`.
import { spawnSync } from 'node:child_process'

const bin = (name) => `node_modules/.bin/${name}`

const CHECKS = [
  { name: 'types', argv: [bin('tsc'), '-p', '.'] },
  { name: 'lint', argv: [bin('oxlint'), '--type-aware', '--deny-warnings'] },
  { name: 'format', argv: [bin('biome'), 'check', '.'] },
  {
    name: 'architecture',
    argv: [
      bin('depcruise'),
      '--config',
      '.dependency-cruiser.mjs',
      'daemon',
      'commands',
      'embedded-github',
    ],
  },
  { name: 'dead code', argv: [bin('knip')] },
  { name: 'generated pages', argv: ['node', 'scripts/generate.mjs', '--check'] },
  { name: 'shipped tree', argv: ['node', 'scripts/check-tree.mjs'] },
]

let failed = 0
for (const { name, argv } of CHECKS) {
  const started = Date.now()
  const [program, ...args] = argv
  const result = spawnSync(program, args, { encoding: 'utf8' })
  const ok = result.status === 0
  if (!ok) failed += 1
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
  if (!ok) console.log(`${result.stdout ?? ''}${result.stderr ?? ''}${result.error ?? ''}`)
}
process.exitCode = failed === 0 ? 0 : 1
