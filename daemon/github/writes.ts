import { fault } from '../core/fault.ts'
import { formatIssue, formatRepository } from '../core/issue-key.ts'
import type { GitHub } from '../core/ports.ts'
import type { Answered, Connection } from './connection.ts'
import {
  describeRequest,
  type HttpRequest,
  inRepository,
  type RequestBuilder,
} from './http-request.ts'
import { toComment, toPullRequest } from './map-answer.ts'
import { contentOf, isSuccess, whyUnreadable } from './read-pages.ts'
import { answerFault, badAnswer } from './request-fault.ts'

type Writes = Pick<
  GitHub,
  'createPullRequest' | 'createComment' | 'deleteComment' | 'removeLabel' | 'closeIssue'
>

/** Each is sent once and never again by itself; the caller knows from `effect` what may have happened (P§3). */
export function writes(deps: Readonly<{ connection: Connection; build: RequestBuilder }>): Writes {
  const { connection, build } = deps
  return {
    createPullRequest: async (repository, pull) => {
      const route = 'POST /repos/{owner}/{repo}/pulls'
      const request = build(formatRepository(repository), route, {
        ...inRepository(repository),
        title: pull.title,
        body: pull.body,
        head: pull.headBranch,
        base: pull.baseBranch,
      })
      const answer = await connection.exchange(request)
      const refusal = answer.status === 422 ? refusalOf(answer.reason) : null
      if (refusal !== null) return { kind: refusal }
      return { kind: 'created', pull: created(request, answer, toPullRequest) }
    },

    createComment: async (key, body) => {
      const route = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
        body,
      })
      return created(request, await connection.exchange(request), toComment)
    },

    deleteComment: async (repository, id) => {
      const route = 'DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}'
      const request = build(`comment ${id} in ${formatRepository(repository)}`, route, {
        ...inRepository(repository),
        comment_id: id,
      })
      const answer = await connection.exchange(request)
      if (!isSuccess(answer) && !isGone(answer)) throw answerFault(request, answer)
    },

    removeLabel: async (key, label) => {
      const route = 'DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
        name: label,
      })
      refuseUnaddressable(request, label)
      const answer = await connection.exchange(request)
      if (answer.status === 404 && /label does not exist/i.test(answer.reason)) return
      if (!isSuccess(answer)) throw answerFault(request, answer)
    },

    closeIssue: async (key) => {
      const route = 'PATCH /repos/{owner}/{repo}/issues/{issue_number}'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
        state: 'closed',
        state_reason: 'completed',
      })
      const answer = await connection.exchange(request)
      if (!isSuccess(answer)) throw answerFault(request, answer)
    },
  }
}

/** What GitHub made. Faults: as answerFault; github/bad-answer when it was made but the answer is unusable. */
function created<T>(request: HttpRequest, answer: Answered, map: (value: unknown) => T | null): T {
  if (!isSuccess(answer)) throw answerFault(request, answer)
  const content = contentOf(answer)
  if (content === null) throw badAnswer(request, whyUnreadable(answer))
  const value = map(content.value)
  if (value === null) throw badAnswer(request, 'what it made lacks its basic fields')
  return value
}

// GitHub's texts for a pull request it does not make; there are no codes for them.
function refusalOf(reason: string): 'exists' | 'no-commits' | null {
  if (/pull request already exists/i.test(reason)) return 'exists'
  return /no commits between/i.test(reason) ? 'no-commits' : null
}

const isGone = (answer: Answered): boolean => answer.status === 404 || answer.status === 410

/** Such a name would make the URL of the issue itself, or of all its labels. */
function refuseUnaddressable(request: HttpRequest, label: string): void {
  if (!['', '.', '..'].includes(label.trim())) return
  throw fault('github/refused', {
    request: describeRequest(request),
    status: 'not sent',
    reason: 'a label of this name cannot be addressed',
    effect: 'none',
  })
}
