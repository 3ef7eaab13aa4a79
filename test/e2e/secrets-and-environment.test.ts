import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { environmentOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { crashAt } from '../support/crash-runs.ts'
import { sampleProcesses, waitUntil } from '../support/processes.ts'
import {
  BOT,
  bridge,
  openProgramRig,
  PROGRAM,
  type ProgramRig,
  type Started,
  textsUnder,
} from '../support/program-rig.ts'
import {
  branchesOf,
  gatedBridge,
  openGate,
  QUIET,
  startedWorkers,
} from '../support/program-views.ts'

/** A shell changes what it hands on, so the bridge shows what it was given itself (proc(5)). */
const SHOWING_BRIDGE = `#!/bin/sh
cat /proc/$$/environ >"$HOME/environ"
cat /proc/$$/cmdline >"$HOME/cmdline"
readlink /proc/$$/cwd >"$HOME/cwd"
(readlink /proc/$$/fd/*) >"$HOME/descriptors"
cat >"$HOME/stdin"
echo mended >>app.txt
cat >worker-result.json <<END
{"status": "success", "summary": "s", "commit_message": "fix: m", "pull_request_title": "fix: t"}
END
`

/** Starts a program as a careless cron wrapper does: with a file left open. */
const LEAKING_STARTER = `
import json, os, sys
os.dup2(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), 200)
os.execve(sys.argv[3], sys.argv[3:], json.loads(sys.argv[2]))
`

const githubToken = (letter: string): string => ['gh', 'o_', letter.repeat(36)].join('')

describe('what is a worker given?', () => {
  let rig: ProgramRig
  let environment: Readonly<Record<string, string>>

  const shown = (name: string): string => readFileSync(join(rig.dir, 'home', name), 'utf8')

  /** Reach the worker because of their names. */
  const passed = {
    USER: 'operator',
    SHELL: '/bin/sh',
    LC_ALL: 'C',
    TERM: 'dumb',
    OPENAI_API_KEY: 'key one',
    ANTHROPIC_BASE_URL: 'https://example.com',
    OPENROUTER_KEY: '',
    OPENCODE_CONFIG: 'a=b\nc',
    MY_SETTING: 'm',
    AWS_REGION: 'r',
    AWS_SECRET_ACCESS_KEY: 'not a matter of GitHub',
  }

  /** Do not, although each but the first four is on the allow-list. */
  const kept = () => ({
    EDITOR: 'vi',
    SSH_AUTH_SOCK: '/nowhere',
    AWSOME: 'no prefix of it is listed',
    CADUCEUS_RESULT_PATH: '/nowhere',
    GITHUB_TOKEN: 'x',
    GH_TOKEN: 'x',
    GH_ENTERPRISE_TOKEN: 'x',
    MY_GITHUB_TOKEN: 'x',
    MY_GH_PAT: 'x',
    my_github_token: 'x',
    MY_ADDRESS: `https://me:${rig.token}@example.com/`,
    MY_HARMLESS: githubToken('h'),
    HARMLESS: rig.token,
    OPENAI_TOKEN: githubToken('o'),
    OPENCODE_JSON: JSON.stringify({ key: rig.token }),
  })

  beforeAll(async () => {
    rig = await openProgramRig({ bridge: SHOWING_BRIDGE })
    rig.setConfig({
      worker_command: [join(rig.dir, 'bridge'), '--flag', 'a b; `id`', ''],
      worker_env_allowlist: ['MY_*', 'my_*', 'AWS_*', 'HARMLESS', 'NOT_SET'],
    })
    Object.assign(rig.env, passed, kept(), { TMPDIR: join(rig.dir, 'home') })
    await rig.openIssue({ body: null })
    const program = [process.execPath, PROGRAM, 'run', '--now', '--wait']
    const leaked = join(rig.dir, 'home', 'leaked')
    const args = ['-c', LEAKING_STARTER, leaked, JSON.stringify(rig.env), ...program]
    const { stdout, stderr } = await promisify(execFile)('python3', args, { env: rig.env })
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' })
    const pairs = shown('environ').split('\0').slice(0, -1)
    environment = Object.fromEntries(
      pairs.map((pair): [string, string] => {
        const [name = '', ...rest] = pair.split('=')
        return [name, rest.join('=')]
      }),
    )
  })
  afterAll(async () => {
    await rig.close()
  })

  test('its environment is the eleven variables of the run, the usual ones and the allow-list', () => {
    const [journal] = rig.journals()
    const tree = journal?.treePath ?? ''
    expect(environment).toEqual({
      PATH: rig.env['PATH'],
      HOME: rig.env['HOME'],
      LANG: 'C.UTF-8',
      TMPDIR: join(rig.dir, 'home'),
      ...passed,
      CADUCEUS_ISSUE_NUMBER: '1',
      CADUCEUS_ISSUE_TITLE: 'The application is broken',
      CADUCEUS_ISSUE_BODY: '',
      CADUCEUS_ISSUE_REPO: 'octo/app',
      CADUCEUS_ISSUE_LABELS_JSON: '["🤖 auto-fix"]',
      CADUCEUS_WORKTREE_PATH: tree,
      CADUCEUS_RUN_ID: journal?.runId,
      CADUCEUS_BRANCH_NAME: journal?.branch,
      CADUCEUS_CONTEXT_JSON: expect.stringMatching(/^\{"schema_version":1,/),
      CADUCEUS_PROMPT_FILE: `${tree}/worker-prompt.md`,
      CADUCEUS_CONTEXT_FILE: `${tree}/worker-context.json`,
    })
    for (const name of Object.keys(kept())) expect(environment).not.toHaveProperty(name)
  })

  test('no token is in it under any name', () => {
    for (const secret of [rig.token, githubToken('h'), githubToken('o')])
      expect(shown('environ')).not.toContain(secret)
  })

  test('it is the configured command, unchanged, in its own tree, with nothing on stdin', () => {
    const command = ['/bin/sh', join(rig.dir, 'bridge'), '--flag', 'a b; `id`', '']
    expect(shown('cmdline').split('\0').slice(0, -1)).toEqual(command)
    expect(shown('cwd')).toBe(`${rig.journals()[0]?.treePath}\n`)
    expect(shown('stdin')).toBe('')
  })

  test('of all descriptors of ours, and of who started us, it has one lock', () => {
    const run = rig.layout.run(rig.journals()[0]?.runId ?? '')
    const descriptors = shown('descriptors').trim().split('\n')
    const [output = ''] = descriptors.filter((target) => target.startsWith('pipe:'))
    // The shell itself has opened the script.
    const expected = ['/dev/null', output, output, run.treeLock, join(rig.dir, 'bridge')]
    expect(descriptors.sort()).toEqual(expected.sort())
  })
})

/**
 * Prints all it has, then looks through arguments and environment of all processes for what it is told
 * the digests of.
 */
const SPYING_BRIDGE = bridge(`
import hashlib, re, time
home = os.environ['HOME']
number = os.environ['CADUCEUS_ISSUE_NUMBER']
print(json.dumps(dict(os.environ)), flush=True)
def wait(name):
    deadline = time.monotonic() + 60
    while not os.path.exists(home + '/' + name) and time.monotonic() < deadline:
        time.sleep(0.02)
wait('digests.json')
digests = json.load(open(home + '/digests.json'))
found = set()
for pid in os.listdir('/proc'):
    for kind in ('environ', 'cmdline'):
        try:
            text = open('/proc/' + pid + '/' + kind, 'rb').read()
        except OSError:
            continue
        for word in re.findall(rb'[A-Za-z0-9_-]{16,}', text):
            found.add(digests.get(hashlib.sha256(word).hexdigest()))
with open(home + '/found.part-' + number, 'w') as stream:
    json.dump([name for name in found if name], stream)
os.rename(home + '/found.part-' + number, home + '/found-' + number)
wait('gate')
open('app.txt', 'a').write('mended\\n')
result({})
`)

/** Refuses the branch of the second issue, and keeps what a program that git runs can see. */
const HOOK = `#!/bin/sh
env >>"$(dirname "$0")/seen-environment"
case "$1" in refs/heads/automation/issue-2-*) echo 'not on a Friday' >&2; exit 1 ;; esac
`

/** Worth finding, for the search itself must be able to find something. */
const DECOY = ['decoy', '0123456789abcdef'].join('-')

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

describe.each(['environment', 'configuration'] as const)(
  'who can see a token that was given in the %s?',
  (place) => {
    let rig: ProgramRig
    let token: string
    let sampling: ReturnType<typeof sampleProcesses>
    const said: string[] = []

    beforeEach(async () => {
      rig = await openProgramRig({
        bridge: SPYING_BRIDGE,
        config: { worker_parallelism: 2, max_runs_per_repo: 0 },
      })
      token = await giveToken()
      sampling = sampleProcesses(token)
      rig.env['OPENAI_DECOY'] = DECOY
      mkdirSync(join(rig.origin, 'hooks'))
      writeFileSync(join(rig.origin, 'hooks', 'update'), HOOK, { mode: 0o755 })
      await rig.openIssue()
      await rig.openIssue()
    })
    afterEach(async () => {
      await sampling.end()
      await rig.close()
    })

    /** One in the configuration need not look like one of GitHub's. */
    const giveToken = async (): Promise<string> => {
      if (place === 'environment') return rig.token
      const opaque = ['opaque', '0123456789abcdef', 'XYZ'].join('-')
      await rig.control('createToken', { login: BOT, token: opaque })
      delete rig.env['CADUCEUS_GITHUB_TOKEN']
      rig.setConfig({ github_token: opaque })
      chmodSync(join(rig.dir, 'config.yaml'), 0o600)
      return opaque
    }

    /** GitHub, or something on the way to it, says the token back. */
    const failOnce = async (route: string, times: number): Promise<void> => {
      const body = { message: `No way for ${token} here` }
      const action = { kind: 'answer', status: 500, body } as const
      await rig.control('addFault', { route, occurrence: { from: 1, to: times }, action })
    }

    const run = async (...args: readonly string[]): Promise<void> => {
      const { stdout, stderr } = await rig.run('run', '--now', ...args)
      said.push(stdout, stderr)
    }

    /** Files that hold the token, also as git and HTTP would encode it. */
    const filesWithToken = (): readonly string[] => {
      const encoded = ['', 'x-access-token:', `${BOT}:`].map((user) =>
        Buffer.from(user + token)
          .toString('base64')
          .slice(0, -4),
      )
      return [...textsUnder(rig.dir)]
        .filter(([, text]) => [token, ...encoded].some((form) => text.includes(form)))
        .map(([path]) => path)
    }

    test('no file of ours, no process but the one it was given to, and nobody who reads what we say', async () => {
      const allowed = place === 'configuration' ? [join(rig.dir, 'config.yaml')] : []
      await failOnce('GET /user', 2)
      await failOnce('POST /repos/{owner}/{repo}/pulls', 1)

      await run('--wait')
      for (const number of [1, 2])
        expect(rig.entry(number)?.lastError?.message).toMatch(
          /^GitHub answered 500 to GET \/user: /,
        )
      rig.clock.advance(600_000)
      await run()

      const home = join(rig.dir, 'home')
      const digests = { [digestOf(token)]: 'token', [digestOf(DECOY)]: 'decoy' }
      writeFileSync(join(home, 'digests.json'), JSON.stringify(digests))
      for (const number of [1, 2]) {
        const found = join(home, `found-${number}`)
        await waitUntil(`worker ${number} has looked`, () => existsSync(found))
        expect(JSON.parse(readFileSync(found, 'utf8'))).toEqual(['decoy'])
      }
      expect(filesWithToken()).toEqual(allowed)

      openGate(rig)
      await waitUntil('both runs have settled or wait', () =>
        rig.journals().every(({ key }) => !isLocked(rig.layout.claim(key))),
      )
      rig.clock.advance(600_000)
      await run('--wait')
      expect(rig.entry(1)?.phase).toBe('awaiting_review')
      expect(rig.entry(2)?.lastError).toMatchObject({
        code: 'git/push-rejected',
        message: expect.stringContaining('not on a Friday'),
      })

      expect(filesWithToken()).toEqual(allowed)
      expect(said.join('\n')).toContain('not on a Friday')
      expect(said.join('\n')).not.toContain(token)
      const seenByGit = readFileSync(join(rig.origin, 'hooks', 'seen-environment'), 'utf8')
      expect(seenByGit).toContain('PATH=')
      // Between fork and exec a process looks like the one that starts it, hence by command.
      const holders = new Set(
        (await sampling.end()).map(({ where, command }) => `${where} of ${command}`),
      )
      const tick = `environment of ${process.execPath} ${PROGRAM} run --now`
      expect([...holders].sort()).toEqual(place === 'configuration' ? [] : [tick, `${tick} --wait`])
    })
  },
)

describe('whose settings of git are used when a worker has changed them?', () => {
  let rig: ProgramRig
  const HEADER = ['opaque', 'header', '0123456789'].join('-')

  beforeEach(async () => {
    rig = await openProgramRig()
  })
  afterEach(async () => {
    await rig.close()
  })

  test.each([
    ['the runner that started the worker', null],
    ['a runner that took the run over', 'git.captureTree#1:after'],
  ])('%s pushes with those from before the worker', async (_, killedAt) => {
    const inDir = (...names: readonly string[]): string => join(rig.dir, ...names)
    const sung = inDir('home', 'sung')
    const canary = inDir('bin', 'canary')
    writeFileSync(canary, `#!/bin/sh\necho "$*" >>"${sung}"\nexit 1\n`, { mode: 0o755 })
    const elsewhere = inDir('elsewhere', `${rig.repo}.git`)
    await rig.git('clone', '--quiet', '--bare', rig.origin, elsewhere)
    await rig.git('-C', rig.clone, 'config', 'http.extraHeader', `X-Key: ${HEADER}`)
    const planted = `
[core]
	sshCommand = ${canary}
	gitProxy = ${canary}
[credential]
	helper = "!${canary}"
[remote "origin"]
	pushurl = ${elsewhere}
	receivepack = ${canary}
	uploadpack = ${canary}
[url "${elsewhere}"]
	insteadOf = ${rig.origin}
`
    const files = [join(rig.clone, '.git', 'config'), inDir('home', '.gitconfig')]
    rig.setBridge(
      bridge(`
for path in ${JSON.stringify(files)}:
    open(path, 'a').write(${JSON.stringify(planted)})
open('app.txt', 'a').write('mended\\n')
result({})
`),
    )
    await rig.openIssue()
    if (killedAt !== null) {
      await crashAt(rig, 'runner', killedAt)
      await waitUntil('the runner is gone', () =>
        rig.journals().every(({ key }) => !isLocked(rig.layout.claim(key))),
      )
      expect(rig.journals().map(({ stage }) => stage)).toEqual(['finished'])
    }
    expect(await rig.tick()).toEqual(QUIET)

    expect(rig.entry(1)?.phase).toBe('awaiting_review')
    expect(await branchesOf(rig)).toHaveLength(1)
    expect(existsSync(join(elsewhere, 'refs', 'heads', 'automation'))).toBe(false)
    expect(existsSync(sung)).toBe(false)
    expect(rig.journals()[0]?.remote?.settings).toContainEqual({
      key: ['remote.origin.url'],
      value: [rig.origin],
    })
    expect([...textsUnder(inDir('state')).values()].join('\n')).not.toContain(HEADER)

    // The next run begins with what is configured then, whoever wrote it.
    await rig.openIssue()
    await rig.tick()
    expect(existsSync(sung)).toBe(true)
  })
})

/**
 * Tables of proc_net(5), which column tells that a socket waits for others, and how; then the column of
 * the inode. An unconnected UDP socket takes what anybody sends.
 */
const TABLES = [
  { name: 'tcp', column: 3, waits: '0A', inode: 9 },
  { name: 'tcp6', column: 3, waits: '0A', inode: 9 },
  { name: 'udp', column: 3, waits: '07', inode: 9 },
  { name: 'udp6', column: 3, waits: '07', inode: 9 },
  { name: 'raw', column: 3, waits: '07', inode: 9 },
  { name: 'unix', column: 3, waits: '00010000', inode: 6 },
] as const

/** Sockets that wait for somebody to connect or to send, by inode. */
function waitingSockets(): ReadonlyMap<string, string> {
  return new Map(
    TABLES.flatMap(({ name, column, waits, inode }) =>
      readFileSync(`/proc/net/${name}`, 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[column] === waits)
        .map((fields): [string, string] => [`socket:[${fields[inode]}]`, name]),
    ),
  )
}

function listenersOf(pids: readonly number[]): readonly string[] {
  // Descriptors first: a socket that is opened meanwhile is found at the next look.
  const held = pids.flatMap((pid) => descriptorsOf(pid).map((target) => ({ pid, target })))
  const waiting = waitingSockets()
  return held.flatMap(({ pid, target }) => {
    const table = waiting.get(target)
    return table === undefined ? [] : [`${table} of ${commandOf(pid)}`]
  })
}

/** What the descriptors of a process name; both may be gone by now. */
function descriptorsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  return (orNull(() => readdirSync(folder)) ?? []).flatMap(
    (fd) => orNull(() => readlinkSync(`${folder}/${fd}`)) ?? [],
  )
}

function commandOf(pid: number): string {
  const text = orNull(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  return (text ?? '').replaceAll('\0', ' ').trim()
}

function roleOf(pid: number): string {
  return /dist\/(caduceus|runner|supervisor)\.[cm]js/.exec(commandOf(pid))?.[1] ?? 'other'
}

function orNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch {
    return null
  }
}

describe('does anything listen while a run is under way?', () => {
  let rig: ProgramRig
  let program: Started

  /** All that was started for this rig, by its variables; git and the worker included. */
  const ours = (): readonly number[] =>
    listProcesses()
      .map(({ pid }) => pid)
      .filter((pid) => pid !== process.pid && environmentOf(pid)?.['HOME'] === rig.env['HOME'])

  beforeAll(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
  })
  afterAll(async () => {
    await rig.close()
  })

  test('tick, runner, supervisor and worker have no socket that waits for others, from start to end', async () => {
    const found = new Set<string>()
    const seen = new Set<string>()
    const over = new AbortController()
    const looking = (async () => {
      for (; !over.signal.aborted; await pause(1)) {
        const pids = ours()
        for (const listener of listenersOf(pids)) found.add(listener)
        for (const pid of pids) seen.add(roleOf(pid))
      }
    })()
    program = rig.start('run', '--now', '--wait')
    await startedWorkers(rig, 1)
    expect(ours()).toContain(program.pid)
    expect(ours().map(roleOf)).toEqual(expect.arrayContaining(['caduceus', 'runner', 'supervisor']))
    openGate(rig)
    expect(await program.finished).toEqual(QUIET)
    over.abort()
    await looking

    expect([...found]).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(['caduceus', 'runner', 'supervisor', 'other']))
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('the embedded GitHub, which does listen, would have been found', () => {
    expect(listenersOf([process.pid])).toContainEqual(expect.stringMatching(/^tcp of /))
  })
})
