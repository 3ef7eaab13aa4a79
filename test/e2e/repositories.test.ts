import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import {
  bridge,
  type Finished,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import {
  addRepository,
  branchesOf,
  describeRequest,
  readWorld,
  reportOf,
  writesOf,
} from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }

describe('is each watched repository served as it is, and for itself?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig(options)
  }
  afterEach(async () => {
    await rig.close()
  })

  const requestsOf = async (repository: string) => rig.control('readRequests', { repository })
  const openIssueIn = async (repo: string) =>
    rig.control('createIssue', { repo, title: 'It is broken', labels: ['🤖 auto-fix'] })

  test('one without a usable clone is not asked about at all and told in status; the others go on', async () => {
    await open({ config: { watched_repos: ['octo/none', 'octo/wrong', 'octo/plain', 'octo/app'] } })
    const none = await addRepository(rig, 'octo/none', { isCloned: false })
    const wrong = await addRepository(rig, 'octo/wrong')
    const plain = await addRepository(rig, 'octo/plain')
    await rig.git('-C', wrong.clone, 'remote', 'set-url', 'origin', rig.origin)
    rmSync(join(plain.clone, '.git'), { recursive: true })
    for (const repo of ['octo/none', 'octo/wrong', 'octo/plain']) await openIssueIn(repo)
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)

    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    for (const repo of ['octo/none', 'octo/wrong', 'octo/plain']) {
      expect((await requestsOf(repo)).entries).toEqual([])
    }
    const { recent_errors, last_outcome } = await reportOf(rig)
    expect(last_outcome).toBe('processed')
    expect(recent_errors).toHaveLength(3)
    expect(recent_errors).toEqual(
      expect.arrayContaining(
        [
          `octo/none: octo/none has no clone at ${none.clone}.`,
          `octo/wrong: The clone ${wrong.clone} has origin ${rig.origin}, not octo/wrong on 127.0.0.1.`,
          `octo/plain: ${plain.clone} is not a git repository.`,
        ].map((line) =>
          expect.stringMatching(new RegExp(`^\\S+Z ${line.replaceAll('.', '\\.')}$`)),
        ),
      ),
    )

    // Mended, it is served by the next tick and no longer complained about.
    await rig.git('clone', '--quiet', none.gitPath, none.clone)
    rig.setConfig({ watched_repos: ['octo/none', 'octo/app'] })
    expect(await rig.tick()).toEqual(SILENT)
    expect(await branchesOf(rig, 'octo/none')).toHaveLength(1)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })

  test('the default branch is what GitHub says it is, not main', async () => {
    await open({ defaultBranch: 'develop' })
    await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'old-release',
      files: { 'app.txt': 'of another line\n', 'old.txt': 'x\n' },
    })
    // What the operator has checked out, and how far behind it is, does not matter.
    await rig.git('-C', rig.clone, 'checkout', '--quiet', '-b', 'topic')
    const { oid } = await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'develop',
      files: { 'newer.txt': 'pushed after the clone was made\n' },
    })
    await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)

    const { pull } = await rig.control('readIssue', { repo: rig.repo, number: 2 })
    expect(pull).toMatchObject({ baseBranch: 'develop', baseOid: oid })
    const branch = pull?.headBranch ?? ''
    expect(await rig.git('-C', rig.origin, 'diff', '--name-status', 'develop', branch)).toBe(
      'M\tapp.txt\n',
    )
    expect(await rig.git('-C', rig.origin, 'rev-parse', `${branch}^`)).toBe(`${oid}\n`)
  })

  test('one that fails stops no other, is told in status with exit code 0, and comes back by itself', async () => {
    await open({ config: { watched_repos: ['octo/broken', 'octo/app'], worker_parallelism: 2 } })
    await addRepository(rig, 'octo/broken')
    await openIssueIn('octo/broken')
    await rig.openIssue()
    const { id } = await rig.control('addFault', {
      repository: 'octo/broken',
      action: { kind: 'answer', status: 500, body: { message: 'Server Error' } },
    })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
    const { recent_errors } = await reportOf(rig)
    expect(recent_errors).toEqual([expect.stringMatching(/^\S+Z octo\/broken: .*500/)])

    await rig.control('clearFaults', { id })
    expect(await rig.tick()).toEqual(SILENT)
    expect(await branchesOf(rig, 'octo/broken')).toHaveLength(1)
    expect((await reportOf(rig)).recent_errors).toEqual([])
  })

  test('when every repository fails the tick has failed and says so', async () => {
    await open()
    await rig.control('addFault', {
      repository: rig.repo,
      action: { kind: 'reset', effect: false },
    })
    await rig.openIssue()

    const { code, stdout, stderr } = await rig.tick()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^caduceus: GitHub could not be reached for .*\n$/)
    expect((await reportOf(rig)).last_outcome).toBe('failed')
    await rig.control('clearFaults', {})
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('an idle tick asks one question per repository, answered 304, and does not touch the queue', async () => {
    await open({
      config: {
        watched_repos: ['octo/app', 'octo/lib'],
        poll_interval_seconds: 60,
        worker_parallelism: 2,
        max_retries_per_issue: 1,
      },
      bridge: bridge(`
if os.environ['CADUCEUS_ISSUE_REPO'] == 'octo/lib': sys.exit(1)
open('app.txt', 'a').write('mended\\n')
result({})`),
    })
    await addRepository(rig, 'octo/lib')
    await rig.openIssue()
    await openIssueIn('octo/lib') // fails, and keeps its label
    expect((await rig.tick()).code).toBe(1)
    await rig.control('commentIssue', { repo: 'octo/lib', number: 1, actor: 'alice', body: 'Hm.' })
    // This, and what our own runs changed, is news once.
    rig.clock.advance(60_000)
    await rig.run('run')
    const world = await readWorld(rig, 'octo/lib')
    const queue = statSync(rig.layout.queue)
    const before = readFileSync(rig.layout.queue, 'utf8')

    for (const round of [1, 2]) {
      await rig.control('clearRequests')
      rig.clock.advance(60_000)
      expect({ round, finished: await rig.run('run') }).toEqual({ round, finished: SILENT })
      const { entries } = await rig.control('readRequests', {})
      expect(entries.map((entry) => `${describeRequest(entry)} ${entry.status}`).sort()).toEqual([
        'GET /repos/octo/app/issues 304',
        'GET /repos/octo/lib/issues 304',
      ])
    }
    await rig.control('clearRequests')
    rig.clock.advance(10_000)
    expect(await rig.run('run')).toEqual(SILENT)
    expect((await rig.control('readRequests', {})).total).toBe(0)

    expect((await reportOf(rig)).last_outcome).toBe('idle304')
    expect(readFileSync(rig.layout.queue, 'utf8')).toBe(before)
    expect(statSync(rig.layout.queue)).toMatchObject({ ino: queue.ino, mtimeMs: queue.mtimeMs })
    expect(await readWorld(rig, 'octo/lib')).toEqual(world)
    expect(await writesOf(rig)).toEqual([])
  })
})
