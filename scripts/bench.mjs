// Measures the built program (`npm run bench` builds first) and says whether each goal is met.
//   --json   for programs      --pairs N   how often (at least 9)      --only WORD   the group it is in
//   --dist DIR   another build        --strict   exit code 1 when a goal is missed

import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureIdleTick, measureState } from './bench/benchmarks.mjs'
import { openStage } from './bench/stage.mjs'
import { measureSupervisor } from './bench/supervisor.mjs'

const GROUPS = { state: measureState, idle: measureIdleTick, supervisor: measureSupervisor }

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    strict: { type: 'boolean' },
    pairs: { type: 'string', default: '11' },
    only: { type: 'string' },
    dist: { type: 'string', default: join(dirname(import.meta.dirname), 'dist') },
  },
})

const stage = await openStage(options.dist)
const results = []
try {
  for (const [name, measure] of Object.entries(GROUPS)) {
    if (options.only !== undefined && options.only !== name) continue
    for (const result of await measure(stage, Math.max(9, Number(options.pairs)))) {
      results.push({ ...result, met: result.goal === null || result.ratio <= result.goal })
      if (!options.json) console.log(describe(results.at(-1)))
    }
  }
} finally {
  await stage.close()
}
if (options.json) console.log(JSON.stringify(results, null, 2))
if (options.strict && results.some(({ met }) => !met)) process.exitCode = 1

function describe({ name, against, goal, ratio, met, judgedMs, againstMs, facts }) {
  const times =
    judgedMs === undefined ? '' : ` (${judgedMs.toFixed(0)} ms to ${againstMs.toFixed(0)} ms)`
  const more = facts === undefined ? '' : `; ${facts}`
  const verdict = met ? 'met   ' : 'MISSED'
  const wanted = goal === null ? '' : ` of ${goal}`
  return `${verdict} ${name}: ${ratio.toFixed(2)}${wanted} × ${against}${times}${more}`
}
