import type { ApiRequest } from './api-request.ts'
import type { Reply } from './replies.ts'
import type { ServerContext } from './server-context.ts'
import type { Issue, PullIssue, Repository } from './state.ts'

/** What answers at an endpoint; the path names what it is about: nothing more, a repository, or one of its issues. */
export type Endpoint<About extends readonly unknown[] = []> = (
  context: ServerContext,
  request: ApiRequest,
  ...about: About
) => Reply | Promise<Reply>

export type RepositoryEndpoint = Endpoint<[repository: Repository]>

export type IssueEndpoint = Endpoint<[repository: Repository, issue: Issue]>

export type PullEndpoint = Endpoint<[repository: Repository, issue: PullIssue]>
