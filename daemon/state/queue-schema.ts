import { PHASES } from '../core/phases.ts'
import type { QueueEntry, QueueState } from '../core/queue.ts'
import {
  COUNT,
  closedObject,
  ISSUE_KEY,
  keyOf,
  mapOf,
  oneOf,
  orNull,
  RECORDED_ERROR,
  RUN_ID,
  type Schema,
  type StoredFields,
  storedFields,
  TEXT,
  TIME,
} from './schema-parts.ts'

export type QueueFile = StoredFields & QueueState

const ENTRY: Schema<QueueEntry> = closedObject({
  key: ISSUE_KEY,
  phase: keyOf(PHASES),
  ticket: oneOf(['code', 'investigation']),
  attempts: COUNT,
  degraded: orNull(closedObject({ count: COUNT, since: TIME })),
  interruptions: COUNT,
  generation: COUNT,
  labeledEventId: orNull(COUNT),
  seenUpdatedAt: orNull(TIME),
  runId: orNull(RUN_ID),
  lastRunId: orNull(RUN_ID),
  pull: orNull(closedObject({ number: COUNT, url: TEXT })),
  nextAttemptAt: orNull(TIME),
  lastError: orNull(RECORDED_ERROR),
  blocked: orNull(closedObject({ source: TEXT, hint: TEXT })),
  queuedAt: TIME,
  updatedAt: TIME,
})

/** `state.json`: the queue (design §5). */
export const QUEUE_SCHEMA: Schema<QueueFile> = closedObject({
  ...storedFields('caduceus-queue'),
  entries: mapOf(ENTRY),
})
