import { type ApiRequest, byViewer } from './api-request.ts'
import type { Hub } from './hub.ts'
import { addLabels, ensureLabel, findLabel, labelsOf, removeLabel } from './labels.ts'
import { listReply } from './pagination.ts'
import { created, invalid, notFound, ok, type Reply } from './replies.ts'
import { fieldsOf, labelNames, textField } from './request-fields.ts'
import { restLabel } from './rest-issue.ts'
import type { Issue, Repository } from './world.ts'

const MAX_NAME_CHARACTERS = 50

export function listIssueLabels(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const labels = labelsOf(repository, issue)
  return listReply(request, labels, (label) => restLabel(hub, repository, label))
}

/** Labels the repository does not have yet are made. */
export function addIssueLabels(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const { body } = request
  const names = labelNames(Array.isArray(body) ? body : fieldsOf(body)['labels'])
  if (names === null || names.some(isTooLong)) {
    return invalid({ resource: 'Label', field: 'name', code: 'invalid' })
  }
  addLabels(hub.world, repository, issue, names, byViewer(request))
  return ok(labelsOf(repository, issue).map((label) => restLabel(hub, repository, label)))
}

export function removeIssueLabel(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const name = request.params['name'] ?? ''
  const isRemoved = removeLabel(hub.world, repository, issue, name, byViewer(request))
  if (!isRemoved) return notFound('Label does not exist')
  return ok(labelsOf(repository, issue).map((label) => restLabel(hub, repository, label)))
}

export function listLabels(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  return listReply(request, repository.labels, (label) => restLabel(hub, repository, label))
}

export function createLabel(hub: Hub, request: ApiRequest, repository: Repository): Reply {
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

export function getLabel(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  const label = findLabel(repository, request.params['name'] ?? '')
  return label === null ? notFound() : ok(restLabel(hub, repository, label))
}

const isTooLong = (name: string): boolean => Array.from(name).length > MAX_NAME_CHARACTERS
