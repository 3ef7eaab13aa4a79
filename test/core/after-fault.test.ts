import { describe, expect, test } from '@jest/globals'
import { type AfterFault, afterFault, type FaultFacts } from '../../daemon/core/after-fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import type { FaultClass } from '../../daemon/core/fault-classes.ts'
import type { RunStage } from '../../daemon/core/journal.ts'

const WAIT: AfterFault = { kind: 'wait', needsAttention: false }
const NEEDS_ATTENTION: AfterFault = { kind: 'wait', needsAttention: true }
const end = (on: Extract<AfterFault, { kind: 'end' }>['on']): AfterFault => ({ kind: 'end', on })

/** A code of each class that no stage treats in a way of its own. */
const SAMPLES = {
  worker: 'worker/exited',
  infrastructure: 'github/unreachable',
  'rate-limited': 'github/rate-limited',
  interrupted: 'worker/interrupted',
  cancelled: 'issue/withdrawn',
  terminal: 'publish/policy',
  config: 'token/rejected',
  state: 'state/lock-busy',
  usage: 'usage/invalid',
  internal: 'internal/unexpected',
} as const satisfies Readonly<Record<FaultClass, string>>

const CLASSES = Object.keys(SAMPLES) as readonly FaultClass[]
const sampleOf = (faultClass: FaultClass): FaultCode => {
  const codes = Object.keys(FAULTS) as readonly FaultCode[]
  const known = codes.find((code) => code === SAMPLES[faultClass])
  const found = known ?? codes.find((code) => FAULTS[code].class === faultClass)
  if (found === undefined) throw new RangeError(faultClass)
  return found
}
const decide = (stage: RunStage, faultClass: FaultClass, change: Partial<FaultFacts> = {}) =>
  afterFault({ stage, code: sampleOf(faultClass), mayStillAct: false, isTooLong: false, ...change })

describe('what a fault does to a run', () => {
  // biome-ignore format: a table is read by its rows
  const TABLE: Readonly<Record<FaultClass, readonly [unpaid: AfterFault, paid: AfterFault, paidTooLong: AfterFault, reserved: AfterFault]>> = {
    worker:         [end('worker-failed'),         end('worker-failed'), end('worker-failed'), end('worker-failed')],
    infrastructure: [end('infrastructure-failed'), WAIT,                 end('blocked'),       WAIT],
    'rate-limited': [end('rate-limited'),          WAIT,                 WAIT,                 WAIT],
    interrupted:    [end('interrupted'),           end('blocked'),       end('blocked'),       end('interrupted')],
    cancelled:      [end('withdrawn'),             end('withdrawn'),     end('withdrawn'),     end('withdrawn')],
    terminal:       [end('blocked'),               end('blocked'),       end('blocked'),       end('blocked')],
    config:         [end('infrastructure-failed'), WAIT,                 end('blocked'),       WAIT],
    state:          [end('infrastructure-failed'), WAIT,                 end('blocked'),       WAIT],
    usage:          [end('infrastructure-failed'), end('blocked'),       end('blocked'),       end('infrastructure-failed')],
    internal:       [end('infrastructure-failed'), WAIT,                 end('blocked'),       WAIT],
  }

  test.each(CLASSES)('%s', (faultClass) => {
    const [unpaid, paid, paidTooLong, reserved] = TABLE[faultClass]
    for (const stage of ['starting', 'owned', 'launching'] as const) {
      expect(decide(stage, faultClass)).toEqual(unpaid)
      expect(decide(stage, faultClass, { isTooLong: true })).toEqual(unpaid)
    }
    for (const stage of ['finished', 'publishing'] as const) {
      expect(decide(stage, faultClass)).toEqual(paid)
      expect(decide(stage, faultClass, { isTooLong: true })).toEqual(paidTooLong)
    }
    expect(decide('launching', faultClass, { mayStillAct: true })).toEqual(reserved)
  })

  test.each(CLASSES)('an end that is decided is never given up: %s', (faultClass) => {
    expect(decide('ended', faultClass, { isTooLong: true })).toEqual(WAIT)
  })

  test('while processes may be there no failure ends the run; one that lasts is shown to people', () => {
    const lasting = { mayStillAct: true, isTooLong: true }
    expect(decide('launching', 'infrastructure', lasting)).toEqual(NEEDS_ATTENTION)
    expect(decide('launching', 'rate-limited', lasting)).toEqual(WAIT)
  })

  test('files that cannot be read tell nothing about a worker: the run is kept, but not for ever', () => {
    const io: FaultCode = 'sys/io'
    expect(decide('launching', 'infrastructure', { code: io })).toEqual(WAIT)
    expect(decide('launching', 'infrastructure', { code: io, isTooLong: true })).toEqual(
      end('blocked'),
    )
    expect(decide('owned', 'infrastructure', { code: io })).toEqual(end('infrastructure-failed'))
  })
})
