// The endpoints of the sender, of repositories, their labels and their pull requests.

import { describeWindow, findAccount, hasRole, mayAct, roleOf, windowOf } from './accounts.ts'
import {
  bodyProblems,
  byViewer,
  created,
  fieldsOf,
  inOrder,
  invalid,
  labelNames,
  listingProblems,
  listReply,
  matchesState,
  notAccessible,
  notAllowed,
  notFound,
  ok,
  type Reply,
  requiresAuthentication,
  textField,
  textProblems,
  titleProblems,
} from './api-messages.ts'
import { readCommits } from './git-commits.ts'
import {
  type Endpoint,
  gitPathOf,
  type Hub,
  type IssueEndpoint,
  type PullEndpoint,
  type RepositoryEndpoint,
  visibleIn,
} from './hub.ts'
import { changeIssue, stateProblems } from './issue-endpoints.ts'
import { addLabels, ensureLabel, findLabel, labelsOf, removeLabel } from './issues.ts'
import { comparePull, openPull } from './pulls.ts'
import { fullName, readBranch, repositoryById } from './repositories.ts'
import { restLabel } from './rest-issue.ts'
import { restBranch, restCommit, restFile, restPull, restRef, restSimplePull } from './rest-pull.ts'
import {
  privateUser,
  restFullRepository,
  restPermission,
  restRepository,
} from './rest-repository.ts'
import { isPull, type Pull, type Repository } from './world.ts'

export const getRepository: RepositoryEndpoint = (hub, request, repository) => {
  return ok(restFullRepository(hub, repository, request.viewerId))
}

export const getPermission: RepositoryEndpoint = (hub, request, repository) => {
  const account = findAccount(hub.world, request.params['username'] ?? '')
  return account === null ? notFound() : ok(restPermission(hub, repository, account))
}

export const getBranch: RepositoryEndpoint = async (hub, request, repository) => {
  const name = request.params['branch'] ?? ''
  const path = gitPathOf(hub, repository)
  const oid = readBranch(path, name)
  const [commit] = oid === null ? [] : await readCommits(path, [oid])
  if (commit === undefined) return notFound('Branch not found')
  return ok(restBranch(hub, repository, name, commit))
}

/** Branches only: the embedded GitHub has no tags. */
export const getRef: RepositoryEndpoint = (hub, request, repository) => {
  const ref = request.params['ref'] ?? ''
  const name = ref.startsWith('heads/') ? ref.slice('heads/'.length) : ''
  const oid = readBranch(gitPathOf(hub, repository), name)
  return oid === null ? notFound() : ok(restRef(hub, repository, `refs/${ref}`, oid))
}

export const getUser: Endpoint = (hub, request) => {
  const account = hub.world.accounts.find(({ id }) => id === request.viewerId)
  return account === undefined ? requiresAuthentication() : ok(privateUser(hub, account))
}

/** Those the account owns or collaborates in. */
export const listOwnRepositories: Endpoint = (hub, request) => {
  const { viewerId, query } = request
  if (viewerId === null) return requiresAuthentication()
  const sign = query.get('direction') === 'desc' ? -1 : 1
  const own = hub.world.repositories
    .filter((repository) => isOwn(hub, repository, viewerId))
    .sort((a, b) => sign * fullName(a).localeCompare(fullName(b), 'en'))
  return listReply(request, own, (repository) => restRepository(hub, repository, viewerId))
}

function isOwn(hub: Hub, repository: Repository, viewerId: number): boolean {
  const isCollaborator = repository.collaborators.some(({ accountId }) => accountId === viewerId)
  const role = roleOf(hub.world, repository, viewerId)
  return isCollaborator ? hasRole(role, 'read') : role === 'admin'
}

/** Asking does not count. */
export const getRateLimit: Endpoint = (hub, request) => {
  const core = describeWindow(windowOf(hub.limits, request.viewerId, request.now))
  const search = { limit: 30, used: 0, remaining: 30, reset: core.reset }
  return ok({ resources: { core, search }, rate: core })
}

const MAX_NAME_CHARACTERS = 50

export const listIssueLabels: IssueEndpoint = (hub, request, repository, issue) => {
  const labels = labelsOf(repository, issue)
  return listReply(request, labels, (label) => restLabel(hub, repository, label))
}

/** Labels the repository does not have yet are made. */
export const addIssueLabels: IssueEndpoint = (hub, request, repository, issue) => {
  const { body } = request
  const names = labelNames(Array.isArray(body) ? body : fieldsOf(body)['labels'])
  if (names === null || names.some(isTooLong)) {
    return invalid({ resource: 'Label', field: 'name', code: 'invalid' })
  }
  addLabels(hub.world, repository, issue, names, byViewer(request))
  return ok(labelsOf(repository, issue).map((label) => restLabel(hub, repository, label)))
}

export const removeIssueLabel: IssueEndpoint = (hub, request, repository, issue) => {
  const name = request.params['name'] ?? ''
  const isRemoved = removeLabel(hub.world, repository, issue, name, byViewer(request))
  if (!isRemoved) return notFound('Label does not exist')
  return ok(labelsOf(repository, issue).map((label) => restLabel(hub, repository, label)))
}

export const listLabels: RepositoryEndpoint = (hub, request, repository) => {
  return listReply(request, repository.labels, (label) => restLabel(hub, repository, label))
}

export const createLabel: RepositoryEndpoint = (hub, request, repository) => {
  const fields = fieldsOf(request.body)
  const name = textField(fields, 'name')
  const color = textField(fields, 'color')
  if (name === null || name.trim() === '') {
    return invalid({ resource: 'Label', field: 'name', code: 'missing_field' })
  }
  if (isTooLong(name)) return invalid({ resource: 'Label', field: 'name', code: 'invalid' })
  if (color !== null && !/^[0-9a-f]{6}$/i.test(color)) {
    return invalid({ resource: 'Label', field: 'color', code: 'invalid' })
  }
  if (findLabel(repository, name) !== null) {
    return invalid({ resource: 'Label', field: 'name', code: 'already_exists' })
  }
  const description = textField(fields, 'description') ?? ''
  const look = color === null ? { description } : { color, description }
  const label = restLabel(hub, repository, ensureLabel(hub.world, repository, name, look))
  return created(label, label.url)
}

export const getLabel: RepositoryEndpoint = (hub, request, repository) => {
  const label = findLabel(repository, request.params['name'] ?? '')
  return label === null ? notFound() : ok(restLabel(hub, repository, label))
}

const isTooLong = (name: string): boolean => Array.from(name).length > MAX_NAME_CHARACTERS

/** A `head` that is not `owner:branch` is no filter at all, as on GitHub. */
export const listPulls: RepositoryEndpoint = (hub, request, repository) => {
  const { query } = request
  const problems = listingProblems('PullRequest', query)
  if (problems.length > 0) return invalid(...problems)
  const base = query.get('base')
  const matching = repository.issues
    .filter(isPull)
    .filter(
      (issue) =>
        issue.departure === null &&
        matchesState(issue, query) &&
        (base === null || base === issue.pull.baseBranch) &&
        isFrom(hub, issue.pull, query.get('head') ?? ''),
    )
  const isByCreation = (query.get('sort') ?? 'created') === 'created'
  const ordered = inOrder(matching, query, isByCreation ? 'desc' : 'asc').filter(isPull)
  const visible = visibleIn(hub.lag, ordered, request.now)
  return listReply(request, visible, (issue) =>
    restSimplePull(hub, repository, issue, request.viewerId),
  )
}

function isFrom(hub: Hub, pull: Pull, head: string): boolean {
  const colon = head.indexOf(':')
  if (colon < 0) return true
  const owner = repositoryById(hub.world, pull.headRepositoryId)?.owner.toLowerCase()
  return owner === head.slice(0, colon).toLowerCase() && pull.headBranch === head.slice(colon + 1)
}

export const createPull: RepositoryEndpoint = async (hub, request, repository) => {
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('PullRequest', fields, ['title', 'body', 'head', 'base']),
    ...titleProblems('PullRequest', fields, true),
    ...bodyProblems(fields),
    ...['head', 'base']
      .filter((field) => (textField(fields, field) ?? '') === '')
      .map((field) => ({ resource: 'PullRequest', field, code: 'missing_field' })),
  ]
  if (problems.length > 0) return invalid(...problems)
  const outcome = await openPull(
    hub,
    repository,
    {
      title: textField(fields, 'title') ?? '',
      body: textField(fields, 'body'),
      head: textField(fields, 'head') ?? '',
      base: textField(fields, 'base') ?? '',
      isDraft: fields['draft'] === true,
    },
    byViewer(request),
  )
  if (outcome.kind === 'invalid') return invalid(...outcome.problems)
  const { comparison } = await comparePull(hub, repository, outcome.issue)
  const shown = restPull(hub, repository, outcome.issue, comparison, request.viewerId)
  return created(shown, shown.url)
}

export const getPull: PullEndpoint = async (hub, request, repository, issue) => {
  const { comparison } = await comparePull(hub, repository, issue)
  return ok(restPull(hub, repository, issue, comparison, request.viewerId))
}

/** Title, body and state; anything else of a pull request stays. */
export const updatePull: PullEndpoint = async (hub, request, repository, issue) => {
  const mayChange = mayAct(hub, request, repository, 'write') || issue.authorId === request.viewerId
  if (!mayChange) return notAccessible('pull_requests=write')
  const { title, body, state } = fieldsOf(request.body)
  const fields = Object.fromEntries(
    Object.entries({ title, body, state }).filter(([, value]) => value !== undefined),
  )
  const problems = [
    ...textProblems('PullRequest', fields, ['title', 'body', 'state']),
    ...titleProblems('PullRequest', fields, false),
    ...bodyProblems(fields),
    ...stateProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  changeIssue(hub, request, repository, issue, fields)
  return getPull(hub, request, repository, issue)
}

/** Merging belongs to humans, who do it by the control interface; that somebody asked is in the request log. */
export function refuseMerge(): Reply {
  return notAllowed('Pull Request is not mergeable')
}

export const listFiles: PullEndpoint = async (hub, request, repository, issue) => {
  const { comparison, headOid } = await comparePull(hub, repository, issue)
  return listReply(request, comparison.files, (file) => restFile(hub, repository, headOid, file))
}

export const listCommits: PullEndpoint = async (hub, request, repository, issue) => {
  const { comparison } = await comparePull(hub, repository, issue)
  const commits = await readCommits(gitPathOf(hub, repository), comparison.commits)
  return listReply(request, commits, (commit) => restCommit(hub, repository, commit))
}
