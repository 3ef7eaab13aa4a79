// The runner process: one claimed run, from its journal's stage to the end (daemon/engine/carry-run.ts).
import { buildOfThisProgram } from './app/build.ts'
import { carryOneRun } from './app/carry-one-run.ts'
import { describeFault } from './core/fault.ts'

const leaving = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // The first asks to leave when the step in hand is done; the next tick adopts the run. The second leaves.
  process.once(signal, () => leaving.abort())
}

try {
  await carryOneRun(buildOfThisProgram(), process.argv[2] ?? '', leaving.signal)
} catch (fault) {
  process.stderr.write(`${describeFault(fault)}\n`)
  process.exitCode = 1
}
