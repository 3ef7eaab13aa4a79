import { CONTROL_FILES } from '../core/control-files.ts'
import { isDeniedName } from '../core/denied-environment.ts'
import { formatRepository, type IssueKey, repositoryOf } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import { looksLikeGithubToken } from '../core/redaction.ts'
import { cutUtf8 } from './cut-utf8.ts'
import { isProviderName } from './provider-variables.ts'

/** Names every worker gets when they exist. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'SHELL',
  'LANG',
  'LC_ALL',
  'TERM',
  'TMPDIR',
])
/** What a worker is given to know. */
export type WorkerFacts = Readonly<{
  key: IssueKey
  title: string
  body: string
  labels: readonly string[]
  contextJson: string
  treePath: string
  runId: string
  branch: string
}>

/**
 * The environment of a worker, built from nothing: denied names first, then the allowed ones, then the
 * nine variables of the bridge page and the two that name files (docs/the-bridge.md). Values longer than
 * execve allows are cut; the files hold the whole.
 * @param source the daemon's environment
 * @param allowlist `worker_env_allowlist`: exact names, or prefixes ending in `*`
 * @param secrets values that must not reach a worker under any name, such as the daemon's token
 */
export function buildWorkerEnvironment(
  source: Readonly<Record<string, string>>,
  allowlist: readonly string[],
  secrets: readonly string[],
  facts: WorkerFacts,
): Readonly<Record<string, string>> {
  const inherited = Object.entries(source).filter(
    ([name, value]) => isAllowed(name, allowlist) && !isSecret(value, secrets),
  )
  return { ...Object.fromEntries(inherited), ...workerVariables(facts) }
}

function isAllowed(name: string, allowlist: readonly string[]): boolean {
  return isProviderName(name, allowlist) || (ALLOWED_NAMES.has(name) && !isDeniedName(name))
}

function isSecret(value: string, secrets: readonly string[]): boolean {
  return (
    looksLikeGithubToken(value) || secrets.some((secret) => secret !== '' && value.includes(secret))
  )
}

function workerVariables(facts: WorkerFacts): Readonly<Record<string, string>> {
  const variables = {
    CADUCEUS_ISSUE_NUMBER: String(facts.key.number),
    CADUCEUS_ISSUE_TITLE: facts.title,
    CADUCEUS_ISSUE_BODY: facts.body,
    CADUCEUS_ISSUE_REPO: formatRepository(repositoryOf(facts.key)),
    CADUCEUS_ISSUE_LABELS_JSON: JSON.stringify(facts.labels),
    CADUCEUS_WORKTREE_PATH: facts.treePath,
    CADUCEUS_RUN_ID: facts.runId,
    CADUCEUS_BRANCH_NAME: facts.branch,
    CADUCEUS_CONTEXT_JSON: facts.contextJson,
    CADUCEUS_PROMPT_FILE: `${facts.treePath}/${CONTROL_FILES.prompt}`,
    CADUCEUS_CONTEXT_FILE: `${facts.treePath}/${CONTROL_FILES.context}`,
  }
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, fitVariable(value)]),
  )
}

/** A NUL ends a string in execve, so it is replaced; what is too long is cut, with a marker. */
function fitVariable(value: string): string {
  return cutUtf8(value.replaceAll('\0', '\uFFFD'), LIMITS.environmentValueBytes)
}
