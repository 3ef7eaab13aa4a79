import { afterEach, describe, expect, test } from '@jest/globals'
import {
  commentJson,
  faultOf,
  type GitHubRig,
  ISSUE,
  openGitHubRig,
  pullJson,
  REPOSITORY,
} from '../support/github-rig.ts'
import { replyJson, type Script } from '../support/scripted-server.ts'

let rigs: GitHubRig[] = []
const rig = async (script: Script): Promise<GitHubRig> => {
  const opened = await openGitHubRig(script)
  rigs.push(opened)
  return opened
}
const answering = (status: number, body: unknown): Promise<GitHubRig> =>
  rig((_, response) =>
    body === undefined ? response.writeHead(status).end() : replyJson(response, status, body),
  )
afterEach(async () => {
  await Promise.all(rigs.map((each) => each.close()))
  rigs = []
})

describe('how a write is made', () => {
  const pull = { title: 'T', body: 'B', headBranch: 'h', baseBranch: 'develop' }

  test('a pull request', async () => {
    const { open, server } = await answering(201, pullJson(3))
    expect(await open().createPullRequest(REPOSITORY, pull)).toMatchObject({
      kind: 'created',
      pull: { number: 3 },
    })
    expect(server.seen[0]).toMatchObject({ method: 'POST', url: '/repos/octo/hello/pulls' })
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      title: 'T',
      body: 'B',
      head: 'h',
      base: 'develop',
    })
  })

  test.each([
    ['exists', 'A pull request already exists for octo:h.'],
    ['no-commits', 'No commits between develop and h'],
  ])('a pull request that GitHub does not make: %s', async (kind, message) => {
    const { open } = await answering(422, { message: 'Validation Failed', errors: [{ message }] })
    expect(await open().createPullRequest(REPOSITORY, pull)).toEqual({ kind })
  })

  test('a pull request that GitHub refuses for another reason', async () => {
    const errors = [{ resource: 'PullRequest', field: 'head', code: 'invalid' }]
    const { open } = await answering(422, { message: 'Validation Failed', errors })
    expect(await faultOf(open().createPullRequest(REPOSITORY, pull))).toMatchObject({
      code: 'github/refused',
      details: { effect: 'none', reason: 'Validation Failed: invalid' },
    })
  })

  test('a comment', async () => {
    const { open, server } = await answering(201, commentJson(5))
    expect((await open().createComment(ISSUE, 'héllo 🤖')).id).toBe(5)
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      url: '/repos/octo/hello/issues/7/comments',
      body: '{"body":"héllo 🤖"}',
    })
  })

  test.each([
    ['not JSON', 'oops'],
    ['nothing', ''],
    ['another thing', '{}'],
  ])('what was made but is answered with %s may exist', async (_, body) => {
    const { open, server } = await rig((_request, response) => response.writeHead(201).end(body))
    for (const call of [
      open().createComment(ISSUE, 'x'),
      open().createPullRequest(REPOSITORY, pull),
    ]) {
      expect(await faultOf(call)).toMatchObject({
        code: 'github/bad-answer',
        details: { effect: 'unknown' },
      })
    }
    expect(server.seen).toHaveLength(2)
  })

  test('what was made but whose answer is cut off may exist', async () => {
    const { open } = await rig((_, response) => {
      response.writeHead(201, { 'content-type': 'application/json' })
      response.write('{"id":', () => setImmediate(() => response.destroy()))
    })
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/bad-answer',
      details: { effect: 'unknown', reason: 'the body was cut off' },
    })
  })

  test('a close, which needs no readable answer', async () => {
    const { open, server } = await rig((_, response) => {
      response.writeHead(200)
      response.write('{', () => setImmediate(() => response.destroy()))
    })
    await open().closeIssue(ISSUE)
    expect(server.seen[0]).toMatchObject({ method: 'PATCH', url: '/repos/octo/hello/issues/7' })
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      state: 'closed',
      state_reason: 'completed',
    })
  })

  test.each([
    [204, undefined],
    [404, { message: 'Not Found' }],
  ])('a deletion of a comment that is answered %s', async (status, body) => {
    const { open, server } = await answering(status, body)
    await open().deleteComment(REPOSITORY, 5)
    expect(server.seen[0]).toMatchObject({
      method: 'DELETE',
      url: '/repos/octo/hello/issues/comments/5',
      body: '',
    })
  })

  test.each([
    ['🤖 auto-fix', '%F0%9F%A4%96%20auto-fix'],
    ['a/b', 'a%2Fb'],
    ["50% o'f (x), y?", '50%25%20o%27f%20%28x%29%2C%20y%3F'],
    ['..x', '..x'],
  ])('the removal of the label %s', async (label, path) => {
    const { open, server } = await answering(200, [])
    await open().removeLabel(ISSUE, label)
    expect(server.seen[0]).toMatchObject({
      method: 'DELETE',
      url: `/repos/octo/hello/issues/7/labels/${path}`,
    })
  })

  test('the removal of a label that is not there is done; of one on an issue that is not there it is not', async () => {
    const { open } = await answering(404, { message: 'Label does not exist' })
    await open().removeLabel(ISSUE, 'bot')
    const { open: openOther } = await answering(404, { message: 'Not Found' })
    expect(await faultOf(openOther().removeLabel(ISSUE, 'bot'))).toMatchObject({
      code: 'github/not-found',
      message: 'octo/hello#7 was not found on GitHub.',
    })
  })

  test.each(['', ' ', '.', '..'])(
    'the removal of the label "%s" is not sent: it would remove all labels',
    async (label) => {
      const { open, server } = await answering(200, [])
      expect(await faultOf(open().removeLabel(ISSUE, label))).toMatchObject({
        code: 'github/refused',
        details: { effect: 'none' },
      })
      expect(server.seen).toEqual([])
    },
  )
})
