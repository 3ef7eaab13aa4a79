import { describeThrown, isFault } from '../core/fault.ts'
import * as issues from './control-issues.ts'
import * as repositories from './control-repositories.ts'
import * as service from './control-service.ts'
import type { Hub } from './hub.ts'
import { fieldsOf } from './request-fields.ts'
import { saveWorld } from './world-file.ts'

// Every verb of the control interface, `POST /_control/<verb>` with a JSON object. Who starts the embedded
// GitHub is its operator; there is no other way in, and it listens on loopback only.

/** They change the content, which is saved after each. */
const CONTENT_VERBS = {
  createAccount: repositories.createAccount,
  createToken: repositories.createToken,
  revokeToken: repositories.revokeToken,
  createRepository: repositories.createRepository,
  renameRepository: repositories.renameRepository,
  editRepository: repositories.editRepository,
  setRole: repositories.setRole,
  createLabel: repositories.createLabel,
  pushCommit: repositories.pushCommit,
  deleteBranch: repositories.deleteBranch,
  createIssue: issues.createIssue,
  createIssues: issues.createIssues,
  editIssue: issues.editIssue,
  closeIssue: issues.closeIssue,
  reopenIssue: issues.reopenIssue,
  labelIssue: issues.labelIssue,
  unlabelIssue: issues.unlabelIssue,
  commentIssue: issues.commentIssue,
  deleteComment: issues.deleteComment,
  deleteIssue: issues.deleteIssue,
  transferIssue: issues.transferIssue,
  createPull: issues.createPull,
  mergePull: issues.mergePull,
} as const satisfies Record<string, (hub: Hub, params: never) => unknown>

/** They only read, or change the service but not the content. */
const SERVICE_VERBS = {
  readRepository: repositories.readRepository,
  readIssue: issues.readIssue,
  listIssues: issues.listIssues,
  addFault: service.addFault,
  listFaults: service.listFaults,
  clearFaults: service.clearFaults,
  configure: service.configure,
  readClock: service.readClock,
  setRateLimit: service.setRateLimit,
  readRequests: service.readRequests,
  clearRequests: service.clearRequests,
} as const satisfies Record<string, (hub: Hub, params: never) => unknown>

const VERBS = { ...CONTENT_VERBS, ...SERVICE_VERBS }

type Verbs = typeof VERBS
export type ControlVerb = keyof Verbs
/** What a verb takes besides the hub. */
export type ControlParams<Verb extends ControlVerb> = Parameters<Verbs[Verb]>[1]
export type ControlResult<Verb extends ControlVerb> = Awaited<ReturnType<Verbs[Verb]>>

export type ControlOutcome =
  | Readonly<{ kind: 'done'; result: unknown }>
  | Readonly<{ kind: 'refused'; reason: string }>

/** Carries out a verb; a refusal or a fault on the way becomes its reason. */
export async function control(hub: Hub, verb: string, params: unknown): Promise<ControlOutcome> {
  if (!isVerb(verb)) return { kind: 'refused', reason: `there is no verb ${verb}` }
  // Only control-client.ts calls, and the compiler has checked there that the verb takes these parameters.
  const act: (hub: Hub, params: never) => unknown = VERBS[verb]
  try {
    const result = await hub.oneAtATime(async () => {
      const value = await act(hub, fieldsOf(params) as never)
      if (verb in CONTENT_VERBS) saveWorld(hub.root, hub.world)
      return value
    })
    return { kind: 'done', result: result ?? null }
  } catch (thrown) {
    const known = isFault(thrown) && thrown.code === 'demo/refused'
    const reason = known ? String(thrown.details['reason']) : describeThrown(thrown)
    return { kind: 'refused', reason }
  }
}

function isVerb(name: string): name is ControlVerb {
  return Object.hasOwn(VERBS, name)
}
