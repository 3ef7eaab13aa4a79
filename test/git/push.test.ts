import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { BaseCommit, CommitRequest, Git } from '../../daemon/core/ports.ts'
import {
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeGitScene,
  RUN_BRANCH,
  WIDGETS,
  writeAt,
} from '../support/git-scene.ts'

const AUTHOR = { name: 'Caduceus Daemon', email: 'caduceus@daemon.local' } as const

let scene: GitScene
let base: BaseCommit
let request: CommitRequest

beforeEach(async () => {
  scene = makeGitScene()
  const tree = await scene.checkOut()
  base = tree.base
  writeAt(join(tree.path, 'README.md'), 'changed\n')
  const { treeOid } = await scene.git.captureTree(tree, CONTROL_FILES)
  request = {
    treeOid,
    parentOid: base.oid,
    message: 'Fix: ünïcode\n\n# not a comment\n-- trailing  \n',
    author: AUTHOR,
    dateSeconds: 1_700_000_000,
    keepAs: 'refs/runs/01hzz',
  }
})
afterEach(() => scene.remove())

const commit = async (): Promise<string> => scene.git.commitTree(base.storePath, request)
const push = async (oid: string, git: Git = scene.git): Promise<void> =>
  git.pushNewBranch(base.storePath, oid, RUN_BRANCH)
const originRefs = (): string =>
  scene.run(scene.origin, 'for-each-ref', '--format=%(refname) %(objectname)')

function hook(name: string, script: string): void {
  writeAt(join(scene.origin, 'hooks', name), `#!/bin/sh\n${script}\n`, 0o755)
}

describe('a commit', () => {
  test('is what the request says, byte for byte, on top of the base', async () => {
    const oid = await commit()
    const bytes = execFileSync('git', ['-C', base.storePath, 'cat-file', 'commit', oid])
    expect(bytes.toString()).toBe(
      [
        `tree ${request.treeOid}`,
        `parent ${base.oid}`,
        'author Caduceus Daemon <caduceus@daemon.local> 1700000000 +0000',
        'committer Caduceus Daemon <caduceus@daemon.local> 1700000000 +0000',
        '',
        request.message,
      ].join('\n'),
    )
  })

  test('has the same id whenever and wherever it is made', async () => {
    const oid = await commit()
    expect(await commit()).toBe(oid)
    const git = scene.open({}, { TZ: 'Asia/Tokyo', GIT_AUTHOR_NAME: 'X', EMAIL: 'x@example.org' })
    expect(await git.commitTree(base.storePath, request)).toBe(oid)
  })

  test('is kept through a garbage collection of the store', async () => {
    const oid = await commit()
    scene.run(base.storePath, 'gc', '-q', '--prune=now')
    expect(await scene.git.hasCommit(base.storePath, oid)).toBe(true)
    expect(scene.run(base.storePath, 'rev-parse', 'refs/runs/01hzz')).toBe(oid)
  })

  test('that the store does not have is not there', async () => {
    const { git } = scene
    expect(await git.hasCommit(base.storePath, '0'.repeat(39) + '1')).toBe(false)
    expect(await git.hasCommit(base.storePath, request.treeOid)).toBe(false)
    expect(await faultOf(git.hasCommit(base.storePath, '--help'))).toMatchObject({
      code: 'git/failed',
    })
  })

  test('is not kept under a branch of anybody', async () => {
    request = { ...request, keepAs: 'refs/heads/develop' }
    expect(await faultOf(commit())).toMatchObject({ code: 'git/failed' })
  })
})

describe('a push', () => {
  test('creates the branch, and nothing else; again it is no error', async () => {
    const before = originRefs()
    scene.run(base.storePath, 'tag', 'v9', base.oid)
    const oid = await commit()
    expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(null)
    await push(oid)
    await push(oid)
    expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(oid)
    expect(originRefs()).toBe(`refs/heads/${RUN_BRANCH} ${oid}\n${before}`)
  })

  test('never changes a branch that is there, ancestor or not (C18)', async () => {
    const oid = await commit()
    for (const foreign of [base.oid, scene.push({ 'human.txt': 'x' })]) {
      scene.run(scene.origin, 'update-ref', `refs/heads/${RUN_BRANCH}`, foreign)
      expect(await faultOf(push(oid))).toMatchObject({
        code: 'git/foreign-branch',
        details: {
          found: foreign,
          expected: oid,
          effect: 'none',
          kept: `${oid} in ${base.storePath}`,
        },
      })
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(foreign)
    }
  })

  test('is not misled by a ref that ends in the same name', async () => {
    scene.run(scene.origin, 'update-ref', `refs/heads/refs/heads/${RUN_BRANCH}`, base.oid)
    expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(null)
  })

  test('that the rules refuse is told with their text, without secrets (C33, C34)', async () => {
    const secret = 'ghp'.concat('_', 'a'.repeat(36))
    hook(
      'pre-receive',
      `echo 'error: GH013: Repository rule violations found for refs/heads/x.'; echo; echo '—————'; echo 'Push cannot contain secrets: ${secret}'; exit 1`,
    )
    const found = await faultOf(push(await commit()))
    expect(found).toMatchObject({
      code: 'git/push-rejected',
      details: {
        branch: RUN_BRANCH,
        effect: 'none',
        reason:
          'error: GH013: Repository rule violations found for refs/heads/x. Push cannot contain secrets: <redacted> [remote rejected] (pre-receive hook declined)',
      },
    })
    expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(null)
  })

  test('whose connection breaks after it was sent may have taken effect', async () => {
    scene.run(
      scene.clone,
      'config',
      'remote.origin.receivepack',
      'git-receive-pack --http-backend-info-refs',
    )
    const oid = await commit()
    expect(await faultOf(push(oid))).toMatchObject({
      code: 'git/failed',
      details: { operation: 'push', effect: 'unknown' },
    })
  })

  test('that outlasts the deadline is ended and may have taken effect', async () => {
    const oid = await commit()
    hook('pre-receive', 'sleep 600 & wait')
    const started = performance.now()
    expect(await faultOf(push(oid, scene.open({ timeoutMs: 1_500 })))).toMatchObject({
      code: 'git/failed',
      details: { operation: 'push', effect: 'unknown', timedOut: true },
    })
    expect(performance.now() - started).toBeLessThan(10_000)
  })

  test('to a remote that is not there has no effect', async () => {
    const oid = await commit()
    scene.run(scene.clone, 'remote', 'set-url', 'origin', join(scene.root, 'gone/acme/widgets.git'))
    expect(await faultOf(push(oid))).toMatchObject({
      code: 'git/failed',
      details: { effect: 'none' },
    })
    scene.run(scene.clone, 'remote', 'remove', 'origin')
    expect(await faultOf(push(oid))).toMatchObject({
      code: 'clone/no-origin',
      details: { effect: 'none' },
    })
    expect(await faultOf(scene.git.pushNewBranch(base.storePath, oid, '../x'))).toMatchObject({
      code: 'git/failed',
      details: { effect: 'none' },
    })
  })

  test('goes where the operator pushes, and looks there', async () => {
    const mirror = join(scene.root, 'push/acme/widgets.git')
    scene.run(scene.root, 'clone', '-q', '--bare', scene.origin, mirror)
    scene.run(scene.clone, 'remote', 'set-url', '--push', 'origin', mirror)
    const oid = await commit()
    await push(oid)
    expect(scene.run(mirror, 'rev-parse', RUN_BRANCH)).toBe(oid)
    expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH)).toBe(oid)
    expect(originRefs()).not.toContain(RUN_BRANCH)
  })

  test('ignores what the operator’s global configuration adds to a push', async () => {
    writeAt(
      join(scene.root, 'home/.gitconfig'),
      '[push]\n\tpushOption = x\n\tgpgSign = true\n\tfollowTags = true\n[remote "origin"]\n\tmirror = true\n\tpush = refs/*:refs/*\n',
    )
    const oid = await commit()
    await push(oid)
    expect(originRefs()).toContain(`refs/heads/${RUN_BRANCH} ${oid}`)
    expect(originRefs()).not.toContain('refs/runs')
  })

  test('is done by the repository’s own store only', async () => {
    const stray = join(scene.root, 'stray.git')
    scene.run(scene.root, 'init', '-q', '--bare', stray)
    expect(await faultOf(scene.git.remoteBranch(stray, RUN_BRANCH))).toMatchObject({
      code: 'git/failed',
    })
  })
})

describe('the text of a difference', () => {
  test('shows a summary and the patch, also of names that are no ASCII', async () => {
    const tree = await scene.checkOut('text')
    writeAt(join(tree.path, 'ü.txt'), 'new\n')
    const { treeOid } = await scene.git.captureTree(tree, CONTROL_FILES)
    const from = scene.run(base.storePath, 'rev-parse', `${base.oid}^{tree}`)
    const text = await scene.git.describeDifference(base.storePath, from, treeOid, 10_000)
    expect(text).toContain(' ü.txt | 1 +')
    expect(text).toContain('+new')
    expect(await scene.git.fetchBase(WIDGETS, await scene.git.inspectClone(WIDGETS), null)).toEqual(
      base,
    )
  })

  test('is cut between characters', async () => {
    const tree = await scene.checkOut('cut')
    writeAt(join(tree.path, 'x.txt'), 'ü'.repeat(1_000))
    const { treeOid } = await scene.git.captureTree(tree, CONTROL_FILES)
    for (const maxBytes of [500, 501]) {
      const text = await scene.git.describeDifference(base.storePath, base.oid, treeOid, maxBytes)
      expect(text).not.toContain('\ufffd')
      expect(Buffer.byteLength(text)).toBeGreaterThan(maxBytes - 3)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes)
    }
  })
})
