import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { bridge, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  bridgeByIssue,
  readWorld,
  reportOf,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

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
        blocked_recovery_hint: `The work is kept at ${treePath}.`,
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
