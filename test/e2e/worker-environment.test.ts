import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { openProgramRig, PROGRAM, type ProgramRig } from '../support/program-rig.ts'

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
