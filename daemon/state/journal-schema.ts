import {
  type CapturedRemote,
  type Intent,
  type Journal,
  PUBLISH_ACTIONS,
  PUBLISH_PLANS,
  type Publication,
  type RecordedProcess,
  RUN_STAGES,
} from '../core/journal.ts'
import { type PhaseEvent, TRANSITIONS } from '../core/transitions.ts'
import {
  COUNT,
  closedObject,
  closedObjectWith,
  FLAG,
  ISSUE_KEY,
  keyOf,
  listOf,
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

export type JournalFile = StoredFields & Journal

const TICKET = oneOf(['code', 'investigation'])

const PROCESS: Schema<RecordedProcess> = closedObject({
  pid: COUNT,
  startTicks: COUNT,
  bootId: TEXT,
  session: COUNT,
})

const CAPTURED_REMOTE: Schema<CapturedRemote> = closedObject({
  clonePath: TEXT,
  settings: listOf(closedObject({ key: listOf(TEXT), value: listOf(TEXT) })),
})

const PUBLICATION: Schema<Publication> = closedObject({
  plan: keyOf(PUBLISH_PLANS),
  commitMessage: TEXT,
  commitDateSeconds: COUNT,
  pullTitle: TEXT,
  pullBody: TEXT,
  comment: TEXT,
  actorId: COUNT,
  actorLogin: TEXT,
  treeOid: orNull(TEXT),
  changedFiles: COUNT,
})

const INTENT: Schema<Intent> = closedObject({
  stage: oneOf(PUBLISH_ACTIONS),
  attempt: COUNT,
  serverTime: TIME,
  deadlineAt: TIME,
  bootId: TEXT,
  answered: orNull(TEXT),
})

const MARKERS: Schema<Journal['markers']> = closedObjectWith(
  {},
  {
    committed: TEXT,
    pushed: TEXT,
    pr_created: TEXT,
    commented: TEXT,
    label_removed: TEXT,
    closed: TEXT,
  },
)

const JITTER: Schema<number> = { type: 'number', minimum: 0, exclusiveMaximum: 1 }

const OUTCOME: Schema<PhaseEvent> = closedObjectWith(
  { on: oneOf([...new Set(TRANSITIONS.map((row) => row.on))]), at: TIME },
  {
    runId: RUN_ID,
    error: RECORDED_ERROR,
    blocked: closedObject({ source: TEXT, hint: TEXT }),
    notBefore: TIME,
    pull: closedObject({ number: COUNT, url: TEXT }),
    labeledEventId: COUNT,
    seenUpdatedAt: TIME,
    ticket: TICKET,
    resume: RUN_ID,
    jitter: JITTER,
  },
)

/** `runs/<run id>/journal.json`: how far a run has come (design §5, P§2, P§3). */
export const JOURNAL_SCHEMA: Schema<JournalFile> = closedObject({
  ...storedFields('caduceus-run'),
  runId: RUN_ID,
  key: ISSUE_KEY,
  ticket: TICKET,
  generation: COUNT,
  previousRunId: orNull(RUN_ID),
  attempt: COUNT,
  dryRun: FLAG,
  build: TEXT,
  createdAt: TIME,
  epoch: COUNT,
  adoptions: COUNT,
  stage: keyOf(RUN_STAGES),
  branch: TEXT,
  base: orNull(closedObject({ storePath: TEXT, branch: TEXT, oid: TEXT })),
  remote: orNull(CAPTURED_REMOTE),
  treePath: TEXT,
  indexPath: TEXT,
  label: TEXT,
  labeledEventId: orNull(COUNT),
  runner: orNull(PROCESS),
  ownedUntil: orNull(TIME),
  publication: orNull(PUBLICATION),
  markers: MARKERS,
  intent: orNull(INTENT),
  notBefore: orNull(TIME),
  trouble: orNull(closedObject({ count: COUNT, since: TIME })),
  outcome: orNull(OUTCOME),
  endedIn: orNull(keyOf(RUN_STAGES)),
})
