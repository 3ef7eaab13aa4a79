import type { components } from '@octokit/openapi-types'
import { repositoryUrl } from './rest-repository.ts'
import { nodeId, type View } from './rest-user.ts'
import type { Label, Repository } from './state.ts'

type RestLabel = components['schemas']['label']

export function restLabel(view: View, repository: Repository, label: Label): RestLabel {
  return {
    id: label.id,
    node_id: nodeId('LA', label.id),
    url: `${repositoryUrl(view, repository)}/labels/${encodeURIComponent(label.name)}`,
    name: label.name,
    color: label.color,
    default: false,
    description: label.description === '' ? null : label.description,
  }
}
