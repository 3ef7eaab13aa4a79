import { type Fault, writeFault } from '../core/fault.ts'
import { repositoryOf } from '../core/issue-key.ts'
import type { PullRequest } from '../core/ports.ts'
import { type ActionInput, retainedCommit } from './action-input.ts'
import { doneByUs } from './our-doing.ts'
import { carriesMarker } from './render-publication.ts'

/** Everybody's pull requests of our branch; GitHub's filter returns all when it is malformed, so they are compared. */
export async function pullsOfBranch({
  github,
  journal,
}: ActionInput): Promise<readonly PullRequest[]> {
  const repository = repositoryOf(journal.key)
  const facts = await github.repository(repository)
  const { value } = await github.pullRequestsByHead(repository, journal.branch)
  return value.filter(
    ({ headBranch, headRepositoryId }) =>
      headBranch === journal.branch && (facts === null || headRepositoryId === facts.id),
  )
}

/** The one with our marker, or an open one of ours whose text somebody has edited since; null = there is none. */
export async function ownPull(
  input: ActionInput,
  pulls: readonly PullRequest[],
): Promise<PullRequest | null> {
  const { runId, generation } = input.journal
  const marker = { kind: 'pull-request', runId, generation } as const
  const marked = pulls.filter(({ body }) => carriesMarker(body, marker))
  const [own] = await doneByUs(input, marked, ({ authorId }) => authorId)
  const { actorId } = input.publication
  const edited = pulls.find(({ authorId, state }) => authorId === actorId && state === 'open')
  return own ?? edited ?? null
}

/**
 * Why ours could not be opened although GitHub says that there is one: another account's is there, which stays; or
 * GitHub does not list it yet.
 */
export function whyNotOurs(input: ActionInput, pulls: readonly PullRequest[]): Fault {
  const { branch } = input.journal
  const theirs = pulls.find(
    (pull) => pull.state === 'open' && pull.baseBranch === input.base.branch,
  )
  if (theirs === undefined) return writeFault('unknown', 'github/pull-unlisted', { branch })
  const details = { number: theirs.number, branch, kept: retainedCommit(input) }
  return writeFault('none', 'github/foreign-pull', details)
}
