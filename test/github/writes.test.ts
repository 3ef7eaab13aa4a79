import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { GitHub } from '../../daemon/core/ports.ts'
import { STATUS_FAULTS } from '../../daemon/github/request-fault.ts'
import {
  commentJson,
  faultOf,
  type GitHubRig,
  ISSUE,
  pullJson,
  REPOSITORY,
  rigOpener,
} from '../support/github-rig.ts'
import { replyJson, type Script } from '../support/scripted-server.ts'

const rig = rigOpener()

const PULL = { title: 't', body: 'b', headBranch: 'h', baseBranch: 'main' }
const READS: Readonly<Record<string, (github: GitHub) => Promise<unknown>>> = {
  viewer: (github) => github.viewer(),
  repository: (github) => github.repository(REPOSITORY),
  pollLabel: (github) => github.pollLabel(REPOSITORY, 'bot'),
  pollChanges: (github) => github.pollChanges(REPOSITORY, 0),
  issue: (github) => github.issue(ISSUE),
  comments: (github) => github.comments(ISSUE),
  timeline: (github) => github.timeline(ISSUE),
  pullRequest: (github) => github.pullRequest(REPOSITORY, 1),
  pullRequestsByHead: (github) => github.pullRequestsByHead(REPOSITORY, 'b'),
}
const WRITES: typeof READS = {
  createPullRequest: (github) => github.createPullRequest(REPOSITORY, PULL),
  createComment: (github) => github.createComment(ISSUE, 'x'),
  deleteComment: (github) => github.deleteComment(REPOSITORY, 3),
  removeLabel: (github) => github.removeLabel(ISSUE, 'bot'),
  closeIssue: (github) => github.closeIssue(ISSUE),
}
const NULL_WHEN_ABSENT = ['repository', 'issue', 'pullRequest']

// What each status means, and whether a write that got it may have been done (P§3).
const STATUSES = [
  [304, 'github/failed', 'none'],
  [400, 'github/refused', 'none'],
  [401, 'token/rejected', 'none'],
  [403, 'github/refused', 'none'],
  [404, 'github/not-found', 'none'],
  [408, 'github/failed', 'unknown'],
  [409, 'github/refused', 'none'],
  [410, 'github/not-found', 'none'],
  [422, 'github/refused', 'none'],
  [429, 'github/rate-limited', 'unknown'],
  [451, 'github/refused', 'none'],
  [500, 'github/failed', 'unknown'],
  [502, 'github/failed', 'unknown'],
  [503, 'github/failed', 'unknown'],
] as const

describe('what a status means', () => {
  test.each(STATUSES)('%s to a read is %s', async (status, code, _effect) => {
    const { open, gate } = await rig((_, response) =>
      replyJson(response, status, { message: 'why' }),
    )
    for (const [name, read] of Object.entries(READS)) {
      gate.wait = null
      const isAbsence = (status === 404 || status === 410) && NULL_WHEN_ABSENT.includes(name)
      if (isAbsence) {
        expect([name, await read(open())]).toEqual([name, null])
        continue
      }
      const fault = await faultOf(read(open()))
      expect([name, fault.code]).toEqual([name, code])
      expect(fault.details).not.toHaveProperty('effect')
      expect(fault.message).not.toContain('?')
    }
  })

  test.each(STATUSES)(
    '%s to a write is %s, effect %s, and is not sent again',
    async (status, code, effect) => {
      const { open, gate, server } = await rig((_, response) =>
        replyJson(response, status, { message: 'why' }),
      )
      for (const [name, write] of Object.entries(WRITES)) {
        gate.wait = null
        server.seen.length = 0
        const isAlreadyGone = (status === 404 || status === 410) && name === 'deleteComment'
        if (isAlreadyGone) {
          await write(open())
          continue
        }
        const fault = await faultOf(write(open()))
        expect([name, fault.code, fault.details['effect']]).toEqual([name, code, effect])
        expect(fault.message).not.toContain('?')
        expect(server.seen).toHaveLength(1)
      }
    },
  )

  test('every status from 300 on has a row', () => {
    for (let status = 300; status <= 999; status += 1) {
      expect(STATUS_FAULTS.some((row) => status >= row.from && status <= row.to)).toBe(true)
    }
  })
})

describe('what of an answer is shown', () => {
  const shownFor = async (script: Script): Promise<unknown> => {
    const { open } = await rig(script)
    return (await faultOf(open().createComment(ISSUE, 'x'))).details['reason']
  }

  test("GitHub's message and those of its errors", async () => {
    const body = {
      message: 'Validation Failed',
      errors: [{ message: 'too long' }, { code: 'x' }, 'y', 4],
    }
    expect(await shownFor((_, response) => replyJson(response, 422, body))).toBe(
      'Validation Failed: too long: x: y',
    )
  })

  test('one line of bounded length', async () => {
    const body = { message: `a\n\tb${'🤖'.repeat(5000)}` }
    const reason = String(await shownFor((_, response) => replyJson(response, 500, body)))
    expect(reason).toMatch(/^a b🤖+…$/u)
    expect(Array.from(reason)).toHaveLength(LIMITS.httpReasonCharacters + 1)
  })

  test.each(['<html>Unicorn!</html>', '', 'null', '[]', '{"message":5}'])(
    'nothing of %j',
    async (body) => {
      expect(await shownFor((_, response) => response.writeHead(502).end(body))).toBe(
        'no explanation',
      )
    },
  )

  test('no secret that GitHub repeats', async () => {
    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    expect(
      await shownFor((_, response) => replyJson(response, 500, { message: `with ${token}` })),
    ).toBe('with <redacted>')
  })

  test('a refusal whose explanation is cut off is still a refusal', async () => {
    const { open } = await rig((_, response) => {
      response.writeHead(422, { 'content-type': 'application/json', 'content-length': '500' })
      response.write('{"mess', () => setImmediate(() => response.destroy()))
    })
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/refused',
      details: { effect: 'none', reason: 'no explanation' },
    })
  })
})

describe('how a write is made', () => {
  const answering = (status: number, body: unknown): Promise<GitHubRig> =>
    rig((_, response) =>
      body === undefined ? response.writeHead(status).end() : replyJson(response, status, body),
    )

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
