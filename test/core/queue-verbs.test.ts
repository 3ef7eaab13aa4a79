import { describe, expect, test } from '@jest/globals'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { QUEUE_VERBS, type QueueVerb, refusalHint } from '../../daemon/core/queue-verbs.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyEvent } from '../../daemon/core/transitions.ts'

const NOW = Date.parse('2026-01-01T12:00:00.000Z')

const AT = toTimestamp(NOW)

const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'

const KEY = { owner: 'Octo', name: 'App', number: 7 }

const RETRY = { maxAttempts: 3, backoffSeconds: 300, maxDegradedSeconds: 3600 }

const VERBS = Object.keys(QUEUE_VERBS) as readonly QueueVerb[]

const ALL_PHASES = Object.keys(PHASES) as readonly Phase[]

const entryIn = (phase: Phase, changed: Partial<QueueEntry> = {}): QueueEntry => ({
  ...newEntry(KEY, 'code', AT, AT),
  phase,
  lastRunId: RUN,
  runId: PHASES[phase].slot ? RUN : null,
  ...changed,
})

describe('what may a command do to an entry in each phase?', () => {
  const ALLOWED = {
    reset: ['failed', 'needs_attention', 'skipped'],
    reprocess: [
      'done',
      'failed',
      'in_progress',
      'needs_attention',
      'previewed',
      'queued',
      'skipped',
    ],
  } as const satisfies Record<QueueVerb, readonly Phase[]>

  test.each(VERBS)('%s is allowed exactly in the phases that its table names', (verb) => {
    const allowed = ALL_PHASES.filter((phase) => refusalHint(verb, entryIn(phase)) === null)
    expect(allowed).toEqual(ALLOWED[verb])
  })

  test.each(VERBS)('what %s allows is what the table of transitions knows', (verb) => {
    const known = ALL_PHASES.filter((phase) => {
      const event = { on: QUEUE_VERBS[verb].event, at: AT } as const
      return applyEvent(entryIn(phase), event, RETRY).kind === 'applied'
    })
    expect(known).toEqual(ALLOWED[verb])
  })

  test('every refusal says what to do instead, and names the issue where it names a command', () => {
    for (const verb of VERBS) {
      for (const phase of ALL_PHASES) {
        const hint = refusalHint(verb, entryIn(phase))
        if (hint === null) continue
        expect(hint).toMatch(/^[A-Z].*(?:[a-z]\.|#7)$/)
        expect(hint).not.toContain('{')
        for (const [, after] of hint.matchAll(/caduceus queue \w+ (\S+?)(?=[.\s]|$)/g)) {
          expect(after).toBe('Octo/App#7')
        }
      }
    }
    expect(FAULTS['queue/refused'].next).toBe('{hint}')
  })
})
