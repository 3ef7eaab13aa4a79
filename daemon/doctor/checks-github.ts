import { describeFault, type Fault, isFault } from '../core/fault.ts'
import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import { findLabel } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'
import { redact } from '../core/redaction.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import type { Answered } from '../github/connection.ts'
import { inRepository } from '../github/http-request.ts'
import { fieldOf, isJson, recordOf, textOf } from '../github/map-answer.ts'
import { contentOf, isSuccess, pageReader, readAllPages } from '../github/read-pages.ts'
import { answerFault } from '../github/request-fault.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import { type Finding, fail, nearMissesOf, ok, skipped, warn } from './check-result.ts'
import type { Check, ConfiguredFacts } from './open-facts.ts'

/** Repositories looked at together; one account may not have more than 100 requests under way. */
const TOGETHER = 8

/** What GitHub says, asked by reading only. */
export const GITHUB_CHECKS = [
  {
    name: 'Token',
    group: 'github',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkToken,
  },
  {
    name: 'GitHub account',
    group: 'github',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: checkAccount,
  },
  {
    name: 'Rate budget',
    group: 'github',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: checkBudget,
  },
  {
    name: 'Permissions',
    group: 'github',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: async (probe) => ofRepositories(probe, checkPermissions),
  },
  {
    name: 'Labels',
    group: 'github',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: async (probe) => ofRepositories(probe, checkLabels),
  },
] as const satisfies readonly Check[]

/** Of a token that a tick would not find although this shell has one (H§5.6). */
const SHELL_NAMES = ['CADUCEUS_GITHUB_TOKEN', 'GITHUB_TOKEN', 'GH_TOKEN'] as const

/** The token as the scheduled tick will find it; never its value. */
async function checkToken(probe: ConfiguredFacts): Promise<readonly Finding[]> {
  const { environment, hermesHome } = probe
  try {
    const { source } = await probe.token()
    if (source === 'CADUCEUS_GITHUB_TOKEN' && isOnlyOfThisShell(probe)) {
      const detail = `from ${source} of this shell; whether a cron job has it cannot be seen`
      return [warn(detail, `Put ${source} into ${hermesHome}/.env.`)]
    }
    const where = hermesHome === null ? '' : ', where a cron job finds it, too'
    return [ok(`${source === 'gh' ? 'from gh auth token' : `from ${source}`}${where}`)]
  } catch (thrown) {
    if (!isFault(thrown) || hermesHome === null || thrown.code !== 'token/not-found') throw thrown
    const here = SHELL_NAMES.filter((name) => (environment[name] ?? '').trim() !== '')
    const next = `Put CADUCEUS_GITHUB_TOKEN into ${hermesHome}/.env.`
    if (here.length === 0) return [fail(thrown.message, next)]
    const detail = `${here.join(' and ')} is set in this shell, but a cron job will not see it`
    return [fail(detail, next)]
  }
}

/** The gateway is not running or not to be looked into, and the host's file does not say it. */
function isOnlyOfThisShell({ hermesHome, gateway, hostVariables }: ConfiguredFacts): boolean {
  const isKnown = (gateway?.environment ?? null) !== null
  return hermesHome !== null && !isKnown && !hostVariables['CADUCEUS_GITHUB_TOKEN']?.trim()
}

/** Why there is nothing to ask GitHub with; the check of the token tells more. */
async function withoutToken(probe: ConfiguredFacts): Promise<Fault | null> {
  try {
    await probe.token()
    return null
  } catch (thrown) {
    if (isFault(thrown)) return thrown
    throw thrown
  }
}

async function checkAccount(probe: ConfiguredFacts): Promise<readonly Finding[]> {
  if ((await withoutToken(probe)) !== null) return [skipped('there is no token to ask with')]
  const request = probe.request('the account of the token', 'GET /user')
  const answer = await probe.connection.exchange(request)
  if (!isSuccess(answer)) throw answerFault(request, answer)
  const login = textOf(contentOf(answer)?.value, 'login') ?? 'an account without a name'
  const scopes = scopesOf(answer)
  if (scopes === null) return [ok(`${login}, by a token that does not list its permissions`)]
  if (scopes.includes('repo') || scopes.includes('public_repo')) {
    return [ok(`${login}, scopes ${scopes.join(', ')}`)]
  }
  const found = scopes.length === 0 ? 'no scope' : `only the scopes ${scopes.join(', ')}`
  return [fail(`${login}, but the token has ${found}`, 'Give the token the scope repo.')]
}

/** Classic tokens list their scopes in every answer; fine-grained ones and apps do not (GitHub docs). */
function scopesOf({ headers }: Answered): readonly string[] | null {
  const text = headers.get('x-oauth-scopes')
  if (text === null) return null
  return text
    .split(',')
    .map((scope) => scope.trim())
    .filter(Boolean)
}

async function checkBudget(probe: ConfiguredFacts): Promise<readonly Finding[]> {
  const { meta, now } = probe
  const until = plausibleWait(meta?.wait?.until ?? null, now, LIMITS.rateLimitCapMs)
  if (until !== null && until > now) {
    const detail = `GitHub asked to wait until ${toTimestamp(until)}`
    return [warn(detail, 'Nothing: polling goes on by itself.')]
  }
  if ((await withoutToken(probe)) !== null) return [skipped('there is no token to ask with')]
  const request = probe.request('the rate limit', 'GET /rate_limit')
  const answer = await probe.connection.exchange(request)
  if (answer.status === 404) return [ok('this server has no rate limit')]
  if (!isSuccess(answer)) throw answerFault(request, answer)
  const core = recordOf(recordOf(contentOf(answer)?.value, 'resources'), 'core')
  const limit = fieldOf(core, 'limit')
  const remaining = fieldOf(core, 'remaining')
  const reset = fieldOf(core, 'reset')
  if (typeof limit !== 'number' || typeof remaining !== 'number' || typeof reset !== 'number') {
    return [warn('GitHub does not tell the rate budget', null)]
  }
  const detail = `${remaining} of ${limit} requests left until ${toTimestamp(reset * 1000)}`
  if (remaining * 10 >= limit) return [ok(detail)]
  return [warn(detail, 'See what else uses this account; a token of its own helps.')]
}

/** The same question for each repository; a fault of one is a finding of that one. */
async function ofRepositories(
  probe: ConfiguredFacts,
  ask: (
    probe: ConfiguredFacts,
    repository: RepositoryName,
  ) => Promise<Finding | readonly Finding[]>,
): Promise<readonly Finding[]> {
  const { repositories } = probe
  if (repositories.length === 0) return [skipped('no repository is watched')]
  if ((await withoutToken(probe)) !== null) return [skipped('there is no token to ask with')]
  const found = await eachBounded(repositories, TOGETHER, async (repository) => {
    try {
      return await ask(probe, repository)
    } catch (thrown) {
      const subject = formatRepository(repository)
      const next = isFault(thrown) && thrown.next !== '' ? thrown.next : 'Try again.'
      const message = isFault(thrown) ? thrown.message : describeFault(thrown)
      const isLimit = isFault(thrown) && thrown.code === 'github/rate-limited'
      return isLimit ? warn(message, next, subject) : fail(message, next, subject)
    }
  })
  return found.flat()
}

/** What one has to be able to read before one may write it. */
const READABLE = {
  issues: 'GET /repos/{owner}/{repo}/issues',
  'pull requests': 'GET /repos/{owner}/{repo}/pulls',
} as const satisfies Record<string, `GET /${string}`>

/**
 * The account's role, and what the token may read. Whether a fine-grained token may write is not told by
 * GitHub to one who only reads, and nothing is written to find out.
 */
async function checkPermissions(
  probe: ConfiguredFacts,
  repository: RepositoryName,
): Promise<Finding> {
  const subject = formatRepository(repository)
  const request = probe.request(subject, 'GET /repos/{owner}/{repo}', inRepository(repository))
  const answer = await probe.connection.exchange(request)
  if (!isSuccess(answer)) throw answerFault(request, answer)
  const facts = contentOf(answer)?.value
  const name = fieldOf(facts, 'full_name')
  if (typeof name === 'string' && name.toLowerCase() !== subject.toLowerCase()) {
    // GitHub sends on what asks for the old name; its issues count as moved.
    const next = 'Watch it under its new name, and correct the origin of its clone.'
    return fail(`it is called ${redact(name).slice(0, 200)} now`, next, subject)
  }
  if (fieldOf(facts, 'archived') === true) {
    return fail(
      'the repository is archived, so nothing can be written',
      'Stop watching it.',
      subject,
    )
  }
  if (fieldOf(facts, 'has_issues') === false) {
    return fail('issues are turned off there', 'Turn them on, or stop watching it.', subject)
  }
  const scopes = scopesOf(answer)
  const isPrivate = fieldOf(facts, 'private') === true
  if (isPrivate && scopes !== null && !scopes.includes('repo')) {
    const next = 'Give the token the scope repo.'
    return fail('it is private, and the token has no scope for that', next, subject)
  }
  const rights = recordOf(facts, 'permissions')
  if (fieldOf(rights, 'push') !== true) {
    const next = 'Give the account the role Write there.'
    return fail('the account may not write', next, subject)
  }
  const unreadable = await unreadableOf(probe, repository)
  if (unreadable.length > 0) {
    const next = 'Give the token contents, issues and pull requests: read and write.'
    return fail(`the token may not read ${unreadable.join(' and ')}`, next, subject)
  }
  const how =
    scopes === null ? 'what the token may write is not told' : `scopes ${scopes.join(', ')}`
  return ok(`the account may write; ${how}`, subject)
}

async function unreadableOf(
  probe: ConfiguredFacts,
  repository: RepositoryName,
): Promise<readonly string[]> {
  const denied: string[] = []
  for (const [what, route] of Object.entries(READABLE)) {
    const parameters = { ...inRepository(repository), state: 'all', per_page: 1 }
    const request = probe.request(formatRepository(repository), route, parameters)
    const answer = await probe.connection.exchange(request)
    if (answer.status === 403 || answer.status === 404) {
      const needed = answer.headers.get('x-accepted-github-permissions')
      denied.push(needed === null ? what : `${what} (${needed})`)
    } else if (!isSuccess(answer)) throw answerFault(request, answer)
  }
  return denied
}

async function checkLabels(
  probe: ConfiguredFacts,
  repository: RepositoryName,
): Promise<readonly Finding[]> {
  const { config } = probe
  const subject = formatRepository(repository)
  const route = 'GET /repos/{owner}/{repo}/labels'
  const request = probe.request(subject, route, {
    ...inRepository(repository),
    per_page: LIMITS.pageSize,
  })
  const bounds = { maxPages: config.discoveryMaxPages, apiBase: config.apiBase.url }
  const { items } = await readAllPages(pageReader(probe.connection), bounds, request)
  const names = items.flatMap((item) => (isJson(item) ? (textOf(item, 'name') ?? []) : []))
  const { code, investigation } = config.triggerLabels
  const found = [code, investigation].map((wanted) => evaluateLabel(names, wanted, subject))
  const trouble = found.filter(({ verdict }) => verdict !== 'ok')
  if (trouble.length > 0) return trouble
  return [ok(found.map(({ detail }) => detail).join('; '), subject)]
}

function evaluateLabel(names: readonly string[], wanted: string, subject: string): Finding {
  const label = findLabel(names, wanted)
  if (label === wanted) return ok(`"${wanted}"`, subject)
  if (label !== null) return ok(`"${label}" (counts as "${wanted}")`, subject)
  const near = nearMissesOf(names, wanted)
  const create = 'with: caduceus setup --create-labels'
  if (near.length === 0) {
    return warn(`there is no label "${wanted}"`, `Create it, by hand or ${create}`, subject)
  }
  const others = near.slice(0, 3).map((name) => `"${name}"`)
  const detail = `there is no label "${wanted}", but ${others.join(' and ')}, which does not count`
  return warn(detail, `Rename it, or create the right one ${create}`, subject)
}
