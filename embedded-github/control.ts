// Every verb of the control interface, `POST /_control/<verb>` with a JSON object. The process that starts the
// embedded GitHub is its operator; there is no other way in, and it listens on loopback only.

import { describeThrown, isFaultOf, reasonOf } from '../daemon/core/fault.ts'
import { createAccount, createToken, revokeToken } from './control-accounts.ts'
import { deleteBranch, pushCommit } from './control-branches.ts'
import {
  closeIssue,
  commentIssue,
  createIssue,
  createIssues,
  deleteComment,
  deleteIssue,
  editIssue,
  labelIssue,
  reopenIssue,
  transferIssue,
  unlabelIssue,
} from './control-issues.ts'
import { createPull, mergePull } from './control-pulls.ts'
import {
  createLabel,
  createRepository,
  editRepository,
  readRepository,
  renameRepository,
  setRole,
} from './control-repositories.ts'
import { listIssues, readIssue } from './control-views.ts'
import { fieldsOf } from './request-fields.ts'
import type { ServerContext } from './server-context.ts'
import { saveState } from './state-file.ts'
import {
  addFault,
  clearFaults,
  clearRequests,
  configure,
  listFaults,
  readClock,
  readRequests,
  setRateLimit,
} from './test-controls.ts'

/** They change the content, which is saved after each. */
const CONTENT_VERBS = {
  createAccount,
  createToken,
  revokeToken,
  createRepository,
  renameRepository,
  editRepository,
  setRole,
  createLabel,
  pushCommit,
  deleteBranch,
  createIssue,
  createIssues,
  editIssue,
  closeIssue,
  reopenIssue,
  labelIssue,
  unlabelIssue,
  commentIssue,
  deleteComment,
  deleteIssue,
  transferIssue,
  createPull,
  mergePull,
} as const satisfies Record<string, (context: ServerContext, params: never) => unknown>

/** They only read, or change the service but not the content. */
const SERVICE_VERBS = {
  readRepository,
  readIssue,
  listIssues,
  addFault,
  listFaults,
  clearFaults,
  configure,
  readClock,
  setRateLimit,
  readRequests,
  clearRequests,
} as const satisfies Record<string, (context: ServerContext, params: never) => unknown>

const VERBS = { ...CONTENT_VERBS, ...SERVICE_VERBS }

type Verbs = typeof VERBS

export type ControlVerb = keyof Verbs

/** What a verb takes besides the context. */
export type ControlParams<Verb extends ControlVerb> = Parameters<Verbs[Verb]>[1]

export type ControlResult<Verb extends ControlVerb> = Awaited<ReturnType<Verbs[Verb]>>

type ControlOutcome =
  | Readonly<{ kind: 'done'; result: unknown }>
  | Readonly<{ kind: 'refused'; reason: string }>

/** Carries out a verb; a refusal or a fault on the way becomes its reason. */
export async function control(
  context: ServerContext,
  verb: string,
  params: unknown,
): Promise<ControlOutcome> {
  if (!isVerb(verb)) return { kind: 'refused', reason: `there is no verb ${verb}` }
  // Only control-client.ts calls, and the compiler has checked there that the verb takes these parameters.
  const act: (context: ServerContext, params: never) => unknown = VERBS[verb]
  try {
    const result = await context.oneAtATime(async () => {
      const value = await act(context, fieldsOf(params) as never)
      if (verb in CONTENT_VERBS) saveState(context.root, context.state)
      return value
    })
    return { kind: 'done', result: result ?? null }
  } catch (thrown) {
    const isOurs = isFaultOf(thrown, 'demo/refused')
    return { kind: 'refused', reason: isOurs ? reasonOf(thrown) : describeThrown(thrown) }
  }
}

function isVerb(name: string): name is ControlVerb {
  return Object.hasOwn(VERBS, name)
}
