import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { FetchedBase, RunTree } from '../../daemon/core/ports.ts'
import { sshCommand } from '../../daemon/git/remote-access.ts'
import {
  type Canary,
  CONTROL_FILES,
  faultOf,
  type GitScene,
  makeCanary,
  makeGitScene,
  RUN_BRANCH,
  WIDGETS,
  writeAt,
} from '../support/git-scene.ts'
import { waitUntil } from '../support/processes.ts'

let scene: GitScene

describe('access to a remote', () => {
  let server: Server
  let requests: { url: string; authorization: string; commandLines: string }[]

  beforeAll(async () => {
    server = createServer((request, response) => {
      requests.push({
        url: request.url ?? '',
        authorization: header(request),
        commandLines: commandLines(),
      })
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve))
  })
  beforeEach(async () => {
    requests = []
    scene = makeGitScene()
    await scene.git.fetchBase(WIDGETS, await scene.git.inspectClone(WIDGETS), null)
  })
  afterEach(() => scene.remove())

  const header = (request: IncomingMessage): string => request.headers.authorization ?? ''
  const store = (): string => join(scene.storageRoot, 'acme/widgets.git')
  const ask = async (git = scene.git): Promise<string | null> =>
    git.remoteBranch(store(), RUN_BRANCH, null)

  function serverUrl(user = ''): string {
    // A server that listens on a port has an address of this kind.
    const { port } = server.address() as AddressInfo
    return `http://${user}127.0.0.1:${port}/acme/widgets.git`
  }

  function setOrigin(url: string): void {
    scene.run(scene.clone, 'remote', 'set-url', 'origin', url)
  }

  /** Of every process that can be seen. */
  function commandLines(): string {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return pids.map((pid) => contentOf(`/proc/${pid}/cmdline`)).join('\n')
  }

  function contentOf(path: string): string {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }

  /** An ssh program: notes its arguments and environment, then does what the script says. */
  function makeSsh(name: string, script: string): string {
    const path = join(scene.root, 'bin', name)
    const note = join(scene.root, 'ssh-note')
    writeAt(
      path,
      `#!/bin/sh\n{ echo "ARGS: $*"; env; } >> '${note}'\nfor last; do :; done\n${script}\n`,
      0o755,
    )
    return path
  }
  const sshNote = (): string => contentOf(join(scene.root, 'ssh-note'))
  const SERVE = 'case "$*" in *" -G "*) exit 0;; esac\nexec sh -c "$last"'

  describe('a remote that wants to be asked for a password', () => {
    test('fails in seconds, with no effect, and never prompts (C32)', async () => {
      writeAt(join(scene.root, 'home/.gitconfig'), '[core]\n\taskPass = "sleep 600; echo"\n')
      setOrigin(serverUrl())
      const git = scene.open(
        {},
        { GIT_ASKPASS: '/bin/false', SSH_ASKPASS: '/bin/false', DISPLAY: ':0' },
      )
      const started = performance.now()
      expect(
        await faultOf(
          git.pushNewBranch(
            store(),
            scene.run(store(), 'rev-parse', 'refs/remotes/origin/develop'),
            RUN_BRANCH,
            null,
          ),
        ),
      ).toMatchObject({
        code: 'git/failed',
        message: expect.stringContaining('terminal prompts disabled'),
        effect: 'none',
      })
      expect(performance.now() - started).toBeLessThan(10_000)
    })

    test('gets the credential of the operator’s helper', async () => {
      const helper = join(scene.root, 'helper')
      writeAt(
        helper,
        '#!/bin/sh\n[ "$1" = get ] && printf "username=me\\npassword=from-helper\\n"\n',
        0o755,
      )
      writeAt(
        join(scene.root, 'home/.gitconfig'),
        `[credential "http://127.0.0.1"]\n\thelper = "!'${helper}'"\n[credential]\n\thelper = "!'${helper}'"\n`,
      )
      setOrigin(serverUrl())
      expect(await faultOf(ask())).toMatchObject({ code: 'git/failed' })
      const basic = Buffer.from('me:from-helper').toString('base64')
      expect(requests.map(({ authorization }) => authorization)).toContain(`Basic ${basic}`)
    })

    test('gets the password of the URL, which no command line and no message shows', async () => {
      setOrigin(serverUrl('me:pass-in-url@'))
      const found = await faultOf(ask())
      expect(requests[0]?.authorization).toBe(
        `Basic ${Buffer.from('me:pass-in-url').toString('base64')}`,
      )
      expect(requests[0]?.commandLines).toContain('ls-remote')
      for (const { commandLines } of requests) expect(commandLines).not.toContain('pass-in-url')
      expect(found?.code).toBe('git/failed')
      expect(JSON.stringify(found) + found?.message).not.toContain('pass-in-url')
    })

    test('gets the header the clone is configured with, once, and no message shows it', async () => {
      scene.run(
        scene.clone,
        'config',
        `http.${serverUrl()}.extraHeader`,
        'Authorization: Basic c2VjcmV0OnZhbHVl',
      )
      setOrigin(serverUrl())
      const found = await faultOf(ask())
      expect(requests[0]?.authorization).toBe('Basic c2VjcmV0OnZhbHVl')
      for (const { commandLines } of requests)
        expect(commandLines).not.toContain('c2VjcmV0OnZhbHVl')
      expect(found?.message).not.toContain('c2VjcmV0OnZhbHVl')
    })
  })

  describe('ssh', () => {
    beforeEach(() => setOrigin(`ssh://git@hub.example${scene.origin}`))

    test('is told not to ask, runs without our tokens, and keeps the agent', async () => {
      const ssh = makeSsh('ssh', SERVE)
      const git = scene.open(
        {},
        {
          GIT_SSH: ssh,
          GITHUB_TOKEN: 'token-one',
          GH_TOKEN: 'token-two',
          CADUCEUS_GITHUB_TOKEN: 'token-three',
          SSH_AUTH_SOCK: '/agent',
        },
      )
      expect(await ask(git)).toBe(null)
      expect(sshNote()).toContain('-oBatchMode=yes')
      expect(sshNote()).toContain('SSH_AUTH_SOCK=/agent')
      expect(sshNote()).not.toContain('token-')
    })

    test('is the command the clone configures, also by its place', async () => {
      const ssh = makeSsh('my ssh', SERVE)
      writeAt(join(scene.root, 'home/work.config'), `[core]\n\tsshCommand = "'${ssh}' -i key"\n`)
      writeAt(
        join(scene.root, 'home/.gitconfig'),
        `[includeIf "gitdir:${scene.root}/work/"]\n\tpath = work.config\n`,
      )
      expect(await ask()).toBe(null)
      expect(sshNote()).toContain('ARGS: -i key -oBatchMode=yes')
      expect(scene.run(store(), 'config', '--list')).not.toContain('ssh')
    })

    test('that prints a secret of the configuration is quoted without it', async () => {
      const ssh = makeSsh('ssh', 'echo "no entry: opaque-value-123" >&2; exit 1')
      scene.run(scene.clone, 'config', 'http.extraHeader', 'X-Key: opaque-value-123')
      const found = await faultOf(ask(scene.open({}, { GIT_SSH: ssh })))
      expect(found?.message).toContain('no entry: <redacted>')
    })

    test('that hangs is ended with all it started at the deadline', async () => {
      const pidFile = join(scene.root, 'pid')
      makeSsh(
        'ssh',
        `case "$*" in *" -G "*) exit 0;; esac\nsleep 600 & echo $! > '${pidFile}'; wait`,
      )
      const git = scene.open({ timeoutMs: 1_500 }, { GIT_SSH: join(scene.root, 'bin/ssh') })
      const started = performance.now()
      expect(await faultOf(ask(git))).toMatchObject({
        code: 'git/failed',
        details: { timedOut: true, operation: 'ls-remote' },
      })
      expect(performance.now() - started).toBeLessThan(10_000)
      const commandLine = `/proc/${readFileSync(pidFile, 'utf8').trim()}/cmdline`
      await waitUntil('what it started is gone', () => contentOf(commandLine) === '')
    })
  })

  const NO_SSH = { environmentCommand: null, configuredCommand: null, program: null, variant: null }

  describe('the ssh command', () => {
    test.each([
      [{}, 'ssh -oBatchMode=yes'],
      [{ environmentCommand: 'ssh -i key' }, 'ssh -i key -oBatchMode=yes'],
      [
        { configuredCommand: '"/opt/my ssh/ssh" -i key' },
        '"/opt/my ssh/ssh" -i key -oBatchMode=yes',
      ],
      [
        { environmentCommand: 'one', configuredCommand: 'two', program: 'three' },
        'one -oBatchMode=yes',
      ],
      [{ configuredCommand: 'two', program: 'three' }, 'two -oBatchMode=yes'],
      [{ program: "/opt/it's/ssh" }, "'/opt/it'\\''s/ssh' -oBatchMode=yes"],
      [{ program: '/usr/bin/plink' }, '/usr/bin/plink -batch'],
      [{ configuredCommand: 'PLINK.EXE -v' }, 'PLINK.EXE -v -batch'],
      [{ program: 'wrapper', variant: 'simple' }, 'wrapper'],
      [{ program: 'wrapper', variant: 'auto' }, 'wrapper -oBatchMode=yes'],
    ])('of %j is %s', (settings, expected) => {
      expect(sshCommand({ ...NO_SSH, ...settings })).toBe(expected)
    })
  })

  describe('a rewritten URL', () => {
    test('is followed for fetching and pushing', async () => {
      writeAt(
        join(scene.root, 'home/.gitconfig'),
        `[user]\n\tname = Op\n\temail = op@example.org\n[url "${scene.root}/hub/"]\n\tinsteadOf = hub:\n`,
      )
      setOrigin('hub:acme/widgets.git')
      const oid = scene.push({ 'b.txt': 'b' })
      const base = await scene.git.fetchBase(WIDGETS, await scene.git.inspectClone(WIDGETS), null)
      expect(base.oid).toBe(oid)
      await scene.git.pushNewBranch(base.storePath, oid, RUN_BRANCH, null)
      expect(await ask()).toBe(oid)
    })
  })
})

describe('planted code', () => {
  const HOOKS = [
    'pre-commit',
    'prepare-commit-msg',
    'commit-msg',
    'post-commit',
    'post-checkout',
    'post-index-change',
    'pre-push',
    'reference-transaction',
    'post-merge',
    'pre-auto-gc',
    'fsmonitor-watchman',
  ]
  let canary: Canary

  beforeEach(() => {
    scene = makeGitScene({
      'README.md': 'hello\n',
      'lib/a.txt': 'a\n',
      'big.bin': 'x\n',
      '.gitignore': 'ignored/\n',
    })
    canary = makeCanary()
  })
  afterEach(() => {
    scene.remove()
    canary.remove()
  })

  /** Every way to make git run a program, in one configuration file. */
  function poison(folder: string): string {
    for (const name of HOOKS) {
      writeAt(join(folder, name), '', 0o755)
      rmSync(join(folder, name))
      symlinkSync(canary.program, join(folder, name))
    }
    const run = canary.program
    return `
[core]
	fsmonitor = "${run}"
	hooksPath = "${folder}"
	pager = "${run}"
	sshCommand = "${run}"
	editor = "${run}"
	gitProxy = "${run}"
	alternateRefsCommand = "${run}"
	untrackedCache = true
	attributesFile = "${folder}/attributes"
[filter "evil"]
	clean = "${run}"
	smudge = "${run}"
	process = "${run}"
	required = true
[filter "lfs"]
	clean = "${run}"
	smudge = "${run}"
	process = "${run}"
	required = true
[diff]
	external = "${run}"
[diff "evil"]
	command = "${run}"
	textconv = "${run}"
[merge "evil"]
	driver = "${run}"
[credential]
	helper = "!'${run}'"
[commit]
	gpgSign = true
[gpg]
	program = "${run}"
[uploadpack]
	packObjectsHook = "${run}"
[push]
	gpgSign = if-asked
	followTags = true
[submodule]
	recurse = true
`
  }

  const ATTRIBUTES = '* filter=evil diff=evil merge=evil\n*.bin filter=lfs\n'

  async function publish(tree: RunTree & Readonly<{ base: FetchedBase }>): Promise<string> {
    const { git } = scene
    const captured = await git.captureTree(tree, CONTROL_FILES)
    await git.describeDifference(tree.storePath, tree.baseOid, captured.treeOid, 10_000)
    const oid = await git.commitTree(tree.storePath, {
      treeOid: captured.treeOid,
      parentOid: tree.baseOid,
      message: 'Change it\n',
      author: { name: 'A', email: 'a@example.org' },
      dateSeconds: 1_700_000_000,
      keepAs: 'refs/runs/one',
    })
    await git.pushNewBranch(tree.storePath, oid, RUN_BRANCH, tree.base.remote)
    expect(await git.remoteBranch(tree.storePath, RUN_BRANCH, tree.base.remote)).toBe(oid)
    return oid
  }

  describe('code planted by a worker', () => {
    test('in its own repository, attributes and hooks never runs (C28, C29)', async () => {
      const tree = await scene.checkOut()
      writeAt(join(tree.path, '.gitattributes'), ATTRIBUTES)
      writeAt(join(tree.path, '.git/info/attributes'), ATTRIBUTES)
      writeAt(join(tree.path, '.git/config'), poison(join(tree.path, '.git/hooks')))
      writeAt(join(tree.path, 'README.md'), 'changed\n')
      writeAt(join(tree.path, 'new.bin'), '')
      const oid = await publish(tree)
      expect(canary.hasSung()).toBe(false)
      expect(scene.run(scene.origin, 'cat-file', '-p', `${oid}:README.md`)).toBe('changed')
      // The canary can sing.
      expect(() => scene.run(tree.path, 'add', '-A')).toThrow('add -A')
      expect(canary.hasSung()).toBe(true)
    })

    test('in the configuration of a submodule or a nested repository never runs (P§5)', async () => {
      const sub = scene.addSubmodule('mod')
      const tree = await scene.checkOut()
      for (const name of ['mod', 'lib', 'ignored/nested']) {
        if (name !== 'lib') scene.run(tree.path, 'clone', '-q', sub, name)
        else scene.run(tree.path, 'init', '-q', name)
        const nested = join(tree.path, name)
        writeAt(join(nested, '.gitattributes'), ATTRIBUTES)
        writeAt(
          join(nested, '.git/config'),
          `[core]\n\tbare = false\n\tworktree = "${nested}"${poison(join(nested, '.git/hooks'))}`,
        )
        writeAt(join(nested, 's.txt'), 'changed')
      }
      const oid = await publish(tree)
      expect(canary.hasSung()).toBe(false)
      expect(
        scene.run(scene.origin, 'diff-tree', '-r', '--name-only', tree.baseOid, oid).split('\n'),
      ).toEqual(['lib/.gitattributes', 'lib/s.txt'])
      scene.run(tree.path, '-C', 'mod', 'status')
      expect(canary.hasSung()).toBe(true)
    })

    test('behind a .git that is a file is not even looked at', async () => {
      const tree = await scene.checkOut()
      const evil = join(scene.root, 'evil')
      scene.run(scene.root, 'init', '-q', evil)
      writeAt(join(evil, '.git/config'), poison(join(evil, '.git/hooks')))
      rmSync(join(tree.path, '.git'), { recursive: true })
      writeAt(join(tree.path, '.git'), `gitdir: ${evil}/.git\n`)
      writeAt(join(tree.path, 'README.md'), 'changed\n')
      await publish(tree)
      expect(canary.hasSung()).toBe(false)
    })
  })

  describe('what a worker did to its repository', () => {
    test('does not count: its commits are squashed, its index, refs and objects are not believed', async () => {
      const tree = await scene.checkOut()
      writeAt(join(tree.path, 'one.txt'), 'one')
      scene.run(tree.path, 'add', '-A')
      scene.run(tree.path, 'commit', '-q', '-m', 'one')
      writeAt(join(tree.path, 'two.txt'), 'two')
      scene.run(tree.path, 'add', '-A')
      scene.run(tree.path, 'commit', '-q', '-m', 'two')
      scene.run(tree.path, 'rm', '-q', '--cached', 'README.md')
      scene.run(tree.path, 'update-index', '--assume-unchanged', 'lib/a.txt')
      writeAt(join(tree.path, 'lib/a.txt'), 'changed\n')
      scene.run(tree.path, 'checkout', '-q', '--orphan', 'elsewhere')
      writeAt(join(tree.path, '.git/objects/info/alternates'), '/nonexistent\n')
      writeAt(join(tree.path, '.git/HEAD'), 'garbage')
      rmSync(join(tree.path, '.git/refs'), { recursive: true })
      const oid = await publish(tree)
      const show = (...args: string[]): string => scene.run(scene.origin, ...args)
      expect(show('rev-list', '--count', `${tree.baseOid}..${oid}`)).toBe('1')
      expect(show('diff-tree', '-r', '--name-status', tree.baseOid, oid).split('\n')).toEqual([
        'M\tlib/a.txt',
        'A\tone.txt',
        'A\ttwo.txt',
      ])
    })

    test('is gone for the next run', async () => {
      const tree = await scene.checkOut()
      writeAt(join(tree.path, '.git/config'), poison(join(tree.path, '.git/hooks')))
      const next = await scene.checkOut('next')
      expect(scene.run(next.path, 'config', '--local', '--list')).not.toContain('canary')
      expect(canary.hasSung()).toBe(false)
    })
  })

  describe('the operator’s own configuration', () => {
    test('runs nothing on a worker’s tree, signs nothing and is not hung up by a passphrase (C27)', async () => {
      scene.push({ '.gitattributes': '*.md filter=evil\n' }, 'with-filter')
      writeAt(join(scene.root, 'home/.gitconfig'), poison(join(scene.root, 'home/hooks')))
      writeAt(join(scene.root, 'home/hooks/attributes'), ATTRIBUTES)
      const tree = await scene.checkOut('run', 'with-filter')
      writeAt(join(tree.path, 'README.md'), 'changed\n')
      const oid = await publish(tree)
      expect(scene.run(scene.origin, 'cat-file', '-p', oid)).not.toContain('gpgsig')
      expect(canary.hasSung()).toBe(false)
    })

    test('in the environment neither leads git elsewhere nor reaches it with a token', async () => {
      const elsewhere = join(scene.root, 'elsewhere')
      scene.run(scene.root, 'init', '-q', elsewhere)
      const git = scene.open(
        {},
        {
          GIT_DIR: join(elsewhere, '.git'),
          GIT_WORK_TREE: elsewhere,
          GIT_INDEX_FILE: join(elsewhere, 'index'),
          GIT_OBJECT_DIRECTORY: join(elsewhere, 'objects'),
          GIT_ALTERNATE_OBJECT_DIRECTORIES: elsewhere,
          GIT_NAMESPACE: 'x',
          GIT_CONFIG_PARAMETERS: "'core.bare=true'",
          GIT_CONFIG_COUNT: '1',
          GIT_CONFIG_KEY_0: 'remote.origin.url',
          GIT_CONFIG_VALUE_0: elsewhere,
          GIT_EXTERNAL_DIFF: canary.program,
          GIT_TRACE: join(scene.root, 'trace'),
        },
      )
      const base = await git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), 'develop')
      const tree = await git.createTree(base, {
        runId: 'x',
        path: join(scene.root, 'state/tree'),
        indexPath: join(scene.root, 'state/index'),
        branch: RUN_BRANCH,
      })
      writeAt(join(tree.path, 'README.md'), 'changed\n')
      const captured = await git.captureTree(tree, CONTROL_FILES)
      expect(captured.changes).toMatchObject([{ path: 'README.md' }])
      expect(
        await git.describeDifference(tree.storePath, tree.baseOid, captured.treeOid, 10_000),
      ).toContain('+changed')
      expect(canary.hasSung()).toBe(false)
    })
  })
})
