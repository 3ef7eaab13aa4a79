import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import { errorsOf, QUIET, refusalOf, tickLater } from '../support/refusal.ts'

let rig: ProgramRig

afterEach(async () => {
  await rig.close()
})

describe('what does a GitHub that cannot be used do?', () => {
  let token: string

  beforeEach(async () => {
    rig = await openProgramRig()
    token = rig.token
    await rig.openIssue()
  })

  /** Fails, says so once, is remembered, and is over when mended. */
  const failsUntilMended = async (problem: string, mend: () => void): Promise<void> => {
    expect(await refusalOf(rig, 'run', '--now', '--wait')).toContain(problem)
    expect(await errorsOf(rig)).toEqual([expect.stringContaining(problem)])
    expect((await rig.status()).report?.last_outcome).toBe('failed')
    mend()
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(await errorsOf(rig)).toEqual([])
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  }

  test('without a token each place it may come from is named, and gh that is not there', async () => {
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    await failsUntilMended(
      'No GitHub token was found (github_token is not set; CADUCEUS_GITHUB_TOKEN is not set; GITHUB_TOKEN is not set; gh is not installed).',
      () => {
        rig.env['GITHUB_TOKEN'] = token
      },
    )
  })

  test('a queued issue is not claimed as long as there is no token', async () => {
    rig.setConfig({ max_issues_per_tick: 1 })
    rig.setBridge('#!/bin/sh\nexit 1\n')
    await rig.tick()
    expect(rig.entry(1)).toMatchObject({ phase: 'queued', attempts: 1 })
    const runs = rig.journals().length
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    rig.clock.advance(3_600_000)
    expect(await refusalOf(rig, 'run', '--now', '--wait')).toMatch(/^No GitHub token was found/)
    expect(rig.entry(1)?.phase).toBe('queued')
    expect(rig.journals()).toHaveLength(runs)
  })

  test('a token that GitHub rejects is told with its status', async () => {
    rig.env['CADUCEUS_GITHUB_TOKEN'] = ['gh', 'p_', 'a'.repeat(36)].join('')
    await failsUntilMended('GitHub rejected the token (401).', () => {
      rig.env['CADUCEUS_GITHUB_TOKEN'] = token
    })
  })

  test('a token with a blank in it is never sent', async () => {
    rig.env['CADUCEUS_GITHUB_TOKEN'] = `${token} x`
    await failsUntilMended('The GitHub token holds a character that no token has', () => {
      rig.env['CADUCEUS_GITHUB_TOKEN'] = token
    })
  })

  test('the token of gh is used when there is no other', async () => {
    delete rig.env['CADUCEUS_GITHUB_TOKEN']
    const gh = join(rig.dir, 'bin', 'gh')
    writeFileSync(gh, `#!/bin/sh\n[ "$1 $2" = "auth token" ] && echo ${token}\n`)
    chmodSync(gh, 0o755)
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(1)?.phase).toBe('awaiting_review')
  })

  test('a GitHub that is down is told, and the work is done when it is back', async () => {
    rig.setConfig({ api_base: `http://127.0.0.1:${await closedPort()}` })
    await failsUntilMended('GitHub could not be reached for GET /repos/octo/app/issues: ', () =>
      rig.setConfig({ api_base: rig.apiBase }),
    )
  })
})

/** A port of this machine on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
