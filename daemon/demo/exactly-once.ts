import { fault } from '../core/fault.ts'
import type { DemoParts } from './demo-parts.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import type { DemoScene } from './scene.ts'

/** What the daemon has made on the embedded GitHub. */
export type GitHubCounts = Readonly<{
  branches: number
  pullRequests: number
  comments: number
  labelChanges: number
  closes: number
}>

/** What each kind of ticket has to leave there, whichever processes were killed (I6). */
const EXACTLY_ONCE = {
  code: { branches: 1, pullRequests: 1, comments: 1, labelChanges: 1, closes: 1 },
  investigation: { branches: 0, pullRequests: 0, comments: 1, labelChanges: 1, closes: 1 },
} as const satisfies Record<DemoStory['kind'], GitHubCounts>

/** The counts on GitHub. Faults: demo/failed when they differ from those of one undisturbed run. */
export async function requireExactlyOnce(
  { scene, story }: DemoParts,
  seed: number,
): Promise<GitHubCounts> {
  const counts = await countOnGitHub(scene)
  const [found, expected] = [describeCounts(counts), describeCounts(EXACTLY_ONCE[story.kind])]
  if (found === expected) return counts
  const reason = `GitHub has ${found} instead of ${expected} (seed ${seed})`
  throw fault('demo/failed', { reason, path: scene.root })
}

/** `1 branch, 1 pull request, 1 comment, 1 label change, 1 close` */
export function describeCounts(counts: GitHubCounts): string {
  const one = (count: number, noun: string, plural = `${noun}s`): string =>
    `${count} ${count === 1 ? noun : plural}`
  return [
    one(counts.branches, 'branch', 'branches'),
    one(counts.pullRequests, 'pull request'),
    one(counts.comments, 'comment'),
    one(counts.labelChanges, 'label change'),
    one(counts.closes, 'close'),
  ].join(', ')
}

async function countOnGitHub({ control, issue: number }: DemoScene): Promise<GitHubCounts> {
  const { branches, defaultBranch } = await control('readRepository', { repo: DEMO.repository })
  const all = await control('listIssues', { repo: DEMO.repository })
  const events = all.find((each) => each.number === number)?.events ?? []
  const ours = events.filter(({ actor }) => actor === DEMO.bot).map(({ kind }) => kind)
  return {
    branches: Object.keys(branches).filter((name) => name !== defaultBranch).length,
    pullRequests: all.filter(({ pull }) => pull !== null).length,
    comments: all.flatMap(({ comments }) => comments).length,
    labelChanges: ours.filter((kind) => kind === 'labeled' || kind === 'unlabeled').length,
    closes: ours.filter((kind) => kind === 'closed' || kind === 'reopened').length,
  }
}
