import { formatIssue } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import { checkWanted, findIssue } from './check-wanted.ts'
import { eachBounded } from './each-bounded.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

/**
 * Ends the workers of issues that are no longer wanted: closed, moved, unlabelled, gone (case C41). Asked
 * for each run at work, because a list of issues does not show one that has left it. Only while the worker runs: later the run looks for itself, right before it publishes.
 */
export async function cancelWithdrawn(ports: TickPorts): Promise<readonly TickProblem[]> {
  const { store, journals, github, settings, log } = ports
  const atWork = Object.values(store.readQueue().entries).flatMap(({ phase, key, runId }) =>
    phase === 'in_progress' && runId !== null ? [{ key, runId }] : [],
  )
  const problems: TickProblem[] = []
  await eachBounded(atWork, LIMITS.httpConcurrency, async ({ key, runId }) => {
    try {
      const journal = journals.read(runId)
      if (journal?.stage !== 'launching') return
      const issue = await findIssue(github, key)
      const wanted = checkWanted(key, journal.ticket, settings.triggers, issue)
      if (wanted.kind === 'wanted') return
      ports.cancelWorker(runId)
      log.info('worker cancelled', {
        issue: formatIssue(key),
        runId,
        reason: wanted.fault.message,
      })
    } catch (thrown) {
      problems.push({ where: formatIssue(key), thrown }) // asked again by the next tick
    }
  })
  return problems
}
