import type { RepositoryName } from '../core/issue-key.ts'
import { spellingsOf } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'
import type { RepositoryMemory } from '../core/meta.ts'
import type { GitHub, IssueSummary } from '../core/ports.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import type { TickSettings } from './settings.ts'

/** What a poll of one repository brought. */
export type RepositoryPoll = Readonly<{
  issues: readonly IssueSummary[]
  /** Everything came from the cache. */
  unchanged: boolean
  /** Both labels were asked for, so nothing can have been missed. */
  isSweep: boolean
  sweptAt: RepositoryMemory['sweptAt']
  malformed: readonly string[]
}>

/**
 * One repository's news. The first time, once an hour and on demand both labels are listed in each
 * spelling (a sweep); in between one request asks for everything changed since the sweep. Its address
 * stays the same, so an idle tick costs one 304 per repository (design §10), and a change that one
 * answer did not show yet (read-after-write lag) shows in the next.
 * Faults: github/*.
 */
export async function pollRepository(
  github: GitHub,
  settings: TickSettings,
  repository: RepositoryName,
  memory: RepositoryMemory | undefined,
  now: number,
  forced: boolean,
): Promise<RepositoryPoll> {
  const sweptAt = memory?.sweptAt ?? null
  if (!forced && sweptAt !== null && isRecent(fromTimestamp(sweptAt), now)) {
    const poll = await github.pollChanges(repository, fromTimestamp(sweptAt) - LIMITS.pollOverlapMs)
    return { ...poll, isSweep: false, sweptAt }
  }
  const labels = [settings.triggers.code, settings.triggers.investigation].flatMap(spellingsOf)
  const polls = await Promise.all(labels.map((label) => github.pollLabel(repository, label)))
  const issues = polls.flatMap((poll) => poll.issues)
  return {
    issues: [...new Map(issues.map((issue) => [issue.number, issue])).values()],
    unchanged: polls.every((poll) => poll.unchanged),
    isSweep: true,
    sweptAt: toTimestamp(Math.min(...polls.map((poll) => poll.serverTime))),
    malformed: polls.flatMap((poll) => poll.malformed),
  }
}

/** The stored time is GitHub's and `now` is ours: either clock may be ahead of the other. */
function isRecent(sweptAt: number, now: number): boolean {
  return Math.abs(now - sweptAt) < LIMITS.sweepMs
}
