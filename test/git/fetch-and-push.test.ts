import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
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
import { bundleFixture, waitUntil } from '../support/processes.ts'

let scene: GitScene
afterEach(() => scene.remove())

describe('fetching the base', () => {
  let store: string

  beforeEach(() => {
    scene = makeGitScene()
    store = join(scene.storageRoot, 'acme/widgets.git')
  })

  async function fetchDefault(branch: string | null = 'develop', git = scene.git) {
    return git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), branch)
  }

  describe('the daemon’s own store', () => {
    test('is made with the tip of the default branch, and follows it', async () => {
      const first = await fetchDefault()
      expect(first).toEqual({
        storePath: store,
        branch: 'develop',
        oid: scene.run(scene.origin, 'rev-parse', 'develop'),
        remote: {
          clonePath: scene.clone,
          settings: expect.arrayContaining([{ key: ['remote.origin.url'], value: [scene.origin] }]),
        },
      })
      const second = scene.push({ 'b.txt': 'b' })
      expect((await fetchDefault()).oid).toBe(second)
    })

    test('asks the origin for its default branch when GitHub did not tell it', async () => {
      expect((await fetchDefault(null)).branch).toBe('develop')
      scene.push({ 'v2.txt': '' }, 'next/v2')
      scene.run(scene.origin, 'symbolic-ref', 'HEAD', 'refs/heads/next/v2')
      expect((await fetchDefault(null)).branch).toBe('next/v2')
    })

    test('holds one branch, no tag, no alternates, no remote, no hook', async () => {
      scene.run(scene.clone, 'branch', 'mine')
      scene.run(scene.clone, 'tag', 'v1')
      scene.run(scene.clone, 'push', '-q', 'origin', 'v1', 'mine')
      await fetchDefault()
      scene.push({ 'b.txt': 'b' })
      await fetchDefault()
      expect(scene.run(store, 'for-each-ref', '--format=%(refname)')).toBe(
        'refs/remotes/origin/develop',
      )
      expect(existsSync(join(store, 'objects/info/alternates'))).toBe(false)
      expect(existsSync(join(store, 'hooks'))).toBe(false)
      expect(existsSync(join(store, 'FETCH_HEAD'))).toBe(false)
      expect(readFileSync(join(store, 'config'), 'utf8')).not.toContain('remote')
      expect(readdirSync(scene.storageRoot).sort()).toEqual(['.making', 'acme'])
      expect(existsSync(join(scene.storageRoot, '.making/acme/widgets'))).toBe(false)
    })

    test('shares the clone’s objects by hard links and leaves the clone untouched', async () => {
      const before =
        scene.run(scene.clone, 'for-each-ref') + scene.run(scene.clone, 'status', '--porcelain')
      await fetchDefault()
      const oid = scene.run(scene.clone, 'rev-parse', 'HEAD')
      const object = join('objects', oid.slice(0, 2), oid.slice(2))
      expect(statSync(join(store, object)).ino).toBe(
        statSync(join(scene.clone, '.git', object)).ino,
      )
      expect(
        scene.run(scene.clone, 'for-each-ref') + scene.run(scene.clone, 'status', '--porcelain'),
      ).toBe(before)
    })

    test('is complete when the clone borrows its objects', async () => {
      const lender = join(scene.root, 'lender')
      scene.run(scene.root, 'clone', '-q', scene.origin, lender)
      rmSync(scene.clone, { recursive: true })
      scene.run(scene.root, 'clone', '-q', '--shared', lender, scene.clone)
      scene.run(scene.clone, 'remote', 'set-url', 'origin', scene.origin)
      await fetchDefault()
      rmSync(lender, { recursive: true })
      expect(scene.run(store, 'fsck', '--connectivity-only')).toBe('')
      expect(existsSync(join(store, 'objects/info/alternates'))).toBe(false)
    })

    test('is complete when the clone is shallow', async () => {
      scene.push({ 'b.txt': 'b' })
      rmSync(scene.clone, { recursive: true })
      scene.run(scene.root, 'clone', '-q', '--depth=1', `file://${scene.origin}`, scene.clone)
      const { oid } = await fetchDefault()
      expect(scene.run(store, 'rev-list', '--count', oid)).toBe('2')
    })

    test('is complete when the clone is partial', async () => {
      scene.run(scene.origin, 'config', 'uploadpack.allowFilter', 'true')
      scene.push({ 'b.txt': 'b' })
      scene.push({ 'b.txt': 'c' })
      rmSync(scene.clone, { recursive: true })
      scene.run(
        scene.root,
        'clone',
        '-q',
        '--filter=blob:none',
        `file://${scene.origin}`,
        scene.clone,
      )
      expect((await scene.git.inspectClone(WIDGETS)).shallowOrPartial).toBe(true)
      await fetchDefault()
      expect(scene.run(store, 'fsck', '--connectivity-only')).toBe('')
    })

    test('is made from the origin when objects of the clone are missing', async () => {
      const blob = scene.run(scene.clone, 'rev-parse', 'HEAD:README.md')
      rmSync(join(scene.clone, '.git/objects', blob.slice(0, 2), blob.slice(2)))
      const { oid } = await fetchDefault()
      expect(scene.run(store, 'cat-file', '-p', `${oid}:README.md`)).toBe('hello')
    })

    test('works from a bare clone and from a linked worktree', async () => {
      const main = join(scene.root, 'main')
      scene.run(scene.root, 'clone', '-q', scene.origin, main)
      rmSync(scene.clone, { recursive: true })
      scene.run(main, 'worktree', 'add', '-q', '-b', 'w', scene.clone)
      const linked = await fetchDefault()
      rmSync(scene.clone, { recursive: true })
      rmSync(store, { recursive: true })
      scene.run(scene.root, 'clone', '-q', '--bare', scene.origin, scene.clone)
      expect(await fetchDefault()).toEqual(linked)
    })

    test('outlives a rewritten upstream and a garbage collection of the clone', async () => {
      const first = await fetchDefault()
      scene.run(join(scene.root, 'other'), 'reset', '-q', '--hard', 'HEAD')
      scene.run(join(scene.root, 'other'), 'commit', '-q', '--amend', '-m', 'rewritten')
      const rewritten = scene.push({ 'c.txt': 'c' })
      scene.run(scene.clone, 'fetch', '-q', '--prune')
      scene.run(scene.clone, 'reset', '-q', '--hard', 'origin/develop')
      scene.run(scene.clone, 'reflog', 'expire', '--expire=now', '--all')
      scene.run(scene.clone, 'gc', '-q', '--prune=now')
      expect((await fetchDefault()).oid).toBe(rewritten)
      expect(scene.run(store, 'cat-file', '-t', first.oid)).toBe('commit')
    })

    test('keeps the commits of runs through every fetch', async () => {
      const { oid } = await fetchDefault()
      scene.run(store, 'update-ref', 'refs/runs/one', oid)
      scene.push({ 'b.txt': 'b' })
      await fetchDefault()
      expect(scene.run(store, 'rev-parse', 'refs/runs/one')).toBe(oid)
    })

    test('follows a default branch whose name collides with the old one', async () => {
      scene.push({ 'b.txt': 'b' }, 'v2')
      await fetchDefault('v2')
      scene.run(scene.origin, 'update-ref', '-d', 'refs/heads/v2')
      const oid = scene.push({ 'b.txt': 'c' }, 'v2/main')
      expect(await fetchDefault('v2/main')).toMatchObject({ branch: 'v2/main', oid })
    })

    test('follows the operator to another origin', async () => {
      await fetchDefault()
      const moved = join(scene.root, 'elsewhere/acme/widgets.git')
      scene.run(scene.root, 'clone', '-q', '--bare', scene.origin, moved)
      scene.run(scene.clone, 'remote', 'set-url', 'origin', moved)
      rmSync(scene.origin, { recursive: true })
      expect((await fetchDefault()).branch).toBe('develop')
    })

    test('removes lock files older than the deadline, which would block every fetch', async () => {
      await fetchDefault()
      const oid = scene.push({ 'b.txt': 'b' })
      const lock = join(store, 'refs/remotes/origin/develop.lock')
      writeAt(lock, '')
      expect(await faultOf(fetchDefault())).toMatchObject({ code: 'git/failed' })
      const old = Date.now() / 1000 - 3600
      utimesSync(lock, old, old)
      expect((await fetchDefault()).oid).toBe(oid)
    })

    test('is never half made: what a killed attempt left is thrown away', async () => {
      writeAt(join(scene.storageRoot, '.making/acme/widgets/store.git/HEAD'), 'ref: refs/heads/x\n')
      expect((await fetchDefault()).branch).toBe('develop')
      expect(existsSync(join(scene.storageRoot, '.making/acme/widgets'))).toBe(false)
    })

    test('is fetched by several at once', async () => {
      const all = await Promise.all([
        fetchDefault(),
        fetchDefault('develop', scene.open()),
        fetchDefault(null, scene.open()),
      ])
      expect(new Set(all.map(({ oid }) => oid)).size).toBe(1)
      expect(scene.run(store, 'fsck')).toBe('')
    })

    test('says what to do when it is damaged', async () => {
      await fetchDefault()
      rmSync(join(store, 'HEAD'))
      expect(await faultOf(fetchDefault())).toMatchObject({
        code: 'git/store-damaged',
        details: { path: store },
      })
    })

    test('is not made of an empty origin or a branch that is not there', async () => {
      expect(await faultOf(fetchDefault('main'))).toMatchObject({
        code: 'git/no-default-branch',
        details: { repo: 'Acme/Widgets' },
      })
      scene.run(scene.origin, 'update-ref', '-d', 'refs/heads/develop')
      expect(await faultOf(fetchDefault(null))).toMatchObject({ code: 'git/no-default-branch' })
      expect(existsSync(store)).toBe(false)
    })

    test('refuses a name of a branch that would mean something else to git', async () => {
      for (const name of ['*', '-d', 'a..b', 'a:b', '']) {
        expect(await faultOf(fetchDefault(name))).toMatchObject({ code: 'git/failed' })
      }
    })
  })

  describe('processes of their own', () => {
    let program: ReturnType<typeof bundleFixture>
    let children: ChildProcess[] = []

    beforeAll(() => {
      program = bundleFixture('daemon-actor')
    })
    afterEach(() => {
      for (const child of children) child.kill('SIGKILL')
      children = []
    })
    afterAll(() => program.remove())

    /** Resolves with what it printed once it has ended. */
    function start(path = ''): { child: ChildProcess; output: Promise<string> } {
      const env = { ...scene.environment, PATH: `${path}${scene.environment['PATH']}` }
      const child = spawn(process.execPath, [program.path, 'fetch-base', scene.root], {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      children.push(child)
      let text = ''
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      return { child, output: once(child, 'close').then(() => text) }
    }

    test('make and fetch the store together (C21)', async () => {
      const all = [start(), start(), start()]
      const outputs = await Promise.all(all.map(async ({ output }) => output))
      const oid = scene.run(scene.origin, 'rev-parse', 'develop')
      const bases = outputs.map((output) => JSON.parse(output) as BaseCommit)
      const made = { storePath: store, branch: 'develop', oid }
      expect(bases).toEqual(all.map(() => expect.objectContaining(made)))
      expect(scene.run(store, 'fsck')).toBe('')
    })

    test('may be killed while they make it; the next one makes it', async () => {
      const pidFile = join(scene.root, 'pid')
      writeAt(
        join(scene.root, 'bin/git'),
        `#!/bin/sh\ncase "$*" in *" clone "*) for last; do :; done; mkdir -p "$last/refs"; echo $$ > '${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec sleep 600;; esac\nPATH=\${PATH#*:} exec git "$@"\n`,
        0o755,
      )
      const { child, output } = start(`${join(scene.root, 'bin')}:`)
      const orphan = Number(
        await waitUntil(
          'the clone has begun',
          () => existsSync(pidFile) && readFileSync(pidFile, 'utf8'),
        ),
      )
      child.kill('SIGKILL')
      expect(await output).toBe('')
      expect(existsSync(store)).toBe(false)
      expect((await fetchDefault()).branch).toBe('develop')
      process.kill(orphan, 'SIGKILL')
    })
  })
})

describe('pushing a commit', () => {
  const AUTHOR = { name: 'Caduceus Daemon', email: 'caduceus@daemon.local' } as const
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

  const commit = async (): Promise<string> => scene.git.commitTree(base.storePath, request)
  const push = async (oid: string, git: Git = scene.git): Promise<void> =>
    git.pushNewBranch(base.storePath, oid, RUN_BRANCH, null)
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
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(null)
      await push(oid)
      await push(oid)
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(oid)
      expect(originRefs()).toBe(`refs/heads/${RUN_BRANCH} ${oid}\n${before}`)
    })

    test('never changes a branch that is there, ancestor or not (C18)', async () => {
      const oid = await commit()
      for (const foreign of [base.oid, scene.push({ 'human.txt': 'x' })]) {
        scene.run(scene.origin, 'update-ref', `refs/heads/${RUN_BRANCH}`, foreign)
        expect(await faultOf(push(oid))).toMatchObject({
          code: 'git/foreign-branch',
          effect: 'none',
          details: {
            found: foreign,
            expected: oid,
            kept: `${oid} in ${base.storePath}`,
          },
        })
        expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(foreign)
      }
    })

    test('is not misled by a ref that ends in the same name', async () => {
      scene.run(scene.origin, 'update-ref', `refs/heads/refs/heads/${RUN_BRANCH}`, base.oid)
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(null)
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
        effect: 'none',
        details: {
          branch: RUN_BRANCH,
          reason:
            'error: GH013: Repository rule violations found for refs/heads/x. Push cannot contain secrets: <redacted> [remote rejected] (pre-receive hook declined)',
        },
      })
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(null)
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
        effect: 'unknown',
        details: { operation: 'push' },
      })
    })

    test('that outlasts the deadline is ended and may have taken effect', async () => {
      const oid = await commit()
      hook('pre-receive', 'sleep 600 & wait')
      const started = performance.now()
      expect(await faultOf(push(oid, scene.open({ timeoutMs: 1_500 })))).toMatchObject({
        code: 'git/failed',
        effect: 'unknown',
        details: { operation: 'push', timedOut: true },
      })
      expect(performance.now() - started).toBeLessThan(10_000)
    })

    test('to a remote that is not there has no effect', async () => {
      const oid = await commit()
      scene.run(
        scene.clone,
        'remote',
        'set-url',
        'origin',
        join(scene.root, 'gone/acme/widgets.git'),
      )
      expect(await faultOf(push(oid))).toMatchObject({
        code: 'git/failed',
        effect: 'none',
      })
      scene.run(scene.clone, 'remote', 'remove', 'origin')
      expect(await faultOf(push(oid))).toMatchObject({
        code: 'clone/no-origin',
        effect: 'none',
      })
      expect(
        await faultOf(scene.git.pushNewBranch(base.storePath, oid, '../x', null)),
      ).toMatchObject({
        code: 'git/failed',
        effect: 'none',
      })
    })

    test('goes where the operator pushes, and looks there', async () => {
      const mirror = join(scene.root, 'push/acme/widgets.git')
      scene.run(scene.root, 'clone', '-q', '--bare', scene.origin, mirror)
      scene.run(scene.clone, 'remote', 'set-url', '--push', 'origin', mirror)
      const oid = await commit()
      await push(oid)
      expect(scene.run(mirror, 'rev-parse', RUN_BRANCH)).toBe(oid)
      expect(await scene.git.remoteBranch(base.storePath, RUN_BRANCH, null)).toBe(oid)
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
      expect(await faultOf(scene.git.remoteBranch(stray, RUN_BRANCH, null))).toMatchObject({
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
      expect(
        await scene.git.fetchBase(WIDGETS, await scene.git.inspectClone(WIDGETS), null),
      ).toEqual(base)
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
})
