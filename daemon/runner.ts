// The runner process: one claimed run, from its journal's stage to the end (daemon/engine/carry-run.ts).
import { buildOfThisProgram } from './app/build.ts'
import { carryOneRun } from './app/carry-one-run.ts'
import { describeFault } from './core/fault.ts'

try {
  await carryOneRun(buildOfThisProgram(), process.argv[2] ?? '')
} catch (fault) {
  process.stderr.write(`${describeFault(fault)}\n`)
  process.exitCode = 1
}
