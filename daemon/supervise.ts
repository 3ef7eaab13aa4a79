// The supervisor process: keeps one worker. Its import graph stays tiny, so that it starts close to bare node.

import { describeFault } from './core/fault.ts'
import { superviseRun } from './supervisor/supervise-run.ts'
import { systemClock } from './sys/clock.ts'

// Without await: the bundle is no module (scripts/build.mjs).
superviseRun(systemClock, process.argv[2] ?? '').catch((thrown: unknown) => {
  process.stderr.write(`${describeFault(thrown)}\n`)
  process.exitCode = 1
})
