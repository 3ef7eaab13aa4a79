import type { Fault } from './fault.ts'
import type { Intent } from './journal.ts'
import { fromTimestamp } from './timestamp.ts'

/** What a look at the world says about an action. A look that could not be completed throws instead. */
export type Look =
  | Readonly<{ kind: 'found'; marker: string }>
  | Absent
  /** What is there contradicts the run, for good. */
  | Readonly<{ kind: 'contradiction'; fault: Fault }>
  /** What GitHub shows is behind, so nothing is known yet. */
  | Readonly<{ kind: 'unclear'; fault: Fault }>

/** It is not there; `name` is what has to be acted on, as GitHub calls it now. */
export type Absent = Readonly<{ kind: 'absent'; name?: string }>

/** Whether the issue still asks for the run; a fault says why not. */
export type Eligibility = 'unasked' | 'eligible' | Fault

/** Everything that decides what comes next for one action of a publication. */
export type WriteFacts = Readonly<{
  /** Leaves this machine, so it needs an intent; a local action is repeated freely. */
  isRemote: boolean
  /** GitHub may take it twice. */
  mayDuplicate: boolean
  /** The first that others can see: the issue is asked about before it, and before it alone. */
  isFirst: boolean
  /** What an earlier try left open; null = nothing was sent that has not been recorded. */
  intent: Pick<Intent, 'attempt' | 'serverTime' | 'deadlineAt' | 'answered'> | null
  /** The looks of this walk, oldest first. */
  looks: readonly Look[]
  eligibility: Eligibility
  /** What the write of this walk was answered with; null = it was not sent. */
  sent: string | null
  duplicatesRemoved: boolean
  /** Our clock, milliseconds. */
  now: number
  /** GitHub's clock, as far as this process has seen it. */
  serverNow: number | null
  /** How long a write may take to show. */
  settleMs: number
}>

export type NextWrite =
  | Readonly<{ do: 'ask' }>
  | Readonly<{ do: 'look' }>
  | Readonly<{ do: 'send'; seen: Absent }>
  | Readonly<{ do: 'remove-duplicates' }>
  | Readonly<{ do: 'record'; marker: string }>
  /** The answer is stored, because the first of two writes may still come to light; then it waits. */
  | Readonly<{ do: 'note-answer'; marker: string; until: number }>
  /** `until` in milliseconds. */
  | Readonly<{ do: 'wait'; until: number }>
  | Readonly<{ do: 'wait-for-list'; fault: Fault }>
  | Readonly<{ do: 'stop'; fault: Fault }>

/**
 * What comes next for an action (PROTOCOLS, Writes to GitHub). Its walker does it, adds what came of it to the
 * facts and asks again, until it is told to record, to wait or to stop. Pure.
 */
export function nextWrite(facts: WriteFacts): NextWrite {
  const { intent, looks, eligibility, sent } = facts
  if (sent !== null) return afterSending(facts, sent)
  // What may have happened is looked for before it is asked whether it should.
  if (intent === null && mustAsk(facts)) return { do: 'ask' }
  if (typeof eligibility !== 'string') return { do: 'stop', fault: eligibility }
  const last = looks.at(-1)
  if (last === undefined) return { do: 'look' }
  if (last.kind === 'contradiction') return { do: 'stop', fault: last.fault }
  if (last.kind === 'unclear') return { do: 'wait-for-list', fault: last.fault }
  if (last.kind === 'found') return whenFound(facts, last.marker)
  return intent === null ? { do: 'send', seen: last } : whenOpen(facts, intent, last)
}

const mustAsk = ({ isFirst, eligibility }: WriteFacts): boolean =>
  isFirst && eligibility === 'unasked'

/**
 * There. Of a write that was repeated the first one may still come to light: it is looked for once the settle time
 * is over again, and the younger duplicate is removed.
 */
function whenFound(facts: WriteFacts, marker: string): NextWrite {
  const { intent, looks, duplicatesRemoved } = facts
  if (intent !== null) {
    const leftMs = unsettledMs(facts, intent)
    // It has just appeared, between two looks; the next walk records it.
    if (looks.length > 1) return { do: 'wait', until: facts.now + leftMs }
    if (mayHaveDuplicate(facts, intent)) {
      if (leftMs > 0) return { do: 'wait', until: facts.now + leftMs }
      if (!duplicatesRemoved) return { do: 'remove-duplicates' }
    }
  }
  return { do: 'record', marker }
}

/** Not there, although it was sent: repeated only when it is old enough and two complete looks found nothing. */
function whenOpen(facts: WriteFacts, intent: OpenIntent, seen: Absent): NextWrite {
  const leftMs = unsettledMs(facts, intent)
  if (leftMs > 0) return { do: 'wait', until: facts.now + leftMs }
  if (facts.looks.length < 2) return { do: 'look' }
  if (intent.answered !== null) return whenAnswered(facts, intent, intent.answered)
  // Nobody has seen anything of it, so it may still be cancelled.
  return mustAsk(facts) ? { do: 'ask' } : { do: 'send', seen }
}

/** Settle times for which a write that was certainly done may stay unseen. */
const UNSEEN_SETTLE_TIMES = 4

/**
 * The write was certainly done. That it is not seen means that GitHub is behind, perhaps with a duplicate too, or
 * that a person has removed it.
 */
function whenAnswered(facts: WriteFacts, { deadlineAt }: OpenIntent, marker: string): NextWrite {
  const last = fromTimestamp(deadlineAt) + UNSEEN_SETTLE_TIMES * facts.settleMs
  if (facts.now >= last) return { do: 'record', marker }
  return { do: 'wait', until: Math.min(last, facts.now + facts.settleMs) }
}

function afterSending(facts: WriteFacts, marker: string): NextWrite {
  const { intent, now } = facts
  if (intent === null || !mayHaveDuplicate(facts, intent)) return { do: 'record', marker }
  const leftMs = unsettledSince(facts, now, intent)
  return { do: 'note-answer', marker, until: now + leftMs }
}

type OpenIntent = NonNullable<WriteFacts['intent']>

/** A write that was repeated although nothing keeps GitHub from taking both. */
const mayHaveDuplicate = ({ mayDuplicate }: WriteFacts, { attempt }: OpenIntent): boolean =>
  mayDuplicate && attempt > 1

const unsettledMs = (facts: WriteFacts, intent: OpenIntent): number =>
  unsettledSince(facts, fromTimestamp(intent.deadlineAt), intent)

/**
 * How long what was sent may still come to light, in milliseconds; 0 or less = it has had its time. By our clock,
 * and by GitHub's as far as this process has seen it: a clock of ours that is set ahead shortens nothing.
 */
function unsettledSince(
  { now, serverNow, settleMs }: WriteFacts,
  deadline: number,
  { serverTime }: OpenIntent,
): number {
  const passed = now - deadline
  const passedThere = serverNow === null ? passed : serverNow - fromTimestamp(serverTime)
  return settleMs - Math.min(passed, passedThere)
}
