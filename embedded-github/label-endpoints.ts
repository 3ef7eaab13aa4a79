// The endpoints of labels.

import { byViewer } from './api-request.ts'
import type { IssueEndpoint, RepositoryEndpoint } from './endpoint.ts'
import { addLabels, ensureLabel, findLabel, labelsOf, removeLabel } from './labels.ts'
import { listReply } from './list-pages.ts'
import { created, invalid, notFound, ok } from './replies.ts'
import { fieldsOf, labelNames, textField } from './request-fields.ts'
import { restLabel } from './rest-label.ts'

const MAX_NAME_CHARACTERS = 50

export const listIssueLabels: IssueEndpoint = (context, request, repository, issue) => {
  const labels = labelsOf(repository, issue)
  return listReply(request, labels, (label) => restLabel(context, repository, label))
}

/** Labels the repository does not have yet are made. */
export const addIssueLabels: IssueEndpoint = (context, request, repository, issue) => {
  const { body } = request
  const names = labelNames(Array.isArray(body) ? body : fieldsOf(body)['labels'])
  if (names === null || names.some(isTooLong)) {
    return invalid({ resource: 'Label', field: 'name', code: 'invalid' })
  }
  addLabels(context.state, repository, issue, names, byViewer(request))
  return ok(labelsOf(repository, issue).map((label) => restLabel(context, repository, label)))
}

export const removeIssueLabel: IssueEndpoint = (context, request, repository, issue) => {
  const name = request.params['name'] ?? ''
  const isRemoved = removeLabel(context.state, repository, issue, name, byViewer(request))
  if (!isRemoved) return notFound('Label does not exist')
  return ok(labelsOf(repository, issue).map((label) => restLabel(context, repository, label)))
}

export const listLabels: RepositoryEndpoint = (context, request, repository) => {
  return listReply(request, repository.labels, (label) => restLabel(context, repository, label))
}

export const createLabel: RepositoryEndpoint = (context, request, repository) => {
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
  const style = color === null ? { description } : { color, description }
  const label = restLabel(context, repository, ensureLabel(context.state, repository, name, style))
  return created(label, label.url)
}

export const getLabel: RepositoryEndpoint = (context, request, repository) => {
  const label = findLabel(repository, request.params['name'] ?? '')
  return label === null ? notFound() : ok(restLabel(context, repository, label))
}

const isTooLong = (name: string): boolean => Array.from(name).length > MAX_NAME_CHARACTERS
