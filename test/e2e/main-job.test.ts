import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { BOT, bridge, LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  fingerprintOf,
  readWorld,
  resultOf,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

const RESULT = {
  summary: 'Mended the **application**.',
  commit_message: 'fix(app): mend it\n\nIt said the wrong thing.',
  pull_request_title: 'fix(app): mend it',
  artifacts: { tests: { run: 3, failed: 0 }, log: 'first\n```\nlast' },
}

const SHOWN_ARTIFACTS = `Artifacts (2):

\`\`\`\`json
{
  "log": "first\\n\`\`\`\\nlast",
  "tests": {
    "failed": 0,
    "run": 3
  }
}
\`\`\`\``

describe('does a labelled issue become a pull request?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('one run makes one branch, one commit, one pull request and one comment, then closes the issue', async () => {
    rig.setBridge(
      bridge(`
open('app.txt', 'w').write('mended\\n')
os.makedirs('src/new dir')
open('src/new dir/größe.txt', 'w').write('new\\n')
os.chmod('src/new dir/größe.txt', 0o755)
os.remove('README.md')
${resultOf(RESULT)}`),
    )
    // The operator's clone need not be clean, and every update of a branch on the remote is noted.
    writeFileSync(join(rig.clone, 'app.txt'), 'half-done work of the operator\n')
    writeFileSync(join(rig.clone, 'notes.txt'), 'untracked\n')
    await rig.git('-C', rig.clone, 'add', 'app.txt')
    await rig.git('-C', rig.origin, 'config', 'core.logAllRefUpdates', 'always')
    const clone = fingerprintOf(rig.clone)
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    const [run] = rig.journals()
    const runId = run?.runId ?? ''
    const branch = `automation/issue-1-${runId.toLowerCase()}`
    expect(rig.journals()).toHaveLength(1)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      attempts: 0,
      generation: 1,
      lastError: null,
      pull: { number: 2 },
    })

    const [issue, pull, ...others] = await rig.control('listIssues', { repo: rig.repo })
    expect(others).toEqual([])
    expect(pull).toMatchObject({
      author: BOT,
      title: 'fix(app): mend it',
      state: 'open',
      body: `Closes #1\n\n${RESULT.summary}\n\n${SHOWN_ARTIFACTS}\n\n<!-- automation-run:${runId} kind:pull-request generation:1 -->`,
      pull: { headBranch: branch, baseBranch: 'main' },
    })
    expect(issue).toMatchObject({ state: 'closed', labels: [], closedBy: BOT })
    expect(issue?.comments.map(({ author, body }) => ({ author, body }))).toEqual([
      {
        author: BOT,
        body: `Pull request #2 is ready for review.\n\n${RESULT.summary}\n\n${SHOWN_ARTIFACTS}\n\n<!-- automation-run:${runId} kind:completion generation:1 -->`,
      },
    ])
    const ours = (issue?.events ?? []).filter(({ actor }) => actor === BOT)
    expect(ours.map(({ kind }) => kind)).toEqual(['cross-referenced', 'unlabeled', 'closed'])
    expect(await writesOf(rig)).toEqual([
      'POST /repos/octo/app/pulls',
      'POST /repos/octo/app/issues/1/comments',
      `DELETE /repos/octo/app/issues/1/labels/${encodeURIComponent(LABELS.code)}`,
      'PATCH /repos/octo/app/issues/1',
    ])

    // One commit, made by the daemon, with the worker's tree and no file of ours.
    expect(await branchesOf(rig)).toEqual([branch])
    const at = async (...args: readonly string[]) => rig.git('-C', rig.origin, ...args)
    const committer = 'Caduceus Daemon <caduceus@daemon.local>'
    expect(await at('log', '--format=%an <%ae>|%cn <%ce>|%B', `main..${branch}`)).toBe(
      `${committer}|${committer}|${RESULT.commit_message}\n`,
    )
    expect(await at('rev-parse', `${branch}^`)).toBe(await at('rev-parse', 'main'))
    expect(await at('-c', 'core.quotePath=false', 'ls-tree', '-r', branch)).toMatch(
      /^100644 blob \w+\tapp\.txt\n100755 blob \w+\tsrc\/new dir\/größe\.txt\n$/,
    )
    expect(await at('show', `${branch}:app.txt`)).toBe('mended\n')
    const updates = await at('reflog', 'show', '--format=%gs', branch)
    expect(updates.trim().split('\n')).toHaveLength(1)

    // What is left on this machine.
    const kept = await rig.git('-C', run?.base?.storePath ?? '', 'rev-parse', `refs/runs/${runId}`)
    expect(kept).toBe(await at('rev-parse', branch))
    expect(treesOf(rig)).toEqual([])
    expect(fingerprintOf(rig.layout.directories.claims)).toEqual([])
    expect(JSON.parse(readFileSync(rig.layout.run(runId).result, 'utf8'))).toEqual({
      status: 'success',
      ...RESULT,
    })
    expect(existsSync(rig.layout.run(runId).heartbeat)).toBe(false)
    expect(fingerprintOf(rig.clone)).toEqual(clone)
  })

  test('a further run changes nothing, and a merge ends the issue as done', async () => {
    const number = await rig.openIssue()
    await rig.tick()
    const world = await readWorld(rig)
    const queue = readFileSync(rig.layout.queue, 'utf8')
    await rig.control('clearRequests')

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    expect(await readWorld(rig)).toEqual(world)
    expect(readFileSync(rig.layout.queue, 'utf8')).toBe(queue)
    expect(await writesOf(rig)).toEqual([])
    expect(rig.journals()).toHaveLength(1)

    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    const merged = await readWorld(rig)
    rig.clock.advance(120_000) // as cron finds it: among what has changed
    expect(await rig.run('run')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(number)).toMatchObject({ phase: 'done', lastError: null, blocked: null })
    expect(await readWorld(rig)).toEqual(merged)
  })

  test('a pull request closed without a merge needs a human, who is told once', async () => {
    const number = await rig.openIssue()
    await rig.tick()
    await rig.control('closeIssue', { repo: rig.repo, number: 2 })
    const world = await readWorld(rig)

    const told = await rig.tick()
    expect(told).toMatchObject({ code: 1, stdout: '' })
    expect(told.stderr).toMatch(
      /^caduceus: octo\/app#1 needs attention: Pull request #2 was closed without being merged\. Label octo\/app#1 again .*\n$/,
    )
    expect(rig.entry(number)).toMatchObject({ phase: 'needs_attention', attempts: 0 })
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await readWorld(rig)).toEqual(world)
  })

  test('what a harness committed by itself is folded into the one commit of the daemon', async () => {
    rig.setBridge(
      bridge(`
import subprocess
def git(*args):
    subprocess.run(['git', '-c', 'user.name=Harness', '-c', 'user.email=h@example.org', *args], check=True)
open('app.txt', 'w').write('first\\n')
git('commit', '--quiet', '--all', '--message', 'wip one')
git('checkout', '--quiet', '-b', 'my-own-branch')
open('app.txt', 'a').write('second\\n')
open('added.txt', 'w').write('committed\\n')
git('add', 'app.txt', 'added.txt')
git('commit', '--quiet', '--message', 'wip two')
open('app.txt', 'a').write('third\\n')
open('late.txt', 'w').write('never added\\n')
result({})`),
    )
    await rig.openIssue()

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    const [branch = ''] = await branchesOf(rig)
    const at = async (...args: readonly string[]) => rig.git('-C', rig.origin, ...args)
    expect(await at('log', '--format=%an %s', `main..${branch}`)).toBe(
      'Caduceus Daemon fix(app): mend it\n',
    )
    expect(await at('ls-tree', '--name-only', branch)).toBe(
      'README.md\nadded.txt\napp.txt\nlate.txt\n',
    )
    expect(await at('show', `${branch}:app.txt`)).toBe('first\nsecond\nthird\n')
    expect(await at('for-each-ref', '--format=%(refname:short)', 'refs/heads')).toBe(
      `${branch}\nmain\n`,
    )
  })

  test('a container executor, which does not exist yet, is refused before anything is claimed', async () => {
    await rig.openIssue()
    const image = `registry.example.org/worker@sha256:${'a'.repeat(64)}`
    rig.setConfig({ executor_mode: 'oci', sandbox: { image } })

    const refused = await rig.tick()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toBe(
      'caduceus: executor_mode oci is not available in this version. Set executor_mode: trusted_host, or wait for the container executor.\n',
    )
    expect(existsSync(rig.layout.queue)).toBe(false)
    expect((await rig.control('readRequests', {})).total).toBe(0)
    expect((await rig.run('status')).code).toBe(3)
  })
})
