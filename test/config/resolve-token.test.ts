import { mkdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parseApiBase } from '../../daemon/config/api-base.ts'
import { type ResolvedToken, resolveToken } from '../../daemon/config/resolve-token.ts'
import { asFault, type Fault } from '../../daemon/core/fault.ts'
import { findProgram } from '../../daemon/sys/find-program.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { runProcess } from '../../daemon/sys/run-process.ts'
import { type ConfigRig, makeConfigRig } from '../support/config-rig.ts'
import { detailsOf } from '../support/faults.ts'
import { waitUntil } from '../support/processes.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
  mkdirSync(rig.path('bin'))
})
afterEach(() => rig.remove())

describe('which token is used', () => {
  type Given = Readonly<{
    githubToken?: string
    env?: Readonly<Record<string, string>>
    apiBase?: string
    timeoutMs?: number
  }>

  const resolve = ({ githubToken, env, apiBase, timeoutMs }: Given = {}): Promise<ResolvedToken> =>
    resolveToken(
      { findProgram, runProcess },
      {
        githubToken: githubToken ?? null,
        apiBase: parseApiBase(apiBase ?? 'https://api.github.com').value,
      },
      rig.env({ PATH: `${rig.path('bin')}:/usr/bin:/bin`, ...env }),
      timeoutMs,
    )

  const faultOf = async (given: Given = {}): Promise<Fault> =>
    resolve(given).then(
      () => asFault(null),
      (error: unknown) => asFault(error),
    )

  const gh = (script: string): string => rig.write('bin/gh', `#!/bin/sh\n${script}\n`, 0o755)

  test('the first of the chain that is not blank', async () => {
    gh('echo from-gh')
    const all = { CADUCEUS_GITHUB_TOKEN: ' second ', GITHUB_TOKEN: 'third' }
    expect(await resolve({ githubToken: ' first\n', env: all })).toEqual({
      token: 'first',
      source: 'github_token',
    })
    expect(await resolve({ githubToken: ' \t', env: all })).toEqual({
      token: 'second',
      source: 'CADUCEUS_GITHUB_TOKEN',
    })
    expect(await resolve({ env: { ...all, CADUCEUS_GITHUB_TOKEN: '' } })).toEqual({
      token: 'third',
      source: 'GITHUB_TOKEN',
    })
    expect(await resolve({ env: { CADUCEUS_GITHUB_TOKEN: ' ', GITHUB_TOKEN: '\n' } })).toEqual({
      token: 'from-gh',
      source: 'gh',
    })
  })

  test.each([['github_token'], ['CADUCEUS_GITHUB_TOKEN'], ['GITHUB_TOKEN'], ['gh']])(
    'a malformed one (%s) is refused, not passed over, and stands in no error',
    async (source) => {
      const bad = 'half\x07secret'
      gh(source === 'gh' ? String.raw`printf 'half\007secret'` : 'echo other')
      const found = await faultOf(
        source === 'github_token' ? { githubToken: bad } : { env: { [source]: bad } },
      )
      expect(found.code).toBe('token/malformed')
      expect(detailsOf(found)['source']).toBe(source)
      expect(found.message + found.next + JSON.stringify(found.details)).not.toContain('secret')
    },
  )

  test('gh gets little of the environment, nothing on stdin and the name of the server', async () => {
    gh('{ /usr/bin/env; echo "argv=$*"; cat; } > "$HOME/seen"; echo a-token')
    const env = {
      USER: 'u',
      XDG_CONFIG_HOME: '/x',
      GH_CONFIG_DIR: '/g',
      GH_TOKEN: 'not-yours',
      GH_HOST: 'elsewhere',
      SECRET_THING: 's',
    }
    await resolve({ env, apiBase: 'https://ghe.example.com/api/v3' })
    const seen = readFileSync(rig.path('seen'), 'utf8').trimEnd().split('\n')
    const names = seen
      .map((line) => line.split('=')[0])
      .filter((name) => !SHELL_NAMES.includes(name))
    expect(new Set(names)).toEqual(
      new Set(['GH_CONFIG_DIR', 'HOME', 'PATH', 'USER', 'XDG_CONFIG_HOME', 'argv']),
    )
    expect(seen).toContain('argv=auth token --hostname ghe.example.com')
  })

  test('a gh that fails tells its exit code and nothing it wrote', async () => {
    gh('echo leaked-secret >&2; echo leaked-secret; exit 4')
    const found = await faultOf()
    expect(found.code).toBe('token/not-found')
    expect(found.message).toContain('gh auth token ended with 4')
    expect(JSON.stringify([found, found.message, found.cause])).not.toContain('leaked-secret')
  })

  test.each(['exit 0', 'echo', 'printf "  \\n"'])(
    'a gh that prints nothing (%s) fails',
    async (script) => {
      gh(script)
      expect((await faultOf()).message).toContain('gh auth token printed nothing')
    },
  )

  test('a gh that hangs is ended at the deadline, with what it started', async () => {
    gh('echo $$ > "$HOME/pid"; sleep 600 & echo $! >> "$HOME/pid"; wait')
    const found = await faultOf({ timeoutMs: 300 })
    expect(found.message).toContain('gave no answer within 0.3 s')
    const pids = readFileSync(rig.path('pid'), 'utf8').trim().split('\n').map(Number)
    expect(pids).toHaveLength(2)
    for (const pid of pids) await waitUntil('its end', () => identifyProcess(pid) === null)
  })

  test('a gh that cannot be started is one that gave nothing', async () => {
    rig.write('bin/gh', '#!/no/such/interpreter\n', 0o755)
    expect((await faultOf()).message).toContain('gh could not be started')
  })

  test('when there is none, everything that was tried is told', async () => {
    const env = { PATH: rig.path('bin'), GITHUB_TOKEN: ' ' }
    expect(detailsOf(await faultOf({ env }))['tried']).toBe(
      'github_token is not set; CADUCEUS_GITHUB_TOKEN is not set; GITHUB_TOKEN is blank; gh is not installed',
    )
  })

  /** What shells add to their environment by themselves. */
  const SHELL_NAMES: readonly (string | undefined)[] = ['PWD', 'SHLVL', '_', 'OLDPWD']
})
