import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { layoutOf } from '../../daemon/state/layout.ts'

describe('where things lie in the state directory', () => {
  const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
  const KEY = { owner: 'Owner', name: 'Re.Po', number: 12 }
  const layout = layoutOf('/state')

  test('the visible files of a run lie flat, the others in its directory', () => {
    const { directory, ...files } = layout.run(RUN)
    expect(directory).toBe(`/state/runs/${RUN}`)
    const tails = Object.values(files).map((path) => path.replace(directory, ''))
    const flat = tails.filter((tail) => !tail.startsWith('/'))
    expect(flat).toEqual(['.log', '.result.json', '.dry-run.md', '.heartbeat'])
    expect(tails).toEqual(expect.arrayContaining(['/journal.json', '/exit.json', '/sup.lock']))
    expect(tails.filter((tail) => tail.lastIndexOf('/') > 0)).toEqual([])
  })

  test('repositories lie under lowercase names, because GitHub ignores case', () => {
    expect(layout.worktree(KEY, RUN)).toBe(`/state/worktrees/owner/re.po/${RUN}`)
    expect(layout.store(KEY)).toBe('/state/repos/owner/re.po.git')
  })

  test('a claim is named by the digest of the lowercase key and nothing else', () => {
    const digest = createHash('sha256').update('owner/re.po#12').digest('hex')
    expect(layout.claim(KEY)).toBe(`/state/claims/${digest}.claim`)
    expect(layout.claim({ owner: 'OWNER', name: 're.po', number: 12 })).toBe(layout.claim(KEY))
  })

  test('no key leads out of the claims folder', () => {
    for (const name of [`${'../'.repeat(3)}x`, '/x', 'a\u0000b', '..', 'x'.repeat(5000), 'a\nb']) {
      const path = layout.claim({ owner: name, name, number: 1 })
      expect(dirname(path)).toBe('/state/claims')
      expect(basename(path)).toMatch(/^[0-9a-f]{64}\.claim$/)
    }
  })

  test('no run id and no repository leads out of its folder', () => {
    for (const text of ['..', '../x', '', 'x/y', RUN.toLowerCase(), `${RUN}/..`]) {
      expect(() => layout.run(text)).toThrow(/is not a run id/)
      expect(() => layout.worktree(KEY, text)).toThrow(/is not a run id/)
    }
    for (const name of ['..', '.', 'a/b', '']) {
      expect(() => layout.worktree({ owner: 'a', name }, RUN)).toThrow(/name of a repository/)
      expect(() => layout.store({ owner: 'a', name })).toThrow(/name of a repository/)
      expect(() => layout.store({ owner: name, name: 'a' })).toThrow(/name of a repository/)
    }
  })

  test('no two things share a path', () => {
    const { run, directories, claim, worktree, store, ...files } = layout
    const paths = [
      ...Object.values(files),
      ...Object.values(directories),
      ...Object.values(run(RUN)),
      claim(KEY),
      worktree(KEY, RUN),
      store(KEY),
    ]
    expect(new Set(paths).size).toBe(paths.length)
  })

  test('a slash at the end changes nothing', () => {
    expect(layoutOf('/state/').stateDir).toBe('/state')
    expect(layoutOf('/state//').queue).toBe('/state/state.json')
  })
})
