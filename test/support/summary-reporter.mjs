import { appendFileSync } from 'node:fs'

/** Prints jest's totals as one plain line, and adds them to the file named by TEST_TOTALS for `.ci/run`. */
export default class SummaryReporter {
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites
    const skipped = results.numPendingTests + results.numTodoTests
    process.stdout.write(
      `\n${results.numPassedTests} passed, ${failed} failed, ${skipped} skipped\n`,
    )
    const totals = process.env.TEST_TOTALS
    if (totals) appendFileSync(totals, `${results.numPassedTests} ${failed} ${skipped}\n`)
  }
}
