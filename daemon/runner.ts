// The runner process: one claimed run, from its journal's stage to the end (daemon/engine/advance-run.ts).

import { advanceOneRun } from './app/advance-one-run.ts'
import { buildOfThisProgram } from './app/build.ts'
import { describeFault } from './core/fault.ts'

try {
  await advanceOneRun(buildOfThisProgram(), process.argv[2] ?? '')
} catch (fault) {
  process.stderr.write(`${describeFault(fault)}\n`)
  process.exitCode = 1
}
