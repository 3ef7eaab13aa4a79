// The operations that read.

import { formatIssue, formatRepository, repositoryId } from '../core/issue-key.ts'
import { isSameLabel } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'
import type { GitHub, IssueSummary, Poll } from '../core/ports.ts'
import { type RepositoryLabels } from '../core/repository-labels.ts'
import { type HttpRequest, inRepository, type RequestBuilder } from './http-request.ts'
import {
  idOf,
  movedTo,
  textOf,
  toActor,
  toComment,
  toIssue,
  toListedRepository,
  toPullRequest,
  toRepository,
  toTimelineEvent,
} from './map-answer.ts'
import { type Listing, type PageBounds, type ReadPage, readAllPages } from './read-pages.ts'
import { answerFault, badAnswer } from './request-fault.ts'

type IssueReads = Pick<GitHub, 'pollLabel' | 'pollChanges' | 'issue' | 'comments' | 'timeline'>

/** What reads are made of. */
export type ReadOutcome = Readonly<{
  build: RequestBuilder
  read: ReadPage
  /** For what is asked for again and again. */
  readCached: ReadPage
  bounds: PageBounds
}>

export function issueReads(reading: ReadOutcome): IssueReads {
  const { build, read, readCached, bounds } = reading
  return {
    pollLabel: async (repository, label) => {
      const request = build(formatRepository(repository), 'GET /repos/{owner}/{repo}/issues', {
        ...inRepository(repository),
        state: 'open',
        ...labelFilter(label),
        per_page: LIMITS.pageSize,
        sort: 'updated',
        direction: 'desc',
      })
      return onlyLabelled(toPoll(await readAllPages(readCached, bounds, request)), label)
    },

    pollChanges: async (repository, since) => {
      const request = build(formatRepository(repository), 'GET /repos/{owner}/{repo}/issues', {
        ...inRepository(repository),
        state: 'all',
        since: toSeconds(since),
        sort: 'updated',
        direction: 'asc',
        per_page: LIMITS.pageSize,
      })
      return toPoll(await readAllPages(readCached, bounds, request))
    },

    issue: async (key) => {
      const route = 'GET /repos/{owner}/{repo}/issues/{issue_number}'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
      })
      const page = await read(request)
      if (page === null) return null
      const issue = toIssue(page.value)
      if (issue === null) throw badAnswer(request, 'an issue without number or time of change')
      return { ...issue, movedTo: movedTo(page.value, key) }
    },

    comments: async (key, since) => {
      const route = 'GET /repos/{owner}/{repo}/issues/{issue_number}/comments'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
        ...(since === undefined ? {} : { since: toSeconds(since) }),
        per_page: LIMITS.pageSize,
      })
      const listing = await readAllPages(read, bounds, request)
      const comments = listing.items.map((item) => required(request, toComment(item), 'comment'))
      const byId = new Map(comments.map((comment) => [comment.id, comment]))
      return { value: [...byId.values()], serverTime: listing.serverTime }
    },

    timeline: async (key) => {
      const route = 'GET /repos/{owner}/{repo}/issues/{issue_number}/timeline'
      const request = build(formatIssue(key), route, {
        ...inRepository(key),
        issue_number: key.number,
        per_page: LIMITS.pageSize,
      })
      const listing = await readAllPages(read, bounds, request)
      return { value: listing.items.map(toTimelineEvent), serverTime: listing.serverTime }
    },
  }
}

/** An item of a list that has to be complete. Faults: github/bad-answer. */
function required<T>(request: HttpRequest, item: T | null, what: string): T {
  if (item === null) throw badAnswer(request, `a ${what} without its basic fields`)
  return item
}

/** GitHub takes commas as "and", so a label with one cannot be asked for; all are read and looked through. */
function labelFilter(label: string): Readonly<Record<string, string>> {
  return label.includes(',') ? {} : { labels: label }
}

function onlyLabelled(poll: Poll, label: string): Poll {
  const carries = (issue: IssueSummary): boolean =>
    issue.labels.some((each) => isSameLabel(each, label))
  const unmatched = label.includes(',') ? [] : poll.issues.filter((issue) => !carries(issue))
  return {
    ...poll,
    issues: poll.issues.filter(carries),
    malformed: [
      ...poll.malformed,
      ...unmatched.map(({ number }) => `#${number} is listed without the label`),
    ],
  }
}

/** What cannot be read as an issue is told and left out. An issue that moved between pages counts once. */
function toPoll(listing: Listing): Poll {
  const issues = new Map<number, IssueSummary>()
  const malformed: string[] = []
  for (const [index, item] of listing.items.entries()) {
    const issue = toIssue(item)
    const known = issue === null ? undefined : issues.get(issue.number)
    if (issue === null) malformed.push(describeMalformed(item, index))
    else if (known === undefined || known.updatedAt <= issue.updatedAt) {
      issues.set(issue.number, issue)
    }
  }
  const { unchanged, serverTime } = listing
  return { unchanged, issues: [...issues.values()], malformed, serverTime }
}

function describeMalformed(item: unknown, index: number): string {
  const number = idOf(item, 'number')
  if (number === null) return `entry ${index + 1} of the list has no usable number`
  return `#${number} has no usable time of change`
}

/** GitHub's times have whole seconds; rounded down, nothing is missed. */
function toSeconds(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z')
}

type RepositoryReads = Pick<
  GitHub,
  'viewer' | 'repository' | 'accessibleRepositories' | 'pullRequest' | 'pullRequestsByHead'
> &
  Pick<RepositoryLabels, 'labels'>

export function repositoryReads(reading: ReadOutcome): RepositoryReads {
  const { build, read, readCached, bounds } = reading
  return {
    viewer: async () => {
      const request = build('the account of the token', 'GET /user')
      const page = await read(request)
      if (page === null) throw answerFault(request, { status: 404, reason: '' })
      return required(request, toActor(page.value), 'user')
    },

    repository: async (repository) => {
      const subject = formatRepository(repository)
      const request = build(subject, 'GET /repos/{owner}/{repo}', inRepository(repository))
      const page = await read(request)
      return page === null ? null : required(request, toRepository(page.value), 'repository')
    },

    accessibleRepositories: async () => {
      const request = build('the repositories of the token', 'GET /user/repos', {
        per_page: LIMITS.pageSize,
        sort: 'full_name',
      })
      const { items } = await readAllPages(readCached, bounds, request)
      const names = items.flatMap((item) => {
        const { name, isRetired } = required(request, toListedRepository(item), 'repository')
        return isRetired ? [] : [name]
      })
      return [...new Map(names.map((name) => [repositoryId(name), name])).values()]
    },

    labels: async (repository) => {
      const route = 'GET /repos/{owner}/{repo}/labels'
      const request = build(formatRepository(repository), route, {
        ...inRepository(repository),
        per_page: LIMITS.pageSize,
      })
      const { items } = await readAllPages(read, bounds, request)
      return items.map((item) => required(request, textOf(item, 'name'), 'label'))
    },

    pullRequest: async (repository, number) => {
      const subject = `${formatRepository(repository)}#${number}`
      const request = build(subject, 'GET /repos/{owner}/{repo}/pulls/{pull_number}', {
        ...inRepository(repository),
        pull_number: number,
      })
      const page = await readCached(request)
      return page === null ? null : required(request, toPullRequest(page.value), 'pull request')
    },

    pullRequestsByHead: async (repository, branch) => {
      const request = build(formatRepository(repository), 'GET /repos/{owner}/{repo}/pulls', {
        ...inRepository(repository),
        state: 'all',
        head: `${repository.owner}:${branch}`,
        per_page: LIMITS.pageSize,
      })
      const listing = await readAllPages(read, bounds, request)
      const pulls = listing.items.map((item) =>
        required(request, toPullRequest(item), 'pull request'),
      )
      const byNumber = new Map(pulls.map((pull) => [pull.number, pull]))
      return { value: [...byNumber.values()], serverTime: listing.serverTime }
    },
  }
}
