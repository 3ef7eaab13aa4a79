import { afterEach, describe, expect, test } from '@jest/globals'
import {
  faultOf,
  type GitHubRig,
  ISSUE,
  issueJson,
  openGitHubRig,
  TEST_TOKEN,
} from '../support/github-rig.ts'
import { openScriptedServer, replyJson, type Script } from '../support/scripted-server.ts'

let rigs: GitHubRig[] = []
const rig = async (script: Script): Promise<GitHubRig> => {
  const opened = await openGitHubRig(script)
  rigs.push(opened)
  return opened
}
afterEach(async () => {
  await Promise.all(rigs.map((each) => each.close()))
  rigs = []
})

const viewer = { id: 9, login: 'bot' }

describe('redirects', () => {
  const moved = issueJson(7, { repository_url: 'https://api.example.org/repos/Octo/renamed' })

  test.each([301, 302, 307, 308])('a read follows a %s and tells where it led', async (status) => {
    const { open, server } = await rig((request, response) => {
      if (request.url.startsWith('/repositories/')) return replyJson(response, 200, moved)
      return replyJson(response, status, {}, { location: '/repositories/1/issues/7' })
    })
    const issue = await open().issue(ISSUE)
    expect(issue?.movedTo).toEqual({ owner: 'Octo', name: 'renamed' })
    expect(server.seen[1]?.headers.authorization).toBe(`Bearer ${TEST_TOKEN}`)
  })

  test('an answer from the same repository in other letters has not moved', async () => {
    const here = issueJson(7, { repository_url: 'https://api.example.org/repos/OCTO/Hello' })
    const { open } = await rig((_, response) => replyJson(response, 200, here))
    expect((await open().issue(ISSUE))?.movedTo).toBeNull()
  })

  test('another origin is not followed and never sees a request', async () => {
    const other = await openScriptedServer((_, response) => replyJson(response, 200, viewer))
    try {
      const { open } = await rig((_, response) =>
        replyJson(response, 302, {}, { location: `${other.url}/user` }),
      )
      const fault = await faultOf(open().viewer())
      expect(fault.code).toBe('github/bad-answer')
      expect(fault.message).toContain('another host')
      expect(other.seen).toEqual([])
    } finally {
      await other.close()
    }
  })

  test('three are followed, a circle is not', async () => {
    const { open, server } = await rig((_, response, count) =>
      count === 4
        ? replyJson(response, 200, viewer)
        : replyJson(response, 302, {}, { location: '/x' }),
    )
    expect(await open().viewer()).toEqual(viewer)
    server.seen.length = 4
    expect((await faultOf(open().viewer())).message).toContain('more than 3 redirects')
    expect(server.seen).toHaveLength(8)
  })

  test.each([undefined, 'http://['])('a location of %s leads nowhere', async (location) => {
    const { open } = await rig((_, response) =>
      replyJson(response, 302, {}, location === undefined ? {} : { location }),
    )
    expect((await faultOf(open().viewer())).message).toContain('a redirect to nowhere')
  })

  test.each([301, 307, 308])('a write is not redirected by a %s', async (status) => {
    const { open, server } = await rig((_, response) =>
      replyJson(response, status, {}, { location: '/elsewhere' }),
    )
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/failed',
      details: { effect: 'none', status },
    })
    expect(server.seen).toHaveLength(1)
  })
})
