import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import type { CapturedRemote } from '../../daemon/core/journal.ts'
import type { FetchedBase, Git } from '../../daemon/core/ports.ts'
import { reopenJournal } from '../../daemon/core/resume.ts'
import { captureRemote, lacksSecrets, withSecrets } from '../../daemon/git/captured-remote.ts'
import { rewriteUrl } from '../../daemon/git/origin.ts'
import type { Setting } from '../../daemon/git/profile.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import { JOURNAL } from '../publish/publish-world.ts'
import {
  type Canary,
  faultOf,
  type GitScene,
  makeCanary,
  makeGitScene,
  RUN_BRANCH,
  WIDGETS,
  writeAt,
} from '../support/git-scene.ts'

// A worker may write every file the operator's settings come from. What counts after it are the settings
// from before it; only a secret may be another one by then.

let scene: GitScene
let git: Git
let base: FetchedBase
let canary: Canary
/** Where a worker would like the push to go. */
let elsewhere: string

function useScene(): void {
  beforeEach(async () => {
    scene = makeGitScene()
    canary = makeCanary()
    const note = join(dirname(canary.program), 'note')
    writeAt(canary.program, `#!/bin/sh\necho "$0 $*" >> ${note}\nexit 1\n`, 0o755)
    elsewhere = join(scene.root, 'elsewhere/acme/widgets.git')
    scene.run(scene.root, 'clone', '-q', '--bare', scene.origin, elsewhere)
    git = scene.open({}, { GIT_CONFIG_NOSYSTEM: '1', PATH: pathWith(dirname(canary.program)) })
    base = await capture()
  })
  afterEach(() => {
    scene.remove()
    canary.remove()
  })
}

const pathWith = (folder: string): string => `${folder}:${scene.environment['PATH']}`
const cloneConfig = (): string => join(scene.clone, '.git/config')
const homeConfig = (): string => join(scene.root, 'home/.gitconfig')
/** Whatever the configuration of the home is by now. */
const hasBranch = (repository: string): boolean => {
  const env = { ...scene.environment, GIT_CONFIG_GLOBAL: '/dev/null' }
  const args = ['for-each-ref', `refs/heads/${RUN_BRANCH}`]
  return execFileSync('git', args, { cwd: repository, env }).length > 0
}

async function capture(): Promise<FetchedBase> {
  return git.fetchBase(WIDGETS, await git.inspectClone(WIDGETS), 'develop')
}

/** As if the run had been prepared with this origin, which need not answer. */
function captureAs(settings: readonly Setting[]): CapturedRemote {
  return captureRemote(scene.clone, settings)
}

const push = async (remote: CapturedRemote | null, by = git): Promise<void> =>
  by.pushNewBranch(base.storePath, base.oid, RUN_BRANCH, remote)
const ask = async (remote: CapturedRemote | null): Promise<string | null> =>
  git.remoteBranch(base.storePath, RUN_BRANCH, remote)

describe('a worker that changes where a push goes or what it runs', () => {
  useScene()

  /** Each obeyed by a git that reads the settings then; `origin` is what the run began with. */
  const DEEDS = [
    ['another URL', () => `[remote "origin"]\n\turl = ${elsewhere}\n`, 'replaces'],
    ['a URL for pushing', () => `[remote "origin"]\n\tpushurl = ${elsewhere}\n`],
    ['insteadOf', () => `[url "${elsewhere}"]\n\tinsteadOf = ${scene.origin}\n`],
    ['pushInsteadOf', () => `[url "${elsewhere}"]\n\tpushInsteadOf = ${scene.origin}\n`],
    [
      'an include',
      () =>
        `[include]\n\tpath = ${planted(`[url "${elsewhere}"]\n\tinsteadOf = ${scene.origin}\n`)}\n`,
    ],
    [
      'an include by place',
      () =>
        `[includeIf "gitdir:${scene.root}/work/"]\n\tpath = ${planted(`[remote "origin"]\n\treceivepack = ${canary.program}\n`)}\n`,
    ],
    ['receivepack', () => `[remote "origin"]\n\treceivepack = ${canary.program}\n`],
    ['uploadpack', () => `[remote "origin"]\n\tuploadpack = ${canary.program}\n`],
    ['a transport of its own', () => '[remote "origin"]\n\tvcs = canary\n'],
    [
      'a transport that is a command',
      () =>
        `[protocol "ext"]\n\tallow = always\n[url "ext::${canary.program} /acme/widgets.git "]\n\tinsteadOf = ${scene.origin}\n`,
    ],
    ['a forbidden transport', () => '[protocol]\n\tallow = never\n'],
    ['a broken file', () => '[broken\n'],
  ] as const satisfies readonly (readonly [string, () => string, 'replaces'?])[]

  function planted(text: string): string {
    const path = join(scene.root, 'planted.config')
    writeAt(path, text)
    return path
  }

  const rows = DEEDS.flatMap(([deed, text, how]) =>
    (['clone', 'home'] as const).map((place) => ({ deed, place, text, replaces: how ?? null })),
  ).filter(({ place, replaces }) => place === 'clone' || replaces === null)

  test.each(rows)(
    '$deed, in the configuration of the $place: it goes where it went before, and nothing is run',
    async ({ place, text, replaces }) => {
      // Its program is found by name, as a remote helper is.
      writeAt(
        join(dirname(canary.program), 'git-remote-canary'),
        readFileSync(canary.program),
        0o755,
      )
      const path = place === 'clone' ? cloneConfig() : homeConfig()
      if (replaces !== null) writeFileSync(path, '[core]\n\trepositoryformatversion = 0\n')
      appendFileSync(path, text())

      expect(await ask(base.remote)).toBe(null)
      await push(base.remote)
      expect(await ask(base.remote)).toBe(base.oid)
      expect(canary.hasSung()).toBe(false)
      expect([scene.origin, elsewhere].map(hasBranch)).toEqual([true, false])

      // Without what was captured it would have worked.
      rmSync(join(scene.origin, 'refs/heads', RUN_BRANCH))
      const obeyed = (await faultOf(ask(null))) ?? (await faultOf(push(null)))
      expect([canary.hasSung(), hasBranch(elsewhere), obeyed !== null]).toContain(true)
      expect(hasBranch(scene.origin)).toBe(false)
    },
  )

  test('that removes the clone changes nothing either', async () => {
    rmSync(scene.clone, { recursive: true })
    await push(base.remote)
    expect(hasBranch(scene.origin)).toBe(true)
  })

  test.each([
    [
      'sshCommand',
      'ssh://git@hub.invalid/acme/widgets.git',
      (run: string) => `sshCommand = ${run}`,
    ],
    ['gitProxy', 'git://127.0.0.1:9/acme/widgets.git', (run: string) => `gitProxy = ${run}`],
  ])('core.%s is the one from before it', async (_, url, line) => {
    const ours = join(scene.root, 'bin/ssh')
    writeAt(ours, `#!/bin/sh\necho ours >> '${scene.root}/ssh-note'\nexit 1\n`, 0o755)
    scene.run(scene.clone, 'remote', 'set-url', 'origin', url)
    const remote = captureAs([
      ['core.sshcommand', `'${ours}'`],
      ['remote.origin.url', url],
    ])
    appendFileSync(cloneConfig(), `[core]\n\t${line(canary.program)}\n`)
    expect(await faultOf(push(remote))).toMatchObject({ effect: 'none' })
    expect(canary.hasSung()).toBe(false)
    if (url.startsWith('ssh')) {
      expect(readFileSync(join(scene.root, 'ssh-note'), 'utf8')).toMatch(/^(?:ours\n)+$/)
    }
    await faultOf(push(null))
    expect(canary.hasSung()).toBe(true)
  })

  test('settings in the daemon’s own environment reach no git', async () => {
    const run = canary.program
    const by = scene.open(
      {},
      {
        GIT_CONFIG_COUNT: '2',
        GIT_CONFIG_KEY_0: 'remote.origin.receivepack',
        GIT_CONFIG_VALUE_0: run,
        GIT_CONFIG_KEY_1: 'core.fsmonitor',
        GIT_CONFIG_VALUE_1: run,
        GIT_CONFIG_PARAMETERS: `'remote.origin.uploadpack'='${run}'`,
      },
    )
    const fetched = await by.fetchBase(WIDGETS, await by.inspectClone(WIDGETS), null)
    await push(fetched.remote, by)
    expect(canary.hasSung()).toBe(false)
    expect(hasBranch(scene.origin)).toBe(true)
  })

  test.each([
    ['a setting', 'config', (run: string) => `[remote "origin"]\n\treceivepack = ${run}\n`],
    ['an include', 'config', () => '[include]\n\tpath = planted\n'],
    ['another configuration', 'commondir', () => '../elsewhere\n'],
  ])('and plants %s in the daemon’s own store is noticed there', async (_, name, text) => {
    const path = join(base.storePath, name)
    const before = name === 'config' ? readFileSync(path) : null
    appendFileSync(path, text(canary.program))
    for (const call of [push(base.remote), push(null), ask(base.remote), capture()]) {
      expect(await faultOf(call)).toMatchObject({
        code: 'git/store-damaged',
        message: expect.stringContaining(path),
      })
    }
    expect(canary.hasSung()).toBe(false)
    if (before === null) rmSync(path)
    else writeFileSync(path, before)
    await push(base.remote)
    expect(hasBranch(scene.origin)).toBe(true)
  })

  test('and has its run taken over: the journal holds what is used then', async () => {
    const journals = openJournals(join(scene.root, 'state'))
    journals.write({ ...JOURNAL, remote: base.remote })
    appendFileSync(cloneConfig(), `[remote "origin"]\n\treceivepack = ${canary.program}\n`)
    appendFileSync(homeConfig(), `[url "${elsewhere}"]\n\tinsteadOf = ${scene.origin}\n`)
    const adopted = openJournals(join(scene.root, 'state')).read(JOURNAL.runId)
    await push(adopted?.remote ?? null, scene.open())
    expect(canary.hasSung()).toBe(false)
    expect([scene.origin, elsewhere].map(hasBranch)).toEqual([true, false])
  })

  test('counts no more once a human has reset the run: what is configured then does', () => {
    const outcome = { on: 'blocked', at: JOURNAL.createdAt } as const
    const halted = { ...JOURNAL, remote: base.remote, endedIn: 'publishing', outcome } as const
    expect(reopenJournal(halted)).toMatchObject({ remote: null, epoch: JOURNAL.epoch + 1 })
  })

  test('before anything was captured is told by the proof of the origin, without a call of git', async () => {
    const other = captureAs([['remote.origin.url', '/srv/acme/other.git']])
    expect(await faultOf(push(other))).toMatchObject({
      code: 'clone/wrong-origin',
      effect: 'none',
      details: { found: '/srv/acme/other.git' },
    })
    expect(await faultOf(ask(captureAs([])))).toMatchObject({ code: 'clone/no-origin' })
  })
})

describe('a secret', () => {
  useScene()

  type Seen = Readonly<{ url: string; authorization: string; proxy: string }>
  let server: Server
  let seen: Seen[]

  beforeAll(async () => {
    const header = (request: IncomingMessage, name: string): string =>
      String(request.headers[name] ?? '')
    server = createServer((request, response) => {
      seen.push({
        url: request.url ?? '',
        authorization: header(request, 'authorization'),
        proxy: header(request, 'proxy-authorization'),
      })
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve))
  })
  beforeEach(() => {
    seen = []
  })

  /** `127.0.0.1:<port>` */
  const authority = (): string => `127.0.0.1:${(server.address() as AddressInfo).port}`
  const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`
  const TOKEN = ['gh', 'p_'].join('')
  const token = (letter: string): string => TOKEN + letter.repeat(36)

  /** Puts the settings into the clone, in place of all it had of its remote. */
  function configure(text: string): void {
    writeFileSync(cloneConfig(), `[core]\n\trepositoryformatversion = 0\n${text}`)
  }

  /** What is captured of the clone as it is now, as it lies on the disk. */
  async function captureNow(): Promise<CapturedRemote> {
    const settings = scene
      .run(scene.clone, 'config', '--null', '--list', '--local')
      .split('\0')
      .filter((record) => /^(?:remote|http|url|credential|core\.sshcommand)/.test(record))
      .map((record): Setting => {
        const [key = '', ...value] = record.split('\n')
        return [key, value.join('\n')]
      })
    return JSON.parse(JSON.stringify(captureAs(settings))) as CapturedRemote
  }

  const url = (user: string): string =>
    `[remote "origin"]\n\turl = http://${user}${authority()}/acme/widgets.git\n`

  /** Each with the configuration that holds the secret, and how the server is shown it. */
  const PLACES = [
    [
      'a password in the URL',
      (secret: string) => url(`me:${secret}@`),
      (secret: string) => basic(`me:${secret}`),
    ],
    [
      'a token in the URL',
      (_: string, letter: string) => url(`${token(letter)}@`),
      (_: string, letter: string) => basic(`${token(letter)}:`),
    ],
    [
      'a password in a rewriting of URLs',
      (secret: string) =>
        `[url "http://me:${secret}@${authority()}/"]\n\tinsteadOf = hub:\n[remote "origin"]\n\turl = hub:acme/widgets.git\n`,
      (secret: string) => basic(`me:${secret}`),
    ],
    [
      'a header',
      (secret: string) =>
        `[http "http://${authority()}/"]\n\textraHeader = Authorization: Basic ${secret}\n${url('')}`,
      (secret: string) => `Basic ${secret}`,
    ],
    [
      'a password that a helper prints',
      (secret: string) =>
        `[credential]\n\thelper = "!f() { test $1 = get && echo username=me && echo password=${secret}; }; f"\n${url('')}`,
      (secret: string) => basic(`me:${secret}`),
    ],
    [
      'the password of a proxy',
      (secret: string) =>
        `[http]\n\tproxyAuthMethod = basic\n\tproxy = http://me:${secret}@${authority()}\n[remote "origin"]\n\turl = http://hub.invalid/acme/widgets.git\n`,
      (secret: string) => basic(`me:${secret}`),
    ],
  ] as const

  describe.each(PLACES)('that is %s', (_, text, shown) => {
    const isShown = (secret: string, letter: string): boolean =>
      seen.some(({ authorization, proxy }) =>
        [authorization, proxy].includes(shown(secret, letter)),
      )

    test('is used, is not kept, and is not told', async () => {
      configure(text('first-secret', 'a'))
      const remote = await captureNow()
      expect(JSON.stringify(remote)).not.toMatch(/first-secret|a{36}/)
      expect(lacksSecrets(remote)).toBe(true)
      const found = await faultOf(ask(remote))
      expect(found?.code).toBe('git/failed')
      expect(isShown('first-secret', 'a')).toBe(true)
      expect(JSON.stringify(found) + found?.message).not.toMatch(/first-secret|a{36}/)
    })

    test('may be another one by then', async () => {
      configure(text('first-secret', 'a'))
      const remote = await captureNow()
      configure(text('second-secret', 'b'))
      expect(await faultOf(push(remote))).toMatchObject({ effect: 'none' })
      expect([isShown('first-secret', 'a'), isShown('second-secret', 'b')]).toEqual([false, true])
    })

    test('goes nowhere else, and without its surroundings not at all', async () => {
      configure(text('first-secret', 'a'))
      const remote = await captureNow()
      configure(
        text('first-secret', 'a')
          .replaceAll('/acme/', '/else/acme/')
          .replaceAll(authority(), 'evil.invalid')
          .replaceAll('username=me', `username=$(${canary.program})`),
      )
      expect(await faultOf(push(remote))).toMatchObject({
        code: 'git/failed',
        effect: 'none',
      })
      expect(isShown('first-secret', 'a')).toBe(false)
      expect(canary.hasSung()).toBe(false)
      expect(seen.map((request) => request.url).join()).toContain('/acme/widgets.git/info/refs')
      expect(seen.map((request) => request.url).join()).not.toContain('/else/')
    })
  })

  test('of an ssh key or a stored login is not ours to keep: the helper and the command are', async () => {
    const helper = join(scene.root, 'helper')
    writeAt(
      helper,
      '#!/bin/sh\n[ "$1" = get ] && printf "username=me\\npassword=stored\\n"\n',
      0o755,
    )
    configure(`[credential]\n\thelper = "!'${helper}'"\n${url('')}`)
    const remote = await captureNow()
    configure(`[credential]\n\thelper = "!'${canary.program}'"\n${url('')}`)
    await faultOf(push(remote))
    expect(seen.map(({ authorization }) => authorization)).toContain(basic('me:stored'))
    expect(canary.hasSung()).toBe(false)
    await faultOf(push(null))
    expect(canary.hasSung()).toBe(true)
  })

  test('a proxy that a worker adds is not used', async () => {
    configure(url('').replace(authority(), 'hub.invalid'))
    const remote = await captureNow()
    appendFileSync(cloneConfig(), `[http]\n\tproxy = http://${authority()}\n`)
    await faultOf(push(remote))
    expect(seen).toEqual([])
    await faultOf(push(null))
    expect(seen).not.toEqual([])
  })
})

describe('what may stand in place of a secret', () => {
  const taken = (before: Setting, now: Setting): Setting | undefined =>
    withSecrets(captureRemote('/clone', [before]), [now]).settings[0]

  const URL_KEY = 'remote.origin.url'
  const HELPER_KEY = 'credential.helper'
  const HEADER_KEY = 'http.https://github.com/.extraheader'
  const header = (value: string): string => `Authorization: Basic ${value}`

  test.each([
    [URL_KEY, 'https://me:a@github.com/o/r', 'https://me:b%40!*$c@github.com/o/r'],
    [URL_KEY, 'https://me:a@github.com/o/r', 'https://other:b@github.com/o/r'],
    ['http.proxy', 'me:a@proxy:3128', 'me:b@proxy:3128'],
    [HELPER_KEY, '!echo password=a', '!echo password=b/c+d='],
    [HELPER_KEY, '!curl https://me:a@h', '!curl https://me:b!c~@h'],
    [HEADER_KEY, header('a'), 'Authorization: Bearer b'],
  ])('%s: %s may become %s', (key, before, now) => {
    expect(taken([key, before], [key, now])).toEqual([key, now])
  })

  test.each([
    [
      URL_KEY,
      'https://me:a@github.com/o/r',
      'https://me:a@evil.example/o/r',
      'https://github.com/o/r',
    ],
    [
      URL_KEY,
      'https://me:a@github.com/o/r',
      'https://me:a@evil.example@github.com/o/r',
      'https://github.com/o/r',
    ],
    [
      URL_KEY,
      'https://me:a@github.com/o/r',
      'https://evil.example\\:a@github.com/o/r',
      'https://github.com/o/r',
    ],
    [
      URL_KEY,
      'https://me:a@github.com/o/r',
      'https://other@github.com/o/r',
      'https://github.com/o/r',
    ],
    [
      URL_KEY,
      'https://me:a@github.com/o/r',
      'http://me:a@github.com/o/r',
      'https://github.com/o/r',
    ],
    [URL_KEY, 'https://github.com/o/r', 'https://me:a@github.com/o/r', 'https://github.com/o/r'],
    [
      URL_KEY,
      'https://me@github.com/o/r',
      'https://other@github.com/o/r',
      'https://me@github.com/o/r',
    ],
    [URL_KEY, 'ext::run x://me:a@h', 'ext::run x://$(evil):a@h', 'ext::run x://h'],
    ['http.proxy', 'me:a@proxy:3128', 'me:a@evil:3128', 'proxy:3128'],
    [HELPER_KEY, '!echo password=a', '!echo password=$(evil)', '!echo password='],
    [HELPER_KEY, '!echo password=a', '!echo password=a;evil', '!echo password='],
    [HELPER_KEY, '!curl x://me:a@h', '!curl x://me:`evil`@h', '!curl x://h'],
    [HELPER_KEY, 'store', '!evil', 'store'],
  ])('%s: %s does not become %s', (key, before, now, used) => {
    expect(taken([key, before], [key, now])).toEqual([key, used])
  })

  test.each(['Host: b', 'Authorization: b\nHost: c', ''])('a header does not become %j', (now) => {
    expect(taken([HEADER_KEY, header('a')], [HEADER_KEY, now])).toBe(undefined)
  })

  const word = fc.string({ unit: fc.constantFrom(...'abzAZ09%._~-'), minLength: 6, maxLength: 20 })
  const hostile = fc.string({
    unit: fc.constantFrom(...'ab:/@\\?#$`;|&<>()\'" \n=!'),
    maxLength: 30,
  })

  test('is any secret, and never more of the setting than that', () => {
    const kinds = [
      (secret: string): Setting => [URL_KEY, `https://me:${secret}@github.com/o/r`],
      (secret: string): Setting => [`url.https://me:${secret}@github.com/.insteadof`, 'gh:'],
      (secret: string): Setting => [HEADER_KEY, `X-Key: ${secret}`],
      (secret: string): Setting => ['credential.helper', `!echo password=${secret}`],
    ]
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        word,
        fc.oneof(word, hostile),
        (kind, first, second) => {
          const remote = captureRemote('/clone', [kind(`kept-${first}`)])
          expect(JSON.stringify(remote)).not.toContain(`kept-${first}`)
          expect(withSecrets(remote, [kind(`kept-${first}`)]).settings).toEqual([
            kind(`kept-${first}`),
          ])
          for (const setting of withSecrets(remote, [kind(second)]).settings) {
            const again = captureRemote('/clone', [setting])
            const whole = remote.settings.map(({ key, value }) => [key.join(''), value.join('')])
            expect([remote.settings, whole]).toContainEqual(
              lacksSecrets(again) ? again.settings : [setting],
            )
          }
        },
      ),
      { numRuns: 2000 },
    )
  })
})

describe('a URL', () => {
  useScene()

  test('is rewritten as git does it', () => {
    const { root } = scene
    const settings: readonly Setting[] = [
      ['url./a/.insteadof', 'hub:'],
      ['url./b/.insteadof', 'hub:acme/'],
      ['url./c/.insteadof', 'hub:acme/'],
      ['url./p/.pushinsteadof', 'hub:acme/w'],
    ]
    const repository = join(root, 'rewriting')
    mkdirSync(repository)
    scene.run(repository, 'init', '-q')
    for (const [key, value] of settings) scene.run(repository, 'config', '--add', key, value)
    scene.run(repository, 'remote', 'add', 'origin', 'x')
    for (const url of ['hub:acme/widgets', 'hub:acme/x', 'hub:other', '/srv/x']) {
      for (const pushUrl of [[], [['remote.origin.pushurl', url] as const]]) {
        scene.run(repository, 'remote', 'set-url', 'origin', url)
        if (pushUrl.length > 0) scene.run(repository, 'remote', 'set-url', '--push', 'origin', url)
        const asGit = (...args: readonly string[]): string =>
          scene.run(repository, 'remote', 'get-url', ...args, 'origin')
        const all = [...settings, ...pushUrl]
        expect([url, rewriteUrl(all, url, false)]).toEqual([url, asGit()])
        expect([url, rewriteUrl(all, url, true)]).toEqual([url, asGit('--push')])
      }
      scene.run(repository, 'config', '--unset-all', 'remote.origin.pushurl')
    }
  })
})
