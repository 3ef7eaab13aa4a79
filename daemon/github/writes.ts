import { type Fault, fault } from '../core/fault.ts'
import { formatIssue, formatRepository, type IssueKey } from '../core/issue-key.ts'
import type { GitHub } from '../core/ports.ts'
import type { RepositoryLabels } from '../core/repository-labels.ts'
import type { Answered, Connection } from './connection.ts'
import {
  describeRequest,
  type HttpRequest,
  inRepository,
  type RequestBuilder,
} from './http-request.ts'
import { fieldOf, textOf, toComment, toPullRequest } from './map-answer.ts'
import { contentOf, isSuccess, whyUnreadable } from './read-pages.ts'
import { answerFault, badAnswer, requestFault } from './request-fault.ts'

type Writes = Pick<
  GitHub,
  | 'createPullRequest'
  | 'createComment'
  | 'deleteComment'
  | 'removeLabel'
  | 'closeIssue'
  | 'reopenIssue'
> &
  Pick<RepositoryLabels, 'createLabel'>

/** Each is sent once and never again by itself; the caller knows from `effect` what may have happened (P§3). */
export function writes(deps: Readonly<{ connection: Connection; build: RequestBuilder }>): Writes {
  const { connection, build } = deps
  const setState = async (
    key: IssueKey,
    state: Readonly<Record<string, string>>,
  ): Promise<void> => {
    const route = 'PATCH /repos/{owner}/{repo}/issues/{issue_number}'
    const place = { ...inRepository(key), issue_number: key.number }
    const request = build(formatIssue(key), route, { ...place, ...state })
    requireDone(request, await connection.exchange(request))
  }
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
      if (isAbout(answer, 'head', 'invalid')) throw headFault(request, answer)
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
      if (!isGone(answer)) requireDone(request, answer)
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
      requireDone(request, answer)
    },

    closeIssue: async (key) => setState(key, { state: 'closed', state_reason: 'completed' }),
    reopenIssue: async (key) => setState(key, { state: 'open' }),

    createLabel: async (repository, label) => {
      const route = 'POST /repos/{owner}/{repo}/labels'
      const request = build(formatRepository(repository), route, {
        ...inRepository(repository),
        ...label,
      })
      const answer = await connection.exchange(request)
      if (isAbout(answer, 'name', 'already_exists')) return 'exists'
      requireDone(request, answer)
      return 'created'
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

/**
 * For a write whose answer holds nothing we need. Faults: as answerFault; github/bad-answer when a page came,
 * which is from somebody between us and GitHub.
 */
function requireDone(request: HttpRequest, answer: Answered): void {
  if (!isSuccess(answer)) throw answerFault(request, answer)
  const isPage = /^text\/html\b/i.test(answer.headers.get('content-type') ?? '')
  if (isPage) throw badAnswer(request, 'a page of HTML')
}

// GitHub's texts for a pull request it does not make; there are no codes for them.
function refusalOf(reason: string): 'exists' | 'no-commits' | null {
  if (/pull request already exists/i.test(reason)) return 'exists'
  return /no commits between/i.test(reason) ? 'no-commits' : null
}

/** Refused for the sake of a field, as GitHub's validation errors say. */
function isAbout(answer: Answered, field: string, code: string): boolean {
  const errors = answer.status === 422 ? fieldOf(contentOf(answer)?.value, 'errors') : null
  if (!Array.isArray(errors)) return false
  return errors.some((each) => textOf(each, 'field') === field && textOf(each, 'code') === code)
}

/**
 * Not for good, unlike other refusals: we have pushed the branch, and GitHub's servers learn of a push one
 * after the other (case C8).
 */
function headFault(request: HttpRequest, { status, reason }: Answered): Fault {
  const details = { request: describeRequest(request), status, reason }
  return requestFault(request, 'none', fault('github/failed', details))
}

const isGone = (answer: Answered): boolean => answer.status === 404 || answer.status === 410

/** Such a name would make the URL of the issue itself, or of all its labels. */
function refuseUnaddressable(request: HttpRequest, label: string): void {
  if (!['', '.', '..'].includes(label.trim())) return
  const reason = 'a label of this name cannot be addressed'
  const details = { request: describeRequest(request), status: 'not sent', reason }
  throw requestFault(request, 'none', fault('github/refused', details))
}
