import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { readHostEnvironment, withHostValues } from '../../daemon/host/host-environment.ts'
import { readFileBounded } from '../../daemon/sys/files.ts'
import { realPath } from '../../daemon/sys/paths.ts'
import { openProgramRig, type ProgramRig, textsUnder } from '../support/program-rig.ts'

const FILES = { readFileBounded, realPath }

let home: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'host-'))
})
afterEach(() => {
  rmSync(home, { recursive: true, force: true })
})

const write = (text: string | Uint8Array): void => writeFileSync(join(home, '.env'), text)
const read = () => readHostEnvironment(FILES, { HERMES_HOME: home })

describe('the .env of the host', () => {
  test.each([
    ['plain', 'A=1\nB = two words \n', { A: '1', B: 'two words' }],
    ['quoted', `A="x # y"\nB='$HOME'\nC="a\\nb"\n`, { A: 'x # y', B: '$HOME', C: 'a\nb' }],
    ['with export, comments and CRLF', '# c\r\nexport A=1 # c\r\n\r\nB=2\r\n', { A: '1', B: '2' }],
    ['empty', '', {}],
    ['no assignments at all', 'hello\n\0\n{', {}],
  ])('is read when it is %s', (_, text, values) => {
    write(text)
    expect(read()).toMatchObject({ kind: 'read', values })
  })

  test('is nothing without a host, and absent when there is none', () => {
    expect(readHostEnvironment(FILES, {})).toBeNull()
    expect(readHostEnvironment(FILES, { HERMES_HOME: 'relative' })).toBeNull()
    expect(read()).toEqual({ path: join(home, '.env'), kind: 'absent' })
  })

  test('is no fault when it cannot be read', () => {
    mkdirSync(join(home, '.env'))
    expect(read()).toMatchObject({ kind: 'unreadable' })
    rmSync(join(home, '.env'), { recursive: true })
    write(Buffer.alloc(2 * 1024 * 1024, 'A'))
    expect(read()).toMatchObject({ kind: 'unreadable' })
  })
})

describe('what it adds', () => {
  const host = {
    path: '/h/.env',
    kind: 'read',
    values: { KEY: 'file', OTHER: 'file', BLANK: ' ' },
  } as const
  const isWanted = (name: string): boolean => name !== 'OTHER'

  test('is what is wanted and not there yet', () => {
    expect(withHostValues({ A: '1' }, host, isWanted)).toEqual({ A: '1', KEY: 'file' })
    expect(withHostValues({ KEY: '' }, host, isWanted)).toEqual({ KEY: 'file' })
    expect(withHostValues({ KEY: 'own' }, host, isWanted)).toEqual({ KEY: 'own' })
    expect(withHostValues({ KEY: 'own' }, null, isWanted)).toEqual({ KEY: 'own' })
  })

  test('counts more than the old environment of a scheduled script', () => {
    const scheduled = { CADUCEUS_SCHEDULED: '1', KEY: 'old', BLANK: 'own' }
    expect(withHostValues(scheduled, host, isWanted)).toEqual({ ...scheduled, KEY: 'file' })
  })
})

describe('a tick that the host schedules', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      bridge: `#!/bin/sh
env >"$HOME/seen"
tr '\\0' '\\n' </proc/$PPID/environ >"$HOME/above" 2>/dev/null
echo mended >>app.txt
cat >worker-result.json <<END
{"status": "success", "summary": "s", "commit_message": "fix: m", "pull_request_title": "fix: t"}
END
`,
    })
  })
  afterEach(async () => rig.close())

  test('takes the token and the keys of the provider from the file, and hands them to nobody else', async () => {
    const hermes = join(rig.dir, 'hermes')
    mkdirSync(hermes)
    const lines = {
      CADUCEUS_GITHUB_TOKEN: rig.token,
      ANTHROPIC_API_KEY: 'provider key',
      MY_KEY: 'my key',
      SLACK_BOT_TOKEN: 'not for us',
      PATH: '/nowhere',
    }
    const text = Object.entries(lines).map(([name, value]) => `${name}='${value}'\n`)
    writeFileSync(join(hermes, '.env'), text.join(''), { mode: 0o600 })
    rig.setConfig({ worker_env_allowlist: ['MY_KEY'] })
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    Object.assign(rig.env, { HERMES_HOME: hermes, GITHUB_TOKEN: '' })
    const number = await rig.openIssue()
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(number)?.phase).toBe('awaiting_review')

    const seen = readFileSync(join(rig.dir, 'home', 'seen'), 'utf8')
    expect(seen).toContain('ANTHROPIC_API_KEY=provider key')
    expect(seen).toContain('MY_KEY=my key')
    expect(seen).not.toMatch(/SLACK|GITHUB_TOKEN=.|PATH=\/nowhere/)
    const files = [...textsUnder(join(rig.dir, 'state')).values()].join('')
    for (const secret of [rig.token, 'provider key', 'my key']) expect(files).not.toContain(secret)
  })

  test('goes on without a file it may not read, and says what is missing', async () => {
    const hermes = join(rig.dir, 'hermes')
    mkdirSync(join(hermes, '.env'), { recursive: true })
    chmodSync(join(hermes, '.env'), 0o700)
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.env['HERMES_HOME'] = hermes
    await rig.openIssue()
    const { code, stderr } = await rig.tick()
    expect(code).toBe(1)
    expect(stderr).toContain('under Hermes in its .env file')
  })
})
