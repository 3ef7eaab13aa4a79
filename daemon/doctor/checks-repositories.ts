import { join } from 'node:path'
import { describeFault, isFault } from '../core/fault.ts'
import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import { type InspectedClone, inspectClone } from '../git/inspect-clone.ts'
import { readRemoteAccess } from '../git/remote-access.ts'
import { explain } from '../git/run-git.ts'
import { inRepository } from '../github/http-request.ts'
import { textOf } from '../github/map-answer.ts'
import { contentOf, isSuccess } from '../github/read-pages.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import { removePath } from '../sys/files.ts'
import { makeTemporaryFolder } from '../sys/paths.ts'
import { type Finding, fail, ok, skipped, warn } from './check-result.ts'
import type { Check, ConfiguredFacts } from './open-facts.ts'

const TOGETHER = 4

/** The operator's clones, and whether git reaches their origins without asking anybody. */
export const REPOSITORY_CHECKS = [
  {
    name: 'Clone',
    group: 'repositories',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: checkClones,
  },
  {
    name: 'Default branch',
    group: 'repositories',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: async (probe) => ofClones(probe, checkDefaultBranch),
  },
  {
    name: 'Push access',
    group: 'repositories',
    category: 'configuration-runtime',
    needs: ['network'],
    needsConfiguration: true,
    run: async (probe) => ofClones(probe, checkPush),
  },
  {
    name: 'Content',
    group: 'repositories',
    category: 'configuration-runtime',
    needsConfiguration: true,
    run: async (probe) => ofClones(probe, checkContent),
  },
] as const satisfies readonly Check[]

async function checkClones(probe: ConfiguredFacts): Promise<readonly Finding[]> {
  const { repositories, config } = probe
  if (repositories.length === 0) {
    const next = 'List repositories under watched_repos, or set discover: true.'
    return config.discover
      ? [skipped('no repository is known yet')]
      : [warn('no repository is watched', next)]
  }
  return eachBounded(repositories, TOGETHER, async (repository) => {
    const subject = formatRepository(repository)
    try {
      const { path, shallowOrPartial } = await inspectClone(probe.git, repository)
      return ok(shallowOrPartial ? `${path} (shallow or partial)` : path, subject)
    } catch (thrown) {
      return failed(thrown, subject)
    }
  })
}

const failed = (thrown: unknown, subject: string): Finding => {
  const isTold = isFault(thrown) && thrown.next !== ''
  return isTold
    ? fail(thrown.message, thrown.next, subject)
    : fail(describeFault(thrown), 'Mend what git says, then look again.', subject)
}

type Cloned = Readonly<{ repository: RepositoryName; subject: string; clone: InspectedClone }>

/** For each repository that has a usable clone; the check of clones tells of the others. */
async function ofClones(
  probe: ConfiguredFacts,
  look: (probe: ConfiguredFacts, cloned: Cloned) => Promise<Finding>,
): Promise<readonly Finding[]> {
  if (probe.repositories.length === 0) return [skipped('no repository is watched')]
  return eachBounded(probe.repositories, TOGETHER, async (repository) => {
    const subject = formatRepository(repository)
    const clone = await inspectClone(probe.git, repository).catch(() => null)
    if (clone === null) return skipped('it has no usable clone', subject)
    try {
      return await look(probe, { repository, subject, clone })
    } catch (thrown) {
      return failed(thrown, subject)
    }
  })
}

/** What GitHub calls the default branch is there, and can be fetched without a prompt. */
async function checkDefaultBranch(
  probe: ConfiguredFacts,
  { repository, subject, clone }: Cloned,
): Promise<Finding> {
  const wanted = await defaultBranchOf(probe, repository)
  const access = await readRemoteAccess(probe.git, clone, 'fetch')
  return inScratch(probe, async (scratch) => {
    const { stdout } = await probe.runGit({
      ...access,
      operation: 'ls-remote',
      args: ['ls-remote', '--quiet', '--symref', 'origin', 'HEAD'],
      gitDirectory: scratch,
    })
    const [, head] = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(stdout.toString()) ?? []
    if (head === undefined) {
      return fail(
        'the remote has no commit on a default branch',
        'Push a first commit there.',
        subject,
      )
    }
    if (wanted !== null && wanted !== head) {
      const detail = `GitHub says ${wanted}, the remote of the clone ${head}`
      return warn(detail, 'Check that the origin of the clone is that repository.', subject)
    }
    return ok(`${head}, fetched from without a prompt`, subject)
  })
}

/** null = GitHub could not be asked; the checks of GitHub say why. */
async function defaultBranchOf(
  probe: ConfiguredFacts,
  repository: RepositoryName,
): Promise<string | null> {
  const route = 'GET /repos/{owner}/{repo}'
  const request = probe.request(formatRepository(repository), route, inRepository(repository))
  const answer = await probe.connection.exchange(request).catch(() => null)
  if (answer === null || !isSuccess(answer)) return null
  return textOf(contentOf(answer)?.value, 'default_branch')
}

/** A name nobody has; with --dry-run it is never sent. */
const PROBED_REF = 'refs/heads/automation/access-check'

/**
 * Asks the receiving side of the remote as a push does, and stops before anything is sent (git-push(1),
 * --dry-run). From a repository of its own that borrows the clone's objects, with the settings that the
 * daemon itself pushes with.
 */
async function checkPush(probe: ConfiguredFacts, { subject, clone }: Cloned): Promise<Finding> {
  const { stdout, code } = await probe.runGit({
    profile: 'tree',
    operation: 'rev-parse',
    args: ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'],
    gitDirectory: clone.gitDirectory,
    answers: [0, 1, 128],
  })
  if (code !== 0) return skipped('the clone has no commit to try it with', subject)
  const oid = stdout.toString().trim()
  const common = await probe.runGit({
    profile: 'tree',
    operation: 'rev-parse',
    args: ['rev-parse', '--git-path', 'objects'],
    gitDirectory: clone.gitDirectory,
    cwd: clone.path,
  })
  const objects = join('/', common.stdout.toString().trim())
  const access = await readRemoteAccess(probe.git, clone, 'push')
  return inScratch(probe, async (scratch) => {
    const output = await probe.runGit({
      ...access,
      operation: 'push --dry-run',
      args: [
        'push',
        '--dry-run',
        '--porcelain',
        '--no-verify',
        '--no-follow-tags',
        '--no-signed',
        '--recurse-submodules=no',
        'origin',
        `${oid}:${PROBED_REF}`,
      ],
      gitDirectory: scratch,
      env: { ...access.env, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects },
      answers: [0, 1, 128],
    })
    if (output.code === 0) return ok('git may push, without a prompt', subject)
    const next =
      'Let git push there without asking: a credential helper, an ssh key without passphrase, or an agent that cron reaches.'
    return fail(`git may not push: ${explain(output.stderr)}`, next, subject)
  })
}

/** An empty repository: no remote, no hook, no setting of the clone reaches git but those given. */
async function inScratch<T>(
  { runGit }: ConfiguredFacts,
  use: (gitDirectory: string) => Promise<T>,
): Promise<T> {
  const folder = makeTemporaryFolder('caduceus-doctor-')
  try {
    await runGit({
      profile: 'tree',
      operation: 'init',
      args: ['init', '--quiet', '--bare', '--template=', folder],
    })
    return await use(folder)
  } finally {
    await removePath(folder)
  }
}

const MAX_ATTRIBUTES_BYTES = 64 * 1024

/** Git LFS and submodules need a word (P§5); told from the clone as it is, which may be old. */
async function checkContent(probe: ConfiguredFacts, { subject, clone }: Cloned): Promise<Finding> {
  const read = async (path: string): Promise<string | null> => {
    const { code, stdout } = await probe.runGit({
      profile: 'tree',
      operation: `cat-file ${path}`,
      args: ['cat-file', 'blob', `HEAD:${path}`],
      gitDirectory: clone.gitDirectory,
      maxOutputBytes: MAX_ATTRIBUTES_BYTES,
      cut: true,
      answers: [0, 128],
    })
    return code === 0 ? stdout.toString() : null
  }
  const hasLfs = /^[^#\n]*\sfilter=lfs(?:\s|$)/m.test((await read('.gitattributes')) ?? '')
  const hasSubmodules = (await read('.gitmodules')) !== null
  const found = [
    ...(hasLfs ? ['Git LFS: workers see pointers, and a run that adds LFS files is refused'] : []),
    ...(hasSubmodules
      ? ['submodules: they are not checked out, and stay where the base has them']
      : []),
  ]
  if (found.length === 0) return ok('no Git LFS, no submodules', subject)
  return warn(found.join('; '), 'Nothing, unless its issues need those files.', subject)
}
