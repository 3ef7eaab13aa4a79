import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { BOT, bridge, LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  bridgeByIssue,
  fingerprintOf,
  readWorld,
  reportOf,
  resultOf,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

describe('does a labelled issue become a pull request?', () => {
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

    const told = await rig.tick()
    expect(told).toMatchObject({ code: 1, stdout: '' })
    expect(told.stderr).toMatch(
      /^caduceus: octo\/app#1 needs attention: Pull request #2 was closed without being merged\. .* To try again: caduceus queue reprocess octo\/app#1\n$/,
    )
    expect(rig.entry(number)).toMatchObject({ phase: 'needs_attention', attempts: 0 })
    const world = await readWorld(rig)
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

describe('how large may a change be?', () => {
  let rig: ProgramRig

  afterEach(async () => {
    await rig.close()
  })

  test('5 MB in 2,000 files are published, every byte of them', async () => {
    rig = await openProgramRig({
      bridge: bridge(`
for number in range(1, 2000):
    folder = 'generated/part %d' % (number % 40)
    os.makedirs(folder, exist_ok=True)
    with open('%s/file-%d.txt' % (folder, number), 'w') as stream:
        stream.write(('line of file %d\\n' % number) * 60)
with open('generated/blob.bin', 'wb') as stream:
    stream.write(bytes(range(256)) * 14000)
result({})`),
    })
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    const [branch = ''] = await branchesOf(rig)
    const at = async (...args: readonly string[]) => rig.git('-C', rig.origin, ...args)
    const changed = (await at('diff', '--raw', '-z', 'main', branch)).split('\0').filter(Boolean)
    expect(changed).toHaveLength(2 * 2000)
    const listing = (await at('ls-tree', '-r', '-l', branch, 'generated')).trim().split('\n')
    const bytes = listing.map((line) => Number(line.split(/\s+/)[3]))
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(5_000_000)
    expect(await at('cat-file', '-s', `${branch}:generated/blob.bin`)).toBe('3584000\n')
    expect(await at('show', `${branch}:generated/part 37/file-1237.txt`)).toBe(
      'line of file 1237\n'.repeat(60),
    )
    await at('fsck', '--strict', '--no-dangling')
    expect(treesOf(rig)).toEqual([])
  })

  test('a change that breaks a limit or touches a protected path needs a human, and the work is kept', async () => {
    rig = await openProgramRig({
      config: {
        max_changed_files: 4,
        max_diff_bytes: 3000,
        max_file_bytes: 2000,
        worker_parallelism: 5,
        max_runs_per_repo: 0,
      },
      bridge: bridgeByIssue({
        1: "for name in 'abcde': open(name, 'w').write(name)\nresult({})",
        2: "for name in 'abc': open(name, 'w').write(name * 1500)\nresult({})",
        3: "open('a', 'w').write('a' * 2001)\nresult({})",
        4: "os.makedirs('.github/workflows/deep')\nopen('.github/workflows/deep/a', 'w').write('a')\nresult({})",
        5: "for name in 'abcd': open(name, 'w').write(name * 750)\nresult({})",
      }),
    })
    const reasons = [
      '5 files changed, more than 4 (max_changed_files)',
      '4500 bytes changed, more than 3000 (max_diff_bytes)',
      '"a" has 2001 bytes, more than 2000 (max_file_bytes)',
      '".github/workflows/deep/a" is protected (protected_paths)',
    ]
    for (const _ of [...reasons, 'exactly at the limits']) await rig.openIssue()

    const told = await rig.tick()

    expect(told).toMatchObject({ code: 1, stdout: '' })
    expect(told.stderr.trim().split('\n')).toHaveLength(reasons.length)
    const { blocked_issues } = await reportOf(rig)
    for (const [index, reason] of reasons.entries()) {
      const number = index + 1
      const { treePath = '' } = rig.journals().find(({ key }) => key.number === number) ?? {}
      const message = `The change breaks a rule of this installation: ${reason}.`
      expect(rig.entry(number)).toMatchObject({
        phase: 'needs_attention',
        attempts: 0,
        lastError: { code: 'publish/policy', message },
      })
      expect(blocked_issues[index]).toEqual({
        issue_key: `octo/app#${number}`,
        blocked_source: 'publish/policy',
        blocked_recovery_hint:
          `The work is kept at ${treePath}. After a change of that rule reset publishes it; ` +
          'else add --force-finalization-reset, which runs the worker again. ' +
          `To try again: caduceus queue reset octo/app#${number}`,
        last_error: message,
      })
      expect(told.stderr).toContain(`octo/app#${number} needs attention: ${message}`)
      const kept = number === 4 ? '.github/workflows/deep/a' : 'a'
      expect(readFileSync(join(treePath, kept), 'utf8')).toMatch(/^a+$/)
      expect(existsSync(rig.layout.run(rig.entry(number)?.lastRunId ?? '').result)).toBe(true)
    }
    expect(rig.entry(5)?.phase).toBe('awaiting_review')
    expect(treesOf(rig)).toHaveLength(reasons.length)
    const branches = await branchesOf(rig)
    expect(branches).toEqual([expect.stringMatching(/^automation\/issue-5-/)])
    expect((await writesOf(rig)).filter((line) => !/issues\/5|pulls$/.test(line))).toEqual([])

    const world = await readWorld(rig)
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await readWorld(rig)).toEqual(world)
    expect(treesOf(rig)).toHaveLength(reasons.length)
  })
})

const FORBIDDEN = { summary: 'Made with OpenCode.' }

describe('does a dry run show everything and publish nothing?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      config: { worker_parallelism: 4, max_runs_per_repo: 0 },
    })
  })
  afterEach(async () => {
    await rig.close()
  })

  const reportOfIssue = (number: number): string => {
    const run = rig.journals().find(({ key }) => key.number === number)
    return readFileSync(rig.layout.run(run?.runId ?? '').dryRunReport, 'utf8')
  }

  test('the report holds what would be published, and a later real tick publishes it', async () => {
    rig.env['CADUCEUS_DRY_RUN'] = '1'
    const number = await rig.openIssue()
    const world = await readWorld(rig)

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    expect(rig.entry(number)).toMatchObject({
      phase: 'previewed',
      attempts: 0,
      lastError: null,
      pull: null,
    })
    const [run] = rig.journals()
    const runId = run?.runId ?? ''
    const paths = rig.layout.run(runId)
    const base = (await rig.git('-C', rig.origin, 'rev-parse', 'main')).trim()
    const report = readFileSync(paths.dryRunReport, 'utf8')
    expect(statSync(paths.dryRunReport).mode & 0o777).toBe(0o600)
    const rows = new Map(
      [...report.matchAll(/^\| (\S[^|]*) \| ([^|]*) \|$/gm)].map(([, name, value]) => [
        name,
        value,
      ]),
    )
    expect(Object.fromEntries(rows)).toEqual({
      Run: runId,
      Issue: 'octo/app#1',
      Kind: 'code',
      'Proposed branch': `automation/issue-1-${runId.toLowerCase()}`,
      Base: `main at ${base}`,
      Transcript: paths.transcript,
      'Worker result': paths.result,
      Tree: run?.treePath,
      Written: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    for (const path of [paths.transcript, paths.result, run?.treePath ?? '']) {
      expect(existsSync(path)).toBe(true)
    }
    expect(report).not.toContain('## Warnings')
    expect(report).toContain('## Proposed commit message\n\n```text\nfix(app): mend it\n```\n')
    expect(report).toContain('## Proposed pull request title\n\n```text\nfix(app): mend it\n```\n')
    expect(report).toContain(
      '## Proposed pull request body\n\n```markdown\nCloses #1\n\nMended the application.\n',
    )
    expect(report).toContain('## Proposed comment\n\n```markdown\nMended the application.\n')
    expect(report).toContain('## Changed files (1)\n\n```text\nmodified  app.txt\n```\n')
    expect(report).toMatch(
      /## Difference\n\n```diff\n[^]*\ndiff --git a\/app\.txt[^]*\n\+mended\n+```\n/,
    )

    expect(await writesOf(rig)).toEqual([])
    expect(await readWorld(rig)).toEqual(world)
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.journals()).toHaveLength(1)
    expect(rig.entry(number)?.phase).toBe('previewed')

    delete rig.env['CADUCEUS_DRY_RUN']
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(number)).toMatchObject({ phase: 'awaiting_review', attempts: 0 })
    expect(rig.journals()).toHaveLength(2)
    expect(await branchesOf(rig)).toHaveLength(1)
    expect(treesOf(rig)).toEqual([])
  })

  test('what a real run would stop at is a warning, and every kind of ticket has its report', async () => {
    rig.setConfig({ dry_run: true })
    rig.setBridge(
      bridgeByIssue({
        1: `open('app.txt', 'a').write('x')\n${resultOf(FORBIDDEN)}`,
        2: `os.makedirs('.github/workflows')\nopen('.github/workflows/ci.yml', 'w').write('x')\n${resultOf({})}`,
        3: resultOf({ summary: 'The cause is elsewhere.' }),
        4: resultOf({ summary: 'It is right as it is.' }),
      }),
    )
    await rig.openIssue()
    await rig.openIssue()
    await rig.openIssue({ labels: [LABELS.investigation] })
    await rig.openIssue()
    const world = await readWorld(rig)

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    expect([1, 2, 3, 4].map((number) => rig.entry(number)?.phase)).toEqual(
      Array(4).fill('previewed'),
    )
    expect(reportOfIssue(1)).toMatch(/## Warnings\n\n- The pull request body .*"opencode"/)
    expect(reportOfIssue(2)).toMatch(/## Warnings\n\n- .*\.github\/workflows\/ci\.yml.* protected/)
    const findings = reportOfIssue(3)
    expect(findings).toContain(
      '## Proposed comment\n\n```markdown\nThe cause is elsewhere.\n\n<!-- automation-run:',
    )
    expect(findings).toContain('| Kind | investigation |')
    expect(findings).not.toContain('pull request')
    const unchanged = reportOfIssue(4)
    expect(unchanged).toContain('It is right as it is.')
    expect(unchanged).toContain('## Changed files (0)\n\nNone.\n')

    expect(await writesOf(rig)).toEqual([])
    expect(await readWorld(rig)).toEqual(world)
  })
})

describe('does an investigation ticket end with findings, and with nothing else?', () => {
  const FINDINGS = {
    summary: 'The cause is in `app.txt`.',
    artifacts: { suspects: ['app.txt'] },
  }

  const SHOWN_ARTIFACTS = `Artifacts (1):

\`\`\`json
{
  "suspects": [
    "app.txt"
  ]
}
\`\`\``

  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      config: { worker_parallelism: 2, max_runs_per_repo: 0 },
    })
  })
  afterEach(async () => {
    await rig.close()
  })

  test('the findings become a comment, the label goes, the issue is closed; edits are told, not published', async () => {
    rig.setBridge(
      bridgeByIssue({
        1: resultOf(FINDINGS),
        2: `open('app.txt', 'w').write('mended')\nopen('more.txt', 'w').write('')\n${resultOf(FINDINGS)}`,
      }),
    )
    const readOnly = await rig.openIssue({ labels: [LABELS.investigation] })
    const editing = await rig.openIssue({ labels: [LABELS.investigation, 'bug'] })

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    const runs = new Map(rig.journals().map(({ key, runId }) => [key.number, runId]))
    const note =
      '\n\n*(2 edited file(s) were not published: this ticket asked for an investigation.)*'
    for (const [number, told] of [
      [readOnly, ''],
      [editing, note],
    ] as const) {
      expect(rig.entry(number)).toMatchObject({
        phase: 'done',
        ticket: 'investigation',
        pull: null,
      })
      const issue = await rig.control('readIssue', { repo: rig.repo, number })
      expect(issue).toMatchObject({ state: 'closed', closedBy: BOT })
      expect(issue.labels).toEqual(number === editing ? ['bug'] : [])
      expect(issue.comments.map(({ author, body }) => ({ author, body }))).toEqual([
        {
          author: BOT,
          body: `${FINDINGS.summary}${told}\n\n${SHOWN_ARTIFACTS}\n\n<!-- automation-run:${runs.get(number)} kind:findings generation:1 -->`,
        },
      ])
      const ours = issue.events.filter(({ actor }) => actor === BOT)
      expect(ours.map(({ kind }) => kind)).toEqual(['unlabeled', 'closed'])
    }
    const label = encodeURIComponent(LABELS.investigation)
    const writesFor = (number: number) => [
      `POST /repos/octo/app/issues/${number}/comments`,
      `DELETE /repos/octo/app/issues/${number}/labels/${label}`,
      `PATCH /repos/octo/app/issues/${number}`,
    ]
    const writes = await writesOf(rig)
    expect(writes).toHaveLength(6)
    expect(writes).toEqual(expect.arrayContaining([...writesFor(1), ...writesFor(2)]))
    expect(await branchesOf(rig)).toEqual([])
    expect(treesOf(rig)).toEqual([])

    const world = await readWorld(rig)
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await readWorld(rig)).toEqual(world)
  })

  test('with close_issue: never and the label kept, the issue stays as it is and is not taken up again', async () => {
    rig.setConfig({ close_issue: 'never', remove_label_on_completion: false })
    rig.setBridge(bridge(resultOf(FINDINGS)))
    const number = await rig.openIssue({ labels: [LABELS.investigation] })

    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
    expect(await writesOf(rig)).toEqual(['POST /repos/octo/app/issues/1/comments'])
    const issue = await rig.control('readIssue', { repo: rig.repo, number })
    expect(issue).toMatchObject({ state: 'open', labels: [LABELS.investigation] })

    await rig.control('commentIssue', {
      repo: rig.repo,
      number,
      actor: 'alice',
      body: 'Thank you!',
    })
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(number)).toMatchObject({ phase: 'done', generation: 1 })
    expect(rig.journals()).toHaveLength(1)
  })
})
