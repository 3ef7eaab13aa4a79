import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { waitUntil } from './processes.ts'
import { LABELS, openProgramRig, type ProgramRig } from './program-rig.ts'
import { addRepository, QUIET } from './program-views.ts'

// Many repositories, many issues, and ticks that are always fired eight at a time. How many workers were at work is
// told by the workers themselves.

/** What the test believes of the limits; 0 = none for a repository. */
export type Limits = Readonly<{ parallelism: number; perRepository: number }>

const TICKS_AT_ONCE = 8
/** Issues of the first repository, the oldest of all: there would be more at once than one repository may have. */
const IN_FIRST = 4

/** Appends when it starts and ends, and in between waits until so many have started as `meet` says. */
const WORKER = `#!/bin/sh
cd "$CADUCEUS_WORKTREE_PATH" || exit 1
name=$CADUCEUS_ISSUE_REPO#$CADUCEUS_ISSUE_NUMBER
echo "start $name" >>"$HOME/told"
until [ "$(grep -c start "$HOME/told")" -ge "$(cat "$HOME/meet")" ]; do sleep 0.05; done
echo mended >>app.txt
echo '${JSON.stringify({
  status: 'success',
  summary: 'Mended.',
  commit_message: 'fix(app): mend it',
  pull_request_title: 'fix(app): mend it',
})}' >worker-result.json
echo "end $name" >>"$HOME/told"
`

export type Crowd = Readonly<{ rig: ProgramRig; repos: readonly string[] }>

/** So many repositories with a clone each. Dry runs, because they are the cheapest ones. */
export async function openCrowd(repositories: number): Promise<Crowd> {
  const repos = Array.from({ length: repositories }, (_, index) => `octo/app-${index}`)
  const [repo = '', ...others] = repos
  const config = { watched_repos: repos, dry_run: true }
  const rig = await openProgramRig({ repo, bridge: WORKER, config })
  for (const other of others) await addRepository(rig, other)
  return { rig, repos }
}

/** What a crowd came to. */
export type CrowdReport = Readonly<{
  waves: number
  /** Ticks that met another one at work. */
  skipped: number
  most: number
  violations: readonly string[]
}>

/**
 * Opens so many issues, the first of them in one repository, and fires waves of simultaneous ticks until every issue
 * has been worked on. Fails when a tick says anything or does not end with 0.
 * @param limits what is configured; the first workers wait until so many are at work
 * @param believed what is held against what the workers tell
 */
export async function runCrowd(
  { rig, repos }: Crowd,
  count: number,
  limits: Limits,
  believed: Limits = limits,
): Promise<CrowdReport> {
  const { parallelism, perRepository } = limits
  rig.setConfig({ worker_parallelism: parallelism, max_runs_per_repo: perRepository })
  const home = join(rig.dir, 'home')
  rmSync(join(home, 'told'), { force: true })
  writeFileSync(join(home, 'meet'), String(parallelism))
  const before = { runs: rig.journals().length, lines: linesOf(rig).length }
  await openIssues({ rig, repos }, count)

  let waves = 0
  for (; endsIn(toldIn(rig)) < count; waves += 1) {
    // The first wave polls; whatever is free afterwards is filled by later ones.
    const args = waves === 0 ? ['run', '--now'] : ['run']
    const ticks = Array.from({ length: TICKS_AT_ONCE }, async () => rig.run(...args))
    expect(await Promise.all(ticks)).toEqual(ticks.map(() => QUIET))
    await waitUntil('slots are free', () => atWork(rig) <= 1, 30_000)
  }
  await waitUntil('all have left', () => atWork(rig) === 0, 60_000)

  const told = toldIn(rig)
  const log = linesOf(rig).slice(before.lines)
  const runs = rig.journals().length - before.runs
  const troubles = log.filter(({ level }) => level !== 'info')
  return {
    waves,
    skipped: log.filter(({ outcome }) => outcome === 'skipped_concurrent').length,
    most: mostAtOnce(told),
    violations: [
      ...judgeTold(told, count, believed),
      ...(runs === count ? [] : [`${runs} runs of ${count} issues`]),
      ...troubles.map((line) => JSON.stringify(line)),
    ],
  }
}

async function openIssues({ rig, repos }: Crowd, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index)
  for (const [place, repo] of repos.entries()) {
    const here = numbers.filter((n) => (n < IN_FIRST ? 0 : n % repos.length) === place)
    const issues = here.map((n) => ({ title: `Broken in ${n} places`, labels: [LABELS.code] }))
    if (issues.length > 0) await rig.control('createIssues', { repo, issues })
  }
}

const toldIn = (rig: ProgramRig): readonly string[] => {
  const path = join(rig.dir, 'home', 'told')
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}
const endsIn = (told: readonly string[]): number =>
  told.filter((line) => line.startsWith('end')).length
const linesOf = (rig: ProgramRig) => (existsSync(rig.layout.log) ? rig.log() : [])
const atWork = ({ layout }: ProgramRig): number => {
  const { claims } = layout.directories
  if (!existsSync(claims)) return 0
  return readdirSync(claims).filter((name) => isLocked(join(claims, name))).length
}

function mostAtOnce(told: readonly string[]): number {
  return Math.max(0, ...countsOf(told).map(({ all }) => all))
}

/** How many were at work after each line: in all, and in the repository it is about. */
function countsOf(told: readonly string[]) {
  const byRepository = new Map<string, number>()
  let all = 0
  return told.map((line) => {
    const change = line.startsWith('start') ? 1 : -1
    const repository = line.replace(/^\w+ /, '').replace(/#.*/, '')
    const here = (byRepository.get(repository) ?? 0) + change
    byRepository.set(repository, here)
    all += change
    return { line, all, here }
  })
}

/** What workers have told that does not go with the limits, or with each issue being worked on once. */
export function judgeTold(
  told: readonly string[],
  count: number,
  { parallelism, perRepository }: Limits,
): readonly string[] {
  const starts = told.filter((line) => line.startsWith('start'))
  const again = starts.filter((line, index) => starts.indexOf(line) !== index)
  const tooMany = countsOf(told).flatMap(({ line, all, here }) => [
    ...(all > parallelism ? [`${all} at work at: ${line}`] : []),
    ...(perRepository > 0 && here > perRepository ? [`${here} in one repository at: ${line}`] : []),
  ])
  return [
    ...tooMany,
    ...again.map((line) => `again: ${line}`),
    ...(new Set(starts).size === count ? [] : [`${new Set(starts).size} of ${count} issues`]),
  ]
}
