// What is measured, and the goal of each ratio. What is judged and what it is compared with run in turns,
// so that a busy machine slows both; milliseconds are for people.

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { environmentOf, makeRepositories, openProgram, storeIssues } from './stage.mjs'

const REPOSITORIES = 50
const LATENCY_MS = 50
const STORED = { few: 10, many: 10_000 }
const CPU_RUNS = 5

/** Starting the program, and how its time grows with what is stored. */
export async function measureState(stage, pairs) {
  const repo = 'bench/stored'
  await makeRepositories(stage, [repo])
  const few = openProgram(stage, 'few', [repo])
  const many = openProgram(stage, 'many', [repo])
  await storeIssues(few.stateDir, repo, STORED.few)
  await storeIssues(many.stateDir, repo, STORED.many)
  await few.settle()
  await many.settle()
  const more = `${STORED.many} stored issues`
  const less = `${STORED.few} stored issues`
  return [
    {
      name: 'status',
      against: 'bare node reading a small JSON file',
      goal: 2,
      ...(await comparePairs(pairs, few.status, bareNode(stage))),
    },
    {
      name: `status with ${more}`,
      against: `status with ${less}`,
      goal: 3,
      ...(await comparePairs(pairs, many.status, few.status)),
    },
    {
      name: `idle tick with ${more}`,
      against: `idle tick with ${less}`,
      goal: 3,
      ...(await comparePairs(pairs, many.tick, few.tick)),
    },
  ]
}

/** An idle tick over many repositories, which should cost little more than waiting for GitHub. */
export async function measureIdleTick(stage, pairs) {
  const names = Array.from({ length: REPOSITORIES }, (_, index) => `bench/idle-${index + 1}`)
  await makeRepositories(stage, names)
  const program = openProgram(stage, 'idle', names)
  await program.settle()
  await stage.control('configure', { latencyMs: LATENCY_MS })
  await stage.control('clearRequests')
  let ticks = 0
  const tick = async (...options) => {
    ticks += 1
    return program.tick(...options)
  }
  const roundTrip = async () => {
    // Answered as slowly as the others, and not counted among their requests.
    const answer = await fetch(`${stage.url}/user`, {
      headers: { authorization: `Bearer ${stage.token}` },
    })
    await answer.text()
  }
  await roundTrip()
  const compared = await comparePairs(pairs, tick, roundTrip)
  const cpu = await cpuMs(stage, tick)
  const { byRepository, byStatus } = await stage.control('readRequests')
  const asked = names.reduce((sum, name) => sum + (byRepository[name] ?? 0), 0)
  await stage.control('configure', { latencyMs: 0 })
  return [
    {
      name: `idle tick over ${REPOSITORIES} repositories`,
      against: `one round trip of ${LATENCY_MS} ms`,
      goal: 12,
      ...compared,
      facts: `CPU ${cpu.toFixed(0)} ms; answered ${JSON.stringify(byStatus)}`,
    },
    {
      name: 'requests of an idle tick',
      against: 'one for each repository',
      goal: 1,
      ratio: asked / ticks / REPOSITORIES,
    },
  ]
}

function bareNode(stage) {
  const { root } = stage
  const env = environmentOf(stage)
  const program = join(root, 'bare.mjs')
  const data = join(root, 'small.json')
  writeFileSync(
    program,
    "import { readFileSync } from 'node:fs'\nJSON.parse(readFileSync(process.argv[2], 'utf8'))\n",
  )
  writeFileSync(data, '{"version": 1}\n')
  return () => {
    const { status } = spawnSync(process.execPath, [program, data], { env })
    if (status !== 0) throw new Error('bare node failed')
  }
}

/** User and system time of whole ticks, start of the process included. */
async function cpuMs({ root }, tick) {
  const preload = join(root, 'cpu.mjs')
  const report = join(root, 'cpu.json')
  writeFileSync(
    preload,
    `import { writeFileSync } from 'node:fs'
process.on('exit', () => writeFileSync(${JSON.stringify(report)}, JSON.stringify(process.cpuUsage())))
`,
  )
  const runs = []
  for (let run = 0; run < CPU_RUNS; run += 1) {
    await tick([`--import=${preload}`])
    const { user, system } = JSON.parse(readFileSync(report, 'utf8'))
    runs.push((user + system) / 1000)
  }
  return median(runs)
}

/**
 * Median times of two tasks run in turns, and the median of the pairs' ratios.
 * @param judged, against run something once and may return the milliseconds they took themselves
 */
export async function comparePairs(pairs, judged, against) {
  const times = []
  for (let pair = 0; pair < pairs; pair += 1) {
    // In alternating order: whatever the first one warms up for the second evens out.
    const isFirst = pair % 2 === 0
    const first = await time(isFirst ? judged : against)
    const second = await time(isFirst ? against : judged)
    times.push(isFirst ? [first, second] : [second, first])
  }
  return {
    pairs,
    judgedMs: median(times.map(([ms]) => ms)),
    againstMs: median(times.map(([, ms]) => ms)),
    ratio: median(times.map(([ms, againstMs]) => ms / againstMs)),
  }
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

async function time(task) {
  const started = performance.now()
  const own = await task()
  return typeof own === 'number' ? own : performance.now() - started
}
