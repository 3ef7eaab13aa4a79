import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fault } from '../core/fault.ts'
import {
  formatRepository,
  type IssueKey,
  issueId,
  parseRepositoryName,
  type RepositoryName,
} from '../core/issue-key.ts'
import { isRunId } from '../core/run-id.ts'
import { RUN_FILES } from '../core/supervision-files.ts'

// The paths of everything under the state directory. Pure: nothing here asks the file system, and no part of a
// path comes from outside unless its grammar forbids separators and dots.

/** The files of one run. */
type RunPaths = Readonly<{
  /** What the worker printed. */
  transcript: string
  /** The archived worker result. */
  result: string
  dryRunReport: string
  /** For display only; never evidence of life (PROTOCOLS, Locks and hand-over). */
  heartbeat: string
  /** Holds everything below; written by runner and supervisor only. */
  directory: string
  journal: string
  /** Files between the runner and the supervisor: core/supervision-files.ts says who writes them, and when. */
  launch: string
  exit: string
  control: string
  supervisorLock: string
  treeLock: string
  /** Private index of the run's checkout. */
  index: string
  /** What runner and supervisor print, which is nothing unless they crash. */
  runnerOutput: string
}>

export type StateLayout = Readonly<{
  stateDir: string
  queue: string
  meta: string
  /** A database of another version, see `refuseDatabase`. */
  database: string
  stateLock: string
  tickLock: string
  /** Held by the one `caduceus daemon` of this state. */
  daemonLock: string
  /** Default of `log_path`. */
  log: string
  /** Archived trees of failed attempts; made when the first one is archived. */
  attic: string
  /** The directories that exist as soon as the state directory is prepared. */
  directories: Readonly<{
    runs: string
    claims: string
    cache: string
    worktrees: string
    repos: string
  }>
  claim(key: IssueKey): string
  /** Faults: internal/unexpected when the text is not a run id. */
  run(runId: string): RunPaths
  /** Checkout of a run. Faults: internal/unexpected for names GitHub could not have. */
  worktree(repository: RepositoryName, runId: string): string
  /** That checkout, archived. Faults as `worktree`. */
  archived(repository: RepositoryName, runId: string): string
  /** Bare store of a repository, when `repo_storage_root` is the default. Faults as `worktree`. */
  store(repository: RepositoryName): string
}>

/** All paths under a state directory. */
export function layoutOf(stateDir: string): StateLayout {
  // Without a slash at the end, behind which a symbolic link would not be seen as one.
  const root = dirname(join(stateDir, 'x'))
  const at = (name: string): string => join(root, name)
  const directories = {
    runs: at('runs'),
    claims: at('claims'),
    cache: at('cache'),
    worktrees: at('worktrees'),
    repos: at('repos'),
  }
  return {
    stateDir: root,
    queue: at('state.json'),
    meta: at('state_meta.json'),
    database: at('state.db'),
    stateLock: at('state.lock'),
    tickLock: at('tick.lock'),
    daemonLock: at('daemon.lock'),
    log: at('processor.log'),
    attic: at('attic'),
    directories,
    // Only the digest reaches the path, so no key can lead anywhere else.
    claim: (key) =>
      join(directories.claims, `${createHash('sha256').update(issueId(key)).digest('hex')}.claim`),
    run: (runId) => runPaths(directories.runs, requireRunId(runId)),
    worktree: (repository, runId) =>
      join(directories.worktrees, ...repositoryParts(repository), requireRunId(runId)),
    archived: (repository, runId) =>
      join(at('attic'), ...repositoryParts(repository), requireRunId(runId)),
    store: (repository) => {
      const [owner, name] = repositoryParts(repository)
      return join(directories.repos, owner, `${name}.git`)
    },
  }
}

function runPaths(runs: string, runId: string): RunPaths {
  const directory = join(runs, runId)
  return {
    transcript: `${directory}.log`,
    result: `${directory}.result.json`,
    dryRunReport: `${directory}.dry-run.md`,
    heartbeat: `${directory}.heartbeat`,
    directory,
    journal: join(directory, 'journal.json'),
    launch: join(directory, RUN_FILES.launch),
    exit: join(directory, RUN_FILES.exit),
    control: join(directory, RUN_FILES.control),
    supervisorLock: join(directory, RUN_FILES.supervisorLock),
    treeLock: join(directory, RUN_FILES.treeLock),
    index: join(directory, 'index'),
    runnerOutput: join(directory, 'runner.log'),
  }
}

/** Lowercased, because GitHub ignores case and file systems may not. */
function repositoryParts(repository: RepositoryName): readonly [string, string] {
  const text = formatRepository(repository)
  if (parseRepositoryName(text) === null) {
    throw fault('internal/unexpected', { reason: `"${text}" is not the name of a repository` })
  }
  return [repository.owner.toLowerCase(), repository.name.toLowerCase()]
}

function requireRunId(runId: string): string {
  if (isRunId(runId)) return runId
  throw fault('internal/unexpected', { reason: `"${runId}" is not a run id` })
}
