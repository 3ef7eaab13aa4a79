import {
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { openEtagCache } from '../../daemon/github/etag-cache.ts'
import type { HttpRequest } from '../../daemon/github/http-request.ts'
import {
  faultOf,
  ISSUE,
  issueJson,
  pullJson,
  REPOSITORY,
  rigOpener,
  TEST_TOKEN,
} from '../support/github-rig.ts'
import { replyJson, type Script, type SeenRequest } from '../support/scripted-server.ts'

const rig = rigOpener()

/** GitHub's way: 304 for the current validator, else the list with it. */
const validating =
  (etag: string, body: readonly object[] = [issueJson(1)]): Script =>
  (request, response) => {
    if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
    else replyJson(response, 200, body, { etag })
  }
const validators = (seen: readonly SeenRequest[]): readonly (string | undefined)[] =>
  seen.map(({ headers }) => headers['if-none-match'])

describe('a poll that was made before', () => {
  test.each(['"abc"', 'W/"abc"', '""'])('is a 304 with %s, for a new process too', async (etag) => {
    const { open, server } = await rig(validating(etag))
    const first = await open().pollLabel(REPOSITORY, 'bot')
    const second = await open().pollLabel(REPOSITORY, 'bot')
    expect(first.unchanged).toBe(false)
    expect(second).toMatchObject({ unchanged: true, issues: first.issues })
    expect(validators(server.seen)).toEqual([undefined, etag])
  })

  test.each(['abc', 'w/"abc"', '"a"b"', `"${'x'.repeat(300)}"`])(
    'keeps no malformed validator: %s',
    async (etag) => {
      const { open, server, cacheDirectory } = await rig(validating(etag))
      const github = open()
      await github.pollLabel(REPOSITORY, 'bot')
      expect((await github.pollLabel(REPOSITORY, 'bot')).unchanged).toBe(false)
      expect(validators(server.seen)).toEqual([undefined, undefined])
      expect(readdirSync(cacheDirectory)).toEqual([])
    },
  )

  const damages: ReadonlyArray<readonly [string, (path: string) => void]> = [
    ['is gone', (path) => rmSync(path)],
    ['is empty', (path) => writeFileSync(path, '')],
    ['is cut off', (path) => writeFileSync(path, readFileSync(path).subarray(0, -3))],
    [
      'has lost its body',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').split('\n')[0] ?? ''),
    ],
    ['is garbage', (path) => writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 10, 5]))],
    [
      'has another body',
      (path) => writeFileSync(path, `${readFileSync(path, 'utf8').split('\n')[0]}\n[]`),
    ],
    [
      'has another version',
      (path) =>
        writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":2')),
    ],
    ['is huge', (path) => writeFileSync(path, Buffer.alloc(LIMITS.httpCacheFileBytes + 1))],
    [
      'is a link',
      (path) => {
        rmSync(path)
        symlinkSync('/dev/zero', path)
      },
    ],
  ]
  test.each(damages)('is made anew when the kept file %s', async (_, damage) => {
    const { open, server, cacheDirectory } = await rig(validating('"1"'))
    const first = await open().pollLabel(REPOSITORY, 'bot')
    for (const name of readdirSync(cacheDirectory)) damage(join(cacheDirectory, name))
    const second = await open().pollLabel(REPOSITORY, 'bot')
    expect(second).toMatchObject({ unchanged: false, issues: first.issues })
    expect(validators(server.seen)).toEqual([undefined, undefined])
  })

  test('a 304 to a question without a validator is asked again once, then is a fault', async () => {
    const { open, server } = await rig((_, response, count) =>
      count === 2 ? replyJson(response, 200, [issueJson(1)]) : response.writeHead(304).end(),
    )
    expect((await open().pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
    expect(server.seen).toHaveLength(2)
    expect((await faultOf(open().pollLabel(REPOSITORY, 'bot'))).code).toBe('github/failed')
    expect(server.seen).toHaveLength(4)
  })

  test('goes on with its next page after a 304', async () => {
    const { open, server } = await rig((request, response, count) => {
      const isSecond = request.url.includes('page=2')
      if (!isSecond) {
        response.setHeader('link', `<http://${request.headers.host}/x?page=2>; rel="next"`)
        if (request.headers['if-none-match'] !== undefined) response.removeHeader('link')
      }
      validating(isSecond ? '"b"' : '"a"', [issueJson(isSecond ? 2 : 1)])(request, response, count)
    })
    const first = await open().pollChanges(REPOSITORY, 0)
    const second = await open().pollChanges(REPOSITORY, 0)
    expect(first.issues.map(({ number }) => number)).toEqual([1, 2])
    expect(second).toMatchObject({ unchanged: true, issues: first.issues })
    expect(server.seen).toHaveLength(4)
  })

  test('is not "unchanged" when only one of its pages is', async () => {
    const { open } = await rig((request, response, count) => {
      const isSecond = request.url.includes('page=2')
      if (!isSecond) {
        response.setHeader('link', `<http://${request.headers.host}/x?page=2>; rel="next"`)
      }
      validating(isSecond ? `"${count}"` : '"a"', [issueJson(isSecond ? 2 : 1)])(
        request,
        response,
        count,
      )
    })
    await open().pollChanges(REPOSITORY, 0)
    expect((await open().pollChanges(REPOSITORY, 0)).unchanged).toBe(false)
  })

  test('asks in full for a full last page: GitHub says 304 for it even when a page was added', async () => {
    const full = Array.from({ length: LIMITS.pageSize }, (_, index) => issueJson(index + 1))
    const { open, server } = await rig(validating('"1"', full))
    await open().pollChanges(REPOSITORY, 0)
    await open().pollChanges(REPOSITORY, 0)
    expect(validators(server.seen)).toEqual([undefined, undefined])
  })

  test('asks in full from another time on, and keeps one file for all times', async () => {
    const { open, server, cacheDirectory } = await rig(validating('"1"'))
    const github = open()
    await github.pollChanges(REPOSITORY, 0)
    await github.pollChanges(REPOSITORY, 5_000)
    await github.pollChanges(REPOSITORY, 5_000)
    expect(validators(server.seen)).toEqual([undefined, undefined, '"1"'])
    expect(readdirSync(cacheDirectory)).toHaveLength(1)
  })

  test('keeps its files to itself and the token out of them', async () => {
    const { open, cacheDirectory } = await rig(validating('"1"'))
    await open().pollLabel(REPOSITORY, 'bot')
    for (const name of readdirSync(cacheDirectory)) {
      const path = join(cacheDirectory, name)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(readFileSync(path, 'utf8')).not.toContain(TEST_TOKEN)
    }
  })

  test('works without a place to keep anything', async () => {
    const { open, cacheDirectory } = await rig(validating('"1"'))
    writeFileSync(join(cacheDirectory, 'file'), '')
    const github = open({ cacheDirectory: join(cacheDirectory, 'file', 'below') })
    expect((await github.pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
    expect((await github.pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
  })

  test('of a pull request is a 304 as well; an issue and its comments are always read anew', async () => {
    const { open, server } = await rig((request, response) => {
      if (request.headers['if-none-match'] !== undefined) response.writeHead(304).end()
      else if (request.url.includes('/pulls/'))
        replyJson(response, 200, pullJson(3), { etag: '"p"' })
      else if (request.url.includes('/comments')) replyJson(response, 200, [], { etag: '"c"' })
      else replyJson(response, 200, issueJson(7), { etag: '"i"' })
    })
    const github = open()
    for (let round = 0; round < 2; round += 1) {
      expect((await github.pullRequest(REPOSITORY, 3))?.number).toBe(3)
      expect((await github.issue(ISSUE))?.number).toBe(7)
      await github.comments(ISSUE)
    }
    expect(validators(server.seen).filter((each) => each !== undefined)).toEqual(['"p"'])
  })

  test('of a pull request that is gone forgets what was kept', async () => {
    const { open, cacheDirectory } = await rig((_, response, count) =>
      count === 1
        ? replyJson(response, 200, pullJson(3), { etag: '"p"' })
        : replyJson(response, 404, {}),
    )
    const github = open()
    await github.pullRequest(REPOSITORY, 3)
    expect(await github.pullRequest(REPOSITORY, 3)).toBeNull()
    expect(readdirSync(cacheDirectory)).toEqual([])
  })
})

describe('how much is kept', () => {
  const request = (path: string, accept = 'a'): HttpRequest => ({
    method: 'GET',
    url: `http://x/${path}`,
    headers: { accept },
    body: null,
    subject: '',
  })
  const page = (text: string) => ({ etag: '"e"', link: null, text })
  const clock = { now: () => Date.now(), sleep: () => Promise.resolve() }

  test('as many files as allowed, the longest unchanged goes first', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    for (const [index, path] of ['old', 'older', 'new'].entries()) {
      const before = readdirSync(cacheDirectory)
      openEtagCache({ clock }, cacheDirectory, { files: 9, bytes: 1e6 }).store(
        request(path),
        page(path),
      )
      const made = readdirSync(cacheDirectory).find((name) => !before.includes(name)) ?? ''
      const seconds = [2000, 1000, 3000][index] ?? 0
      utimesSync(join(cacheDirectory, made), seconds, seconds)
    }
    const cache = openEtagCache({ clock }, cacheDirectory, { files: 3, bytes: 1e6 })
    cache.store(request('newest'), page('n'))
    expect(
      ['old', 'older', 'new', 'newest'].map((path) => cache.load(request(path)) !== null),
    ).toEqual([true, false, true, true])
  })

  test('as many bytes as allowed', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const big = page('x'.repeat(10_000))
    for (let index = 0; index < 5; index += 1) {
      openEtagCache({ clock }, cacheDirectory, { files: 99, bytes: 25_000 }).store(
        request(`${index}`),
        big,
      )
    }
    expect(readdirSync(cacheDirectory)).toHaveLength(2)
  })

  test('no answer larger than a file may be', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    cache.store(request('a'), page('small'))
    cache.store(request('a'), page('x'.repeat(LIMITS.httpCacheFileBytes)))
    expect(cache.load(request('a'))).toBeNull()
    expect(readdirSync(cacheDirectory)).toEqual([])
  })

  test('the answer to one Accept is not given for another', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    cache.store(request('a', 'json'), page('1'))
    cache.store(request('a', 'html'), page('2'))
    expect(cache.load(request('a', 'json'))?.text).toBe('1')
    expect(cache.load(request('a', 'html'))?.text).toBe('2')
    expect(cache.load(request('a', 'text'))).toBeNull()
  })

  test('text of any language comes back as it was', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    const text = '[\n"🤖\uFE0F é \u0000 \\n"]\n\n'
    cache.store(request('a'), { etag: 'W/"x"', link: '<u>; rel="next"', text })
    expect(cache.load(request('a'))).toEqual({ etag: 'W/"x"', link: '<u>; rel="next"', text })
  })
})
