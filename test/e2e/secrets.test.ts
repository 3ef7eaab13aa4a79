import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { sampleProcesses } from '../support/process-sample.ts'
import {
  BOT,
  bridge,
  openProgramRig,
  PROGRAM,
  type ProgramRig,
  textsUnder,
} from '../support/program-rig.ts'
import { openGate } from '../support/program-views.ts'
import { waitUntil } from '../support/wait-until.ts'

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
