import type { GitHubState } from './state.ts'

/** A new id, larger than all before it. */
export function takeId(state: GitHubState): number {
  const id = state.nextId
  state.nextId += 1
  return id
}

export function takeSmallId(state: GitHubState): number {
  const id = state.nextSmallId
  state.nextSmallId += 1
  return id
}
