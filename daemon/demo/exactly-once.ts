import { fault } from '../core/fault.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import type { DemoStage } from './scene.ts'

/** Everything that is on the embedded GitHub because of the daemon. */
export type GitHubCounts = Readonly<{
  branches: number
  pullRequests: number
  comments: number
  labelChanges: number
  closes: number
}>

/** What each kind of ticket has to leave there, whatever was killed (design §1.7). */
const EXACTLY_ONCE = {
  code: { branches: 1, pullRequests: 1, comments: 1, labelChanges: 1, closes: 1 },
  investigation: { branches: 0, pullRequests: 0, comments: 1, labelChanges: 1, closes: 1 },
} as const satisfies Record<DemoStory['kind'], GitHubCounts>

/** Faults: demo/failed when GitHub does not hold exactly what one undisturbed run leaves there. */
export async function requireExactlyOnce(
  stage: DemoStage,
  { kind }: DemoStory,
  seed: number,
): Promise<GitHubCounts> {
  const counts = await countOnGitHub(stage)
  const [found, wanted] = [describeCounts(counts), describeCounts(EXACTLY_ONCE[kind])]
  if (found === wanted) return counts
  const reason = `GitHub has ${found} instead of ${wanted} (seed ${seed})`
  throw fault('demo/failed', { reason, path: stage.root })
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

async function countOnGitHub({ control, issue: number }: DemoStage): Promise<GitHubCounts> {
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
