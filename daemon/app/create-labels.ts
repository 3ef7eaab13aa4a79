import type { Config } from '../config/make-config.ts'
import { countEffects } from '../core/effects.ts'
import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import { findLabel } from '../core/labels.ts'
import type { RepositoryLabels } from '../core/repository-labels.ts'
import { openGitHub } from '../github/open-github.ts'
import { layoutOf } from '../state/layout.ts'
import { systemClock } from '../sys/clock.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { openTokenSource, withHostSecrets } from './credentials.ts'
import type { Setup } from './open-setup.ts'
import { attempt, done, type SetupStep, type SetupSteps } from './setup-report.ts'

const COLOR = '7C3AED'
const DESCRIPTIONS = {
  code: 'Caduceus: turn this issue into a pull request',
  investigation: 'Caduceus: investigate, and report in a comment',
} as const

/** Makes both trigger labels in every watched repository. A repository that fails does not stop the others. */
export async function createLabels(setup: Setup, config: Config | null): Promise<SetupSteps> {
  const next = 'Fix the configuration, then run this again.'
  if (config === null)
    return [{ ...done('labels', 'no configuration loads', next), status: 'fail' }]
  if (config.watchedRepos.length === 0) {
    return [done('labels', 'no repository is watched', 'Name repositories in watched_repos.')]
  }
  const github = openLabels(setup, config)
  const steps: SetupStep[] = []
  for (const repository of config.watchedRepos) {
    const subject = formatRepository(repository)
    const made = await attempt('labels', () => createMissing(setup, config, github, repository))
    steps.push(...made.map((step) => ({ ...step, subject })))
  }
  return steps
}

async function createMissing(
  { dryRun }: Setup,
  { triggerLabels }: Config,
  github: RepositoryLabels,
  repository: RepositoryName,
): Promise<SetupSteps> {
  const existing = await github.labels(repository)
  const missing = (['code', 'investigation'] as const)
    .map((ticket) => ({ name: triggerLabels[ticket], description: DESCRIPTIONS[ticket] }))
    .filter(({ name }) => findLabel(existing, name) === null)
  for (const label of dryRun ? [] : missing) {
    await github.createLabel(repository, { ...label, color: COLOR })
  }
  const names = missing.map(({ name }) => `"${name}"`).join(', ')
  if (names === '') return [done('labels', 'both are there')]
  return [done('labels', `${dryRun ? 'would make' : 'made'} ${names}`)]
}

/** GitHub without the stored gate and the response cache: setup also runs where there is no state yet. */
function openLabels({ build, environment }: Setup, config: Config): RepositoryLabels {
  const token = openTokenSource(config, withHostSecrets(environment, config), null)
  const nothing = (): undefined => undefined
  const github = openGitHub(
    { clock: systemClock, random: () => 0, gate: () => null, onWait: nothing, onAnswer: nothing },
    {
      apiBase: config.apiBase.url,
      version: build.version,
      maxPages: config.discoveryMaxPages,
      cacheDirectory: layoutOf(config.stateDir).directories.cache,
      token: token.get,
      timeoutMs: config.httpTimeoutSeconds * 1000,
    },
  )
  return countEffects('github', github, announceEffect)
}
