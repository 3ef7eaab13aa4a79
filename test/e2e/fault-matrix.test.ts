import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { FaultRule } from '../../embedded-github/test-faults.ts'
import {
  goOn,
  type InProcessRig,
  makeRigTemplate,
  type Played,
  playAll,
  RIG_BACKOFF_MS,
  RIG_SETTLE_MS,
  type RigOptions,
  type RigTemplate,
  withRig,
} from '../support/in-process-rig.ts'

// Each endpoint of GitHub and each network operation of git that a tick or a run uses, with each fault at its
// first use there: one issue is followed until nothing is left to do. What has to come out follows from rules
// about the endpoint and the fault; the few exceptions are named (`EXCEPTIONS`).

/** Effects of a publication in their order; a place in it has been reached when all before it are done. */
const EFFECTS = ['branch', 'pull', 'comment', 'label', 'close'] as const

/** Where a fault strikes. */
type Place = Readonly<{
  /** What is there already: nothing, a run whose worker has succeeded, its branch, its pull request closed unmerged. */
  from: 'start' | 'worked' | 'pushed' | 'closed'
  during: 'poll' | 'discovery' | 'prepare' | 'work' | 'publish' | 'watch'
  route: string
  pattern?: string
  occurrence?: number
  /** How many of the effects are done by then. */
  reached?: number
  /** What it means when GitHub says that it is not there: it is asked again, or it matters little. */
  absent: 'again' | 'goes-on'
  /** A refusal there keeps nothing from being done. */
  refused?: 'goes-on'
  /** Its answer has no content, so none can be cut. */
  isBare?: true
  /** Lists show what it makes; the issue or the list of pull requests. */
  isListed?: true
  /** Another place has the same endpoint: one fault of each meaning is enough here. */
  isRepeated?: true
  /** Requests that are sent with it at the same time, itself included. */
  together?: number
  /** Writing it twice changes nothing, so it is not guarded by an intent. */
  isIdempotent?: true
}>

const ISSUE = '/repos/{owner}/{repo}/issues/{issue_number}'
const ISSUES = 'GET /repos/{owner}/{repo}/issues'
const PULLS = '/repos/{owner}/{repo}/pulls'

// biome-ignore format: a table is read by its rows
const PLACES = {
  'GET /user/repos': { from: 'start', during: 'discovery', route: 'GET /user/repos', absent: 'again' },
  'GET issues by label': { from: 'start', during: 'poll', route: ISSUES, pattern: 'labels=', together: 4, absent: 'again' },
  'GET issues since': { from: 'start', during: 'poll', route: ISSUES, pattern: 'since=', absent: 'again' },
  'GET repository': { from: 'start', during: 'prepare', together: 5, route: 'GET /repos/{owner}/{repo}', absent: 'again' },
  'GET issue': { from: 'start', during: 'prepare', together: 5, route: `GET ${ISSUE}`, absent: 'goes-on' },
  'GET comments': { from: 'start', during: 'prepare', together: 5, route: `GET ${ISSUE}/comments`, absent: 'again' },
  'GET timeline': { from: 'start', during: 'prepare', together: 5, route: `GET ${ISSUE}/timeline`, absent: 'again' },
  'GET /user': { from: 'start', during: 'prepare', together: 5, route: 'GET /user', absent: 'again' },
  'GET issue, while the worker works': { from: 'start', during: 'work', route: `GET ${ISSUE}`, absent: 'goes-on', isRepeated: true },
  'GET /user, before texts are frozen': { from: 'worked', during: 'publish', route: 'GET /user', reached: 0, absent: 'again', isRepeated: true },
  'GET issue, before the push': { from: 'worked', during: 'publish', route: `GET ${ISSUE}`, reached: 0, absent: 'goes-on', isRepeated: true },
  'GET timeline, before the push': { from: 'worked', during: 'publish', route: `GET ${ISSUE}/timeline`, reached: 0, absent: 'again', isRepeated: true },
  'GET repository, for the pull request': { from: 'pushed', during: 'publish', route: 'GET /repos/{owner}/{repo}', reached: 1, absent: 'goes-on', isRepeated: true },
  'GET pulls by head': { from: 'pushed', during: 'publish', route: `GET ${PULLS}`, reached: 1, absent: 'again' },
  'POST pulls': { from: 'pushed', during: 'publish', route: `POST ${PULLS}`, reached: 1, absent: 'again', isListed: true },
  'GET comments, before the comment': { from: 'pushed', during: 'publish', route: `GET ${ISSUE}/comments`, reached: 2, absent: 'again', isRepeated: true },
  'GET issue, before the comment': { from: 'pushed', during: 'publish', route: `GET ${ISSUE}`, reached: 2, absent: 'goes-on', isRepeated: true },
  'POST comments': { from: 'pushed', during: 'publish', route: `POST ${ISSUE}/comments`, reached: 2, absent: 'again', isListed: true },
  'DELETE comment': { from: 'pushed', during: 'publish', route: 'DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}', reached: 3, absent: 'goes-on', isBare: true, isIdempotent: true, refused: 'goes-on' },
  'GET issue, before the label': { from: 'pushed', during: 'publish', route: `GET ${ISSUE}`, occurrence: 2, reached: 3, absent: 'goes-on', isRepeated: true },
  'DELETE label': { from: 'pushed', during: 'publish', route: `DELETE ${ISSUE}/labels/{name}`, reached: 3, absent: 'again', isListed: true },
  'GET issue, before the closing': { from: 'pushed', during: 'publish', route: `GET ${ISSUE}`, occurrence: 3, reached: 4, absent: 'goes-on', isRepeated: true },
  'PATCH issue closed': { from: 'pushed', during: 'publish', route: `PATCH ${ISSUE}`, reached: 4, absent: 'again', isListed: true },
  'GET pull': { from: 'pushed', during: 'publish', route: `GET ${PULLS}/{pull_number}`, reached: 5, absent: 'goes-on', refused: 'goes-on' },
  'GET pull, closed': { from: 'closed', during: 'watch', route: `GET ${PULLS}/{pull_number}`, absent: 'goes-on', isRepeated: true },
  'GET issue, for opening it again': { from: 'closed', during: 'watch', route: `GET ${ISSUE}`, absent: 'goes-on', isRepeated: true },
  'GET timeline, for opening it again': { from: 'closed', during: 'watch', route: `GET ${ISSUE}/timeline`, absent: 'again', isRepeated: true },
  'PATCH issue open': { from: 'closed', during: 'watch', route: `PATCH ${ISSUE}`, absent: 'again', isIdempotent: true },
} as const satisfies Record<string, Place>

type PlaceName = keyof typeof PLACES

/** What the adapter is to make of an answer, and with it what the run does. */
type Meaning = 'nothing' | 'trouble' | 'limit' | 'absent' | 'refused'

type FaultRow = Readonly<{
  rule: Pick<FaultRule, 'action' | 'lag'>
  means: Meaning
  /** Of a write: certainly nothing happened; it happened or not, and nobody can know; it was done and said so. */
  write: 'none' | 'done' | 'lost' | 'told'
  /** What it may be a fault of; default: everything. */
  of?: 'writes' | 'listed' | 'POST pulls'
  /** Of a read something else, when a read is meant to get over it. */
  read?: Meaning
  /** Of a refusal that has a fault of its own. */
  code?: string
  /** Only for an answer with content. */
  cuts?: true
  /** Stands for others that mean the same. */
  isSample?: true
}>

const answer = (status: number, body: unknown = { message: 'Server Error' }, headers = {}) =>
  ({ kind: 'answer', status, body, headers }) as const
const invalid = (error: object) =>
  answer(422, { message: 'Validation Failed', errors: [{ resource: 'PullRequest', ...error }] })
/** A fragment alone leads to the same address. */
const SAME = { Location: '#moved' }
const ELSEWHERE = { Location: 'http://127.0.0.1:9/elsewhere' }
const LOST = { ...answer(500), effect: true } as const
/** Longer than the settle time, shorter than twice of it. */
const LONG_LAG = { lagMs: 200_000 }

// biome-ignore format: a table is read by its rows
const FAULTS = {
  '500': { rule: { action: answer(500) }, means: 'trouble', write: 'lost', isSample: true },
  '502': { rule: { action: { kind: 'html' } }, means: 'trouble', write: 'lost' },
  '503': { rule: { action: answer(503, {}, { 'Retry-After': '9' }) }, means: 'trouble', write: 'lost' },
  '504': { rule: { action: answer(504) }, means: 'trouble', write: 'lost' },
  '500 after the effect': { rule: { action: LOST }, means: 'trouble', write: 'done', of: 'writes' },
  '429 with Retry-After': { rule: { action: answer(429, { message: 'slow down' }, { 'Retry-After': '90' }) }, means: 'limit', write: 'lost' },
  '429 without Retry-After': { rule: { action: answer(429, { message: 'slow down' }) }, means: 'limit', write: 'lost' },
  '403 primary limit': { rule: { action: { kind: 'primary-limit', resetInSeconds: 600 } }, means: 'limit', write: 'none' },
  '403 secondary limit': { rule: { action: { kind: 'secondary-limit' } }, means: 'limit', write: 'none', isSample: true },
  '403 secondary limit with Retry-After': { rule: { action: { kind: 'secondary-limit', retryAfterSeconds: 90 } }, means: 'limit', write: 'none' },
  '403 not accessible': { rule: { action: answer(403, { message: 'Resource not accessible' }) }, means: 'refused', write: 'none', isSample: true },
  '401': { rule: { action: answer(401, { message: 'Bad credentials' }) }, means: 'trouble', write: 'none', isSample: true },
  '404': { rule: { action: answer(404, { message: 'Not Found' }) }, means: 'absent', write: 'none', isSample: true },
  '410': { rule: { action: answer(410, { message: 'Gone' }) }, means: 'absent', write: 'none' },
  '422 validation': { rule: { action: invalid({ field: 'title', code: 'invalid' }) }, means: 'refused', write: 'none' },
  '422 exists already': { rule: { action: invalid({ message: 'A pull request already exists for octo:x.' }) }, means: 'trouble', write: 'lost', of: 'POST pulls' },
  '422 no commits': { rule: { action: invalid({ message: 'No commits between main and x' }) }, means: 'refused', write: 'none', of: 'POST pulls' },
  '422 head invalid': { rule: { action: invalid({ field: 'head', code: 'invalid' }) }, means: 'trouble', write: 'none', of: 'POST pulls' },
  '301 to the same host': { rule: { action: answer(301, {}, SAME) }, means: 'refused', code: 'github/moved', read: 'nothing', write: 'none', isSample: true },
  '307 to the same host': { rule: { action: answer(307, {}, SAME) }, means: 'refused', code: 'github/moved', read: 'nothing', write: 'none' },
  '301 to another host': { rule: { action: answer(301, {}, ELSEWHERE) }, means: 'refused', code: 'github/moved', read: 'trouble', write: 'none' },
  hang: { rule: { action: { kind: 'hang' } }, means: 'trouble', write: 'lost' },
  'hang after the effect': { rule: { action: { kind: 'hang', effect: true } }, means: 'trouble', write: 'done', of: 'writes' },
  reset: { rule: { action: { kind: 'reset', effect: false } }, means: 'trouble', write: 'lost', isSample: true },
  'reset after the effect': { rule: { action: { kind: 'reset', effect: true } }, means: 'trouble', write: 'done', of: 'writes' },
  'truncated JSON': { rule: { action: { kind: 'truncate' } }, means: 'trouble', write: 'done', cuts: true, isSample: true },
  'a body cut off': { rule: { action: { kind: 'truncate', cut: true } }, means: 'trouble', write: 'done', cuts: true },
  'HTML with 200': { rule: { action: { kind: 'html', status: 200 } }, means: 'trouble', write: 'lost' },
  'HTML with 200 after the effect': { rule: { action: { kind: 'html', status: 200, effect: true } }, means: 'trouble', write: 'done', of: 'writes' },
  lag: { rule: { action: { kind: 'lag', ...LONG_LAG } }, means: 'nothing', write: 'told', of: 'listed' },
  'short lag, answer lost': { rule: { action: LOST, lag: { lagMs: 15_000 } }, means: 'trouble', write: 'done', of: 'listed' },
  'long lag, answer lost': { rule: { action: LOST, lag: LONG_LAG }, means: 'trouble', write: 'done', of: 'listed' },
} as const satisfies Record<string, FaultRow>

type FaultName = keyof typeof FAULTS

const placeOf = (name: PlaceName): Place => PLACES[name]
const faultOf = (name: FaultName): FaultRow => FAULTS[name]
const isWrite = ({ route }: Place): boolean => !route.startsWith('GET ')
const isPolling = ({ during }: Place): boolean => during === 'poll' || during === 'discovery'

/** Why there is no such cell; null = there is. */
function whyLeftOut(placeName: PlaceName, faultName: FaultName): string | null {
  const [place, fault] = [placeOf(placeName), faultOf(faultName)]
  const reasons = {
    'a read has no effect': fault.of === 'writes' && !isWrite(place),
    'no list shows what it makes': fault.of === 'listed' && place.isListed !== true,
    'GitHub says this of pull requests only': fault.of === 'POST pulls' && placeName !== fault.of,
    'nothing can be cut of an empty answer': fault.cuts === true && place.isBare === true,
    'others show it here': place.isRepeated === true && fault.isSample !== true,
  }
  return Object.entries(reasons).find(([, holds]) => holds)?.[0] ?? null
}

/** What became of a cell; the table is about exactly this. */
type Outcome = Readonly<{
  /** Whether the fault happened at all. */
  struck: boolean
  phase: string
  code: string | null
  attempts: number
  workers: number
  /** What is on GitHub in the end. */
  branch: number
  pull: number
  comment: number
  label: number
  close: number
  reopened: number
  /** How often the write at this place was sent; of reads it does not matter. */
  sent: number | null
  /** Whether it was sent again before its time, see `isTooEarly`. */
  tooEarly: boolean
  /** How the first tick after the fault ended, where the tick itself met it. */
  tick: string | null
  /** Requests while a limit was stored, and writes after everything was over. */
  duringLimit: number
  late: number
  claims: number
}>

// biome-ignore format: one row
const CALM = { struck: true, attempts: 0, tooEarly: false, duringLimit: 0, late: 0, claims: 0, reopened: 0 } as const
const DONE = { branch: 1, pull: 1, comment: 1, label: 1, close: 1 } as const

/** The effects of a publication that came so far and no further. */
const upTo = (reached: number): typeof DONE =>
  Object.fromEntries(EFFECTS.map((name, index) => [name, index < reached ? 1 : 0])) as typeof DONE

/** What the rules say about a cell. */
function expectedOf(placeName: PlaceName, faultName: FaultName): Outcome {
  const [place, fault] = [placeOf(placeName), faultOf(faultName)]
  const means = isWrite(place) ? fault.means : (fault.read ?? fault.means)
  const base: Outcome = {
    ...CALM,
    ...DONE,
    phase: 'awaiting_review',
    code: null,
    workers: 1,
    sent: isWrite(place) ? timesSent(place, fault, means) : null,
    tick: isPolling(place) ? TICKS[means] : null,
  }
  const outcome = { ...base, ...endOf(place, means, fault.code) }
  const exception = EXCEPTIONS.find(
    (row) => row.place === placeName && (row.means === means || row.fault === faultName),
  )
  return { ...outcome, ...exception?.instead }
}

/** A tick that could not look has failed, unless it was asked to wait. */
// biome-ignore format: one row
const TICKS = { nothing: 'processed', trouble: 'failed', limit: 'rate_limited', absent: 'failed', refused: 'failed' } as const satisfies Record<Meaning, string>

/** Known without a look: once or twice. Unknown: a look finds it, or it is sent again after the settle time. */
function timesSent(place: Place, fault: FaultRow, means: Meaning): number {
  if (means === 'refused' || means === 'nothing') return 1
  if (means === 'absent' && place.absent === 'goes-on') return 1
  return fault.write === 'done' || fault.write === 'told' ? 1 : 2
}

/** Where the life of the issue comes to rest, when it is not a pull request that waits for review. */
function endOf(place: Place, means: Meaning, code = 'github/refused'): Partial<Outcome> {
  if (place.during === 'watch') return endOfWatch(place, means)
  // Ticks look again by themselves, whatever it was.
  if (isPolling(place)) return {}
  const reached = place.reached ?? 0
  const workers = place.during === 'prepare' ? 0 : 1
  // What a tick meets while a worker works says nothing against the run.
  if (means !== 'refused' || place.during === 'work' || place.refused === 'goes-on') return {}
  return { ...upTo(reached), phase: 'needs_attention', code, workers }
}

/** A human has to decide in any case; opening the issue again is left when GitHub refuses it for good. */
function endOfWatch(place: Place, means: Meaning): Partial<Outcome> {
  const isPull = place.route.includes('pull_number')
  const staysClosed = means === 'refused' && !isPull
  return {
    phase: 'needs_attention',
    code: 'publish/closed-unmerged',
    reopened: staysClosed ? 0 : 1,
  }
}

type Exception = Readonly<{ why: string; place: PlaceName; instead: Partial<Outcome> }> &
  Readonly<{ means?: Meaning; fault?: FaultName }>

// biome-ignore format: a table is read by its rows
const EXCEPTIONS: readonly Exception[] = [
  { why: 'GitHub refuses the second, which shows that there is a first', place: 'POST pulls', fault: 'long lag, answer lost', instead: { sent: 2 } },
  { why: 'the first comes to light late; the second is removed', place: 'POST comments', fault: 'long lag, answer lost', instead: { sent: 2 } },
  { why: 'a comment that is not there need not be removed', place: 'DELETE comment', means: 'absent', instead: { comment: 2 } },
  { why: 'its id is known, so it is removed again until GitHub confirms that', place: 'DELETE comment', means: 'trouble', instead: { sent: 2 } },
  { why: 'the second comment stays when GitHub refuses to remove it', place: 'DELETE comment', means: 'refused', instead: { comment: 2 } },
]

const names = <Key extends string>(table: Readonly<Record<Key, unknown>>): readonly Key[] =>
  Object.keys(table) as Key[]

/** Real milliseconds after which a request or a call of git is given up where one is made to hang. */
const SHORT_MS = 700
const SHORT_GIT_MS = 1500

let templates: Readonly<Record<Place['from'], RigTemplate>>

beforeAll(async () => {
  const start = await makeRigTemplate()
  const open = async (rig: InProcessRig): Promise<unknown> => rig.openIssue().then(rig.step)
  const leave: RigOptions = { onWorker: async (_, rig) => rig.askToLeave() }
  const worked = await goOn(start, leave, open)
  const pushed = await goOn(worked, {}, async (rig) => {
    await rig.control('addFault', { ...PLACES['GET pulls by head'], action: answer(500) })
    await rig.step()
    await rig.control('clearFaults', {})
    rig.advance(60_000)
  })
  const closed = await goOn(pushed, {}, async (rig) => {
    await rig.tickUntilQuiet(1)
    await rig.control('closeIssue', { repo: rig.repo, number: rig.entry(1)?.pull?.number ?? 0 })
    rig.advance(600_000)
  })
  templates = { start, worked, pushed, closed }
})
afterAll(() => {
  for (const template of Object.values(templates)) template.remove()
})

/** Plays one cell to its end and says what became of it. */
async function play(placeName: PlaceName, faultName: FaultName): Promise<Outcome> {
  const [place, fault] = [placeOf(placeName), faultOf(faultName)]
  const { route, pattern, occurrence = 1 } = place
  const arm = async (rig: InProcessRig): Promise<void> => {
    const where = pattern === undefined ? { route } : { route, pattern }
    await rig.control('addFault', { ...where, occurrence, ...fault.rule })
  }
  const options: RigOptions = {
    lightGit: place.from === 'start',
    ...(fault.rule.action.kind === 'hang' ? { httpTimeoutMs: SHORT_MS } : {}),
    ...(place.during === 'discovery' ? { config: { watched_repos: [], discover: true } } : {}),
    onWorker: async (_, rig) => {
      if (place.during !== 'work') return
      await arm(rig)
      await rig.tick(true)
    },
  }
  return withRig(templates[place.from], options, async (rig) => {
    if (pattern === 'since=') {
      // A first look that finds nothing, so that the next one asks for changes only.
      await rig.tick()
      rig.advance(600_000)
    }
    if (place.from === 'start') await rig.openIssue()
    if (placeName === 'DELETE comment') {
      // A comment that comes to light only after it was made again.
      const twin = { route: PLACES['POST comments'].route, occurrence: 1, action: LOST }
      await rig.control('addFault', { ...twin, lag: LONG_LAG })
    }
    if (place.during !== 'work') await arm(rig)
    const isWatched = place.from === 'closed'
    const reports = await rig.tickUntil(
      () => rig.isAtRest(1) && !(isWatched && rig.entry(1)?.phase === 'awaiting_review'),
    )
    const { entries } = await rig.control('readRequests', { route })
    const isGuarded = fault.write !== 'none' && place.isIdempotent !== true
    const armed = await rig.control('listFaults')
    return {
      ...(await restOf(rig, place.together)),
      struck: armed.every(({ fired }) => fired > 0),
      sent: isWrite(place) ? entries.length : null,
      tooEarly: isWrite(place) && isTooEarly(entries, isGuarded),
      tick: isPolling(place) ? (reports[0]?.outcome ?? null) : null,
    }
  })
}

async function restOf(rig: InProcessRig, together = 1) {
  const duringLimit = await rig.requestsDuringLimits(together)
  const late = await rig.laterWrites()
  return { ...(await rig.outcome(1)), duringLimit, late }
}

/** Where it may have happened, a write waits for the settle time; where it certainly has not, for the backoff. */
function isTooEarly(sent: readonly Readonly<{ at: number }>[], mayBeDone: boolean): boolean {
  const least = mayBeDone ? RIG_SETTLE_MS : RIG_BACKOFF_MS
  return sent.some(({ at }, index) => index > 0 && at - (sent[index - 1]?.at ?? 0) < least)
}

/** Of all cells: their place, and the phase in which they came to rest. */
const played: { place: string; phase: string }[] = []

/** The test of a cell that was played. */
function judge(place: string, result: Played<Outcome> | undefined, expected: Outcome): void {
  if (result === undefined || 'thrown' in result) throw result?.thrown
  expect(result.value).toEqual(expected)
  played.push({ place, phase: result.value.phase })
}

const faultsAt = (place: PlaceName): readonly FaultName[] =>
  names(FAULTS).filter((fault) => whyLeftOut(place, fault) === null)

describe.each(names(PLACES))('a fault of GitHub at %s', (place) => {
  let results: ReadonlyMap<FaultName, Played<Outcome>>

  beforeAll(async () => {
    results = await playAll(faultsAt(place), async (fault) => play(place, fault))
  }, 300_000)

  test.each(faultsAt(place))('%s', (fault) => {
    judge(place, results.get(fault), expectedOf(place, fault))
  })
})

test.each(names(PLACES))('%s meets every fault, or there is a reason why it cannot', (place) => {
  const reasons = names(FAULTS).flatMap((fault) => whyLeftOut(place, fault) ?? [])
  expect(faultsAt(place).length + reasons.length).toBe(names(FAULTS).length)
  expect(faultsAt(place).length).toBeGreaterThan(placeOf(place).isRepeated ? 7 : 20)
})

// Git's own network operations, by a git that strikes once, or by a hook of the repository.

const GIT_PLACES = {
  'git clone': { from: 'start', operation: 'clone', store: false },
  'git fetch': { from: 'start', operation: 'fetch', store: true },
  'git ls-remote': { from: 'worked', operation: 'ls-remote', store: true },
  'git push': { from: 'worked', operation: 'push', store: true },
} as const

type GitFault = Readonly<{
  /** Of the git that strikes: whether the operation is done first, and what it says then; null = nothing, ever. */
  isDone?: true
  says?: string | null
  /** What a hook of the repository says before it refuses; wanted in what people are told. */
  hook?: string
  /** Somebody else's commit is on the branch: before it is looked for, or right before it is pushed. */
  isForeign?: true
  write: FaultRow['write'] | 'refused' | 'foreign'
  /** What it may be a fault of; default: every operation. */
  of?: readonly (keyof typeof GIT_PLACES)[]
}>

const HANG_UP = 'fatal: the remote end hung up unexpectedly'
const RULES = 'error: GH013: Repository rule violations found for refs/heads/x.'

// biome-ignore format: a table is read by its rows
const GIT_FAULTS = {
  'connection refused': { says: "fatal: unable to access 'https://github.com/octo/app/': Failed to connect: Connection refused", write: 'none' },
  'login rejected': { says: "fatal: Authentication failed for 'https://github.com/octo/app/'", write: 'none' },
  'hang-up': { says: HANG_UP, write: 'lost' },
  'hang-up after the effect': { says: HANG_UP, isDone: true, write: 'done' },
  'HTTP 500 after the effect': { says: `error: RPC failed; HTTP 500 curl 22; ${HANG_UP}`, isDone: true, write: 'done' },
  hang: { says: null, write: 'lost' },
  'hang after the effect': { says: null, isDone: true, write: 'done' },
  'push protection': { hook: `${RULES} Push cannot contain secrets`, write: 'refused', of: ['git push'] },
  'a rule set': { hook: `${RULES} Commits must have verified signatures.`, write: 'refused', of: ['git push'] },
  'no workflow scope': { hook: 'refusing to allow an OAuth App to create or update workflow without `workflow` scope', write: 'refused', of: ['git push'] },
  'a foreign branch': { isForeign: true, write: 'foreign', of: ['git ls-remote', 'git push'] },
} as const satisfies Record<string, GitFault>

type GitPlaceName = keyof typeof GIT_PLACES
type GitFaultName = keyof typeof GIT_FAULTS

const gitFaultOf = (name: GitFaultName): GitFault => GIT_FAULTS[name]
const gitFaultsAt = (place: GitPlaceName): readonly GitFaultName[] =>
  names(GIT_FAULTS).filter((fault) => gitFaultOf(fault).of?.includes(place) ?? true)

function expectedOfGit(placeName: GitPlaceName, faultName: GitFaultName): Outcome {
  const fault = gitFaultOf(faultName)
  const isPush = placeName === 'git push'
  const refused = { ...CALM, ...upTo(0), phase: 'needs_attention', workers: 1, tick: null }
  if (fault.write === 'refused') return { ...refused, code: 'git/push-rejected', sent: 1 }
  if (fault.write === 'foreign') {
    // Their branch, and one comment that says why there is no pull request.
    return { ...refused, branch: 1, comment: 1, code: 'git/foreign-branch', sent: isPush ? 1 : 0 }
  }
  const sent = isPush && fault.write !== 'done' ? 2 : 1
  return { ...CALM, ...DONE, phase: 'awaiting_review', code: null, workers: 1, sent, tick: null }
}

async function playGit(placeName: GitPlaceName, faultName: GitFaultName): Promise<Outcome> {
  const { from, operation, store } = GIT_PLACES[placeName]
  const fault = gitFaultOf(faultName)
  const options: RigOptions = {
    store,
    ...(fault.says === null ? { gitTimeoutMs: SHORT_GIT_MS } : {}),
  }
  return withRig(templates[from], options, async (rig) => {
    const { hook = null } = fault
    if (hook === null) strike(rig, operation, fault)
    else refusePushes(rig, hook)
    if (from === 'start') await rig.openIssue()
    await rig.tickUntilQuiet(1)
    const pushes = rig.crossed.filter(({ call }) => call === 'pushNewBranch')
    if (hook !== null) expect(rig.entry(1)?.lastError?.message).toContain(hook)
    return {
      ...(await restOf(rig)),
      struck: existsSync(join(rig.root, 'struck')),
      sent: pushes.length,
      tooEarly: isTooEarly(pushes, fault.write === 'lost'),
      tick: null,
    }
  })
}

/** A git that goes wrong at the first call of an operation, and is the real one otherwise. */
function strike(rig: InProcessRig, operation: string, fault: GitFault): void {
  const foreign = `for last; do :; done
      git --git-dir='${rig.origin}' update-ref "refs/heads/\${last#*refs/heads/}" refs/heads/main`
  const says = fault.says === null ? 'exec sleep 60' : `echo "${fault.says}" >&2; exit 128`
  const script = `PATH=\${PATH#*:}
case " $* " in
  *" ${operation} "*)
    if mkdir '${join(rig.root, 'struck')}' 2>/dev/null; then
      ${fault.isDone ? 'git "$@" >/dev/null 2>&1' : ':'}
      ${fault.isForeign ? foreign : says}
    fi ;;
esac
exec git "$@"`
  writeProgram(join(rig.root, 'bin'), 'git', script)
}

function refusePushes(rig: InProcessRig, reason: string): void {
  const script = `echo '${reason}' >&2; mkdir '${join(rig.root, 'struck')}'; exit 1`
  writeProgram(join(rig.origin, 'hooks'), 'pre-receive', script)
}

function writeProgram(folder: string, name: string, script: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

describe.each(names(GIT_PLACES))('a fault of %s', (place) => {
  let results: ReadonlyMap<GitFaultName, Played<Outcome>>

  beforeAll(async () => {
    results = await playAll(gitFaultsAt(place), async (fault) => playGit(place, fault))
  }, 300_000)

  test.each(gitFaultsAt(place))('%s', (fault) => {
    judge(place, results.get(fault), expectedOfGit(place, fault))
  })
})

describe('a limit that one of four runs meets', () => {
  test('holds back all of them and the next processes, and they go on at moments of their own', async () => {
    const numbers = [1, 2, 3, 4]
    const config = { worker_parallelism: 4, max_runs_per_repo: 0 }
    const random = Array.from({ length: 11 }, (_, index) => index / 11)
    const options = { lightGit: true, config, random }
    await withRig(templates.start, options, async (rig) => {
      for (const _ of numbers) await rig.openIssue()
      const { route } = PLACES['POST pulls']
      const action = { kind: 'secondary-limit', retryAfterSeconds: 90 } as const
      await rig.control('addFault', { route, occurrence: 1, action })
      await rig.tick()
      const ends = await rig.runAll()
      expect(ends.map(({ kind }) => kind)).toEqual(numbers.map(() => 'waiting'))

      const until = rig.limits[0]?.until ?? 0
      const releases = ends.map(({ journal }) => Date.parse(journal.notBefore ?? '') - until)
      expect(new Set(releases).size).toBe(numbers.length)
      expect(Math.min(...releases)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...releases)).toBeLessThan(LIMITS.rateLimitSpreadMs)
      await rig.tickUntil(() => numbers.every((number) => rig.isAtRest(number)))
      expect(await rig.requestsDuringLimits(numbers.length)).toBe(0)
      for (const number of numbers) {
        expect(await rig.outcome(number)).toMatchObject({ ...DONE, phase: 'awaiting_review' })
      }
    })
  })
})

describe('a GitHub that answers nothing any more', () => {
  test.each([
    ['start', 'failed', undefined],
    ['worked', 'processed', 'waiting'],
    ['pushed', 'processed', 'waiting'],
  ] as const)('keeps nobody beyond the deadline of a request: %s', async (from, told, end) => {
    await withRig(templates[from], { httpTimeoutMs: SHORT_MS }, async (rig) => {
      if (from === 'start') await rig.openIssue()
      await rig.control('addFault', { action: { kind: 'hang' } })
      const begun = performance.now()
      const { outcome } = await rig.tick()
      const [run] = await rig.runAll()
      // One request after the other at most: a poll, or the first request of a run.
      expect(performance.now() - begun).toBeLessThan(10 * SHORT_MS)
      expect([outcome, run?.kind]).toEqual([told, end])
      expect(rig.claims.list().filter(({ key }) => rig.claims.isHeld(key))).toEqual([])

      await rig.control('clearFaults', {})
      await rig.tickUntilQuiet(1)
      expect(await rig.outcome(1)).toMatchObject({ ...DONE, workers: 1, attempts: 0 })
    })
  })
})

/** One line for each place, and one for all. */
function summary(): string {
  const lineOf = (name: string, cells: typeof played): string => {
    const count = (phase: string): number => cells.filter((cell) => cell.phase === phase).length
    const ends = `${count('awaiting_review')} published, ${count('needs_attention')} need a human`
    return `${name}: ${cells.length} cells, ${ends}, ${count('skipped')} skipped`
  }
  const places = [...new Set(played.map(({ place }) => place))]
  const at = (place: string): typeof played => played.filter((cell) => cell.place === place)
  const lines = places.map((place) => lineOf(`  ${place}`, at(place)))
  return [...lines, lineOf('fault matrix', played)].join('\n')
}

afterAll(() => {
  process.stdout.write(`${summary()}\n`)
})
