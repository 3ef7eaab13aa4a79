import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startTestGitHub, type TestAnswer, type TestGitHub } from '../support/embedded-github.ts'

type Numbered = Readonly<{ number: number }>

let github: TestGitHub

beforeAll(async () => {
  github = await startTestGitHub()
  const issues = Array.from({ length: 125 }, (_, index) => ({ title: `Issue ${index + 1}` }))
  await github.control('createIssues', { repo: 'octo/app', issues })
})
afterAll(() => github.stop())

function linkTo(rel: string, answer: TestAnswer<unknown>): string | null {
  const link = answer.headers.get('link') ?? ''
  return new RegExp(`<([^>]+)>; rel="${rel}"`).exec(link)?.[1] ?? null
}

const count = async (query: string) =>
  (await github.request<Numbered[]>(`/repos/octo/app/issues?${query}`)).body.length

describe('pages of a list', () => {
  test('have 30 items unless told, and 100 at most', async () => {
    expect(await count('')).toBe(30)
    expect(await count('per_page=7')).toBe(7)
    expect(await count('per_page=1000')).toBe(100)
    expect(await count('per_page=0')).toBe(30)
    expect(await count('page=9')).toBe(0)
  })

  test.each(['', '/api/v3'])(
    'lead from one to the next until all were seen, under "%s"',
    async (prefix) => {
      const seen: number[] = []
      let next: string | null = `${prefix}/repos/octo/app/issues?per_page=50&state=open`
      const pages = []
      while (next !== null) {
        const answer: TestAnswer<Numbered[]> = await github.request<Numbered[]>(next)
        seen.push(...answer.body.map(({ number }) => number))
        pages.push({ next: linkTo('next', answer), last: linkTo('last', answer) })
        next = pages.at(-1)?.next ?? null
      }
      expect(seen).toEqual(Array.from({ length: 125 }, (_, index) => 125 - index))
      const { id } = await github.control('readRepository', { repo: 'octo/app' })
      const page = (n: number) =>
        `${github.url}${prefix}/repositories/${id}/issues?per_page=50&state=open&page=${n}`
      expect(pages).toEqual([
        { next: page(2), last: page(3) },
        { next: page(3), last: page(3) },
        { next: null, last: null },
      ])
    },
  )

  test('name the way back too, and none when there is but one', async () => {
    const answer = await github.request('/repos/octo/app/issues?per_page=100&page=2')
    expect(linkTo('prev', answer)).toMatch(/page=1$/)
    expect(linkTo('first', answer)).toMatch(/page=1$/)
    const single = await github.request('/repos/octo/app/labels')
    expect(single.headers.get('link')).toBeNull()
  })
})

describe('conditional requests', () => {
  test('answer 304 without body or Link while nothing changed, and cost nothing', async () => {
    const path = '/repos/octo/app/issues?per_page=50'
    const first = await github.request(path)
    const etag = first.headers.get('etag') ?? ''
    expect(etag).toMatch(/^W\/"[0-9a-f]{64}"$/)
    const used = Number(first.headers.get('x-ratelimit-used'))
    const again = await github.request(path, { headers: { 'if-none-match': etag } })
    expect([again.status, again.text, again.headers.get('link')]).toEqual([304, '', null])
    expect(again.headers.get('etag')).toBe(etag)
    expect(Number(again.headers.get('x-ratelimit-used'))).toBe(used)
    const strong = { 'if-none-match': `"other", ${etag.slice(2)}` }
    expect((await github.request(path, { headers: strong })).status).toBe(304)

    await github.control('labelIssue', { repo: 'octo/app', number: 125, label: 'changed' })
    const changed = await github.request(path, { headers: { 'if-none-match': etag } })
    expect([changed.status, Number(changed.headers.get('x-ratelimit-used'))]).toEqual([
      200,
      used + 1,
    ])
    const { entries } = await github.control('readRequests', { status: 304 })
    expect(entries.map(({ isConditional }) => isConditional)).toEqual([true, true])
  })

  test('differ by Link: another last page is another answer', async () => {
    const path = '/repos/octo/app/issues?direction=asc&per_page=10'
    const etag = (await github.request(path)).headers.get('etag') ?? ''
    const issues = Array.from({ length: 10 }, () => ({ title: 'More' }))
    await github.control('createIssues', { repo: 'octo/app', issues })
    const answer = await github.request(path, { headers: { 'if-none-match': etag } })
    expect(answer.status).toBe(200)
  })
})
