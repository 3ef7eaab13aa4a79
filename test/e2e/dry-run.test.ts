import { existsSync, readFileSync, statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  bridgeByIssue,
  readWorld,
  resultOf,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

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
