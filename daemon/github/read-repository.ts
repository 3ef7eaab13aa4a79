import { formatRepository } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { GitHub } from '../core/ports.ts'
import { answerFault } from './answer-fault.ts'
import { inRepository } from './http-request.ts'
import { toActor, toPullRequest, toRepository } from './map-repository.ts'
import { readAllPages } from './read-all-pages.ts'
import { type Reading, required } from './read-issues.ts'

type RepositoryReads = Pick<GitHub, 'viewer' | 'repository' | 'pullRequest' | 'pullRequestsByHead'>

export function repositoryReads(reading: Reading): RepositoryReads {
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
