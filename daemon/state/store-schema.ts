import { type Meta, type RepositoryState } from '../core/meta.ts'
import { type Circuit, PHASES, type QueueEntry, type QueueState } from '../core/queue-state.ts'
import { TICK_OUTCOMES } from '../core/tick-outcomes.ts'
import {
  COUNT,
  closedObject,
  ISSUE_KEY,
  keyOf,
  listOf,
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
  resume: orNull(RUN_ID),
  pull: orNull(closedObject({ number: COUNT, url: TEXT })),
  nextAttemptAt: orNull(TIME),
  lastError: orNull(RECORDED_ERROR),
  blocked: orNull(closedObject({ source: TEXT, hint: TEXT })),
  queuedAt: TIME,
  updatedAt: TIME,
})

const CIRCUIT: Schema<Circuit> = closedObject({
  failures: COUNT,
  until: TIME,
  lastError: RECORDED_ERROR,
})

/** `state.json`: the queue and the circuits. */
export const QUEUE_SCHEMA: Schema<QueueFile> = closedObject({
  ...storedFields('caduceus-queue'),
  entries: mapOf(ENTRY),
  circuits: mapOf(CIRCUIT),
})

export type MetaFile = StoredFields & Meta

const UUID: Schema<string> = {
  type: 'string',
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
}

const REPOSITORY: Schema<RepositoryState> = closedObject({
  sweptAt: orNull(TIME),
  problem: orNull(RECORDED_ERROR),
})

/** `state_meta.json`: cadence, rate limits, installation id, what ticks leave for `status`. */
export const META_SCHEMA: Schema<MetaFile> = closedObject({
  ...storedFields('caduceus-meta'),
  installationId: UUID,
  lastTickStarted: orNull(TIME),
  lastTickFinished: orNull(TIME),
  lastPollStarted: orNull(TIME),
  lastSweptAt: orNull(TIME),
  lastOutcome: orNull(keyOf(TICK_OUTCOMES)),
  lastHttpStatus: orNull(COUNT),
  rateLimit: orNull(
    closedObject({ limit: COUNT, remaining: COUNT, resetAt: TIME, observedAt: TIME }),
  ),
  wait: orNull(closedObject({ kind: oneOf(['primary', 'secondary', 'retry-after']), until: TIME })),
  lastError: orNull(RECORDED_ERROR),
  attentionTold: mapOf(TIME),
  repositories: mapOf(REPOSITORY),
  diagnostics: listOf(closedObject({ at: TIME, code: TEXT, issue: orNull(TEXT), message: TEXT })),
})
