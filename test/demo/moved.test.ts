import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

let github: TestGitHub

beforeAll(async () => {
  github = await startTestGitHub()
  await github.control('createIssue', { repo: 'octo/app', title: 'One', labels: ['bug'] })
})
afterAll(() => github.stop())

describe('what is no longer where it was', () => {
  test('a renamed repository redirects by its id, and answers there', async () => {
    const { control } = github
    await control('createRepository', { repo: 'octo/before' })
    await control('createIssue', { repo: 'octo/before', title: 'Kept' })
    const { gitPath, id } = await control('readRepository', { repo: 'octo/before' })
    await control('renameRepository', { repo: 'octo/before', to: 'octo/after' })

    const path = '/repos/octo/Before/issues?state=all&per_page=5'
    const moved = await github.request(path)
    const url = `${github.url}/repositories/${id}/issues?state=all&per_page=5`
    expect([moved.status, moved.headers.get('location')]).toEqual([301, url])
    expect(moved.body).toMatchObject({ message: 'Moved Permanently', url })
    expect((await github.request(url)).body).toMatchObject([{ title: 'Kept' }])
    const options = { method: 'POST', body: { title: 'New' } }
    expect((await github.request('/repos/octo/before/issues', options)).status).toBe(307)
    const { body } = await github.request(`/repositories/${id}`)
    expect(body).toMatchObject({ full_name: 'octo/after' })
    expect(execFileSync('git', ['ls-remote', gitPath, 'main'], { encoding: 'utf8' })).not.toBe('')

    await control('createRepository', { repo: 'octo/before' })
    expect((await github.request('/repos/octo/before')).body).toMatchObject({ name: 'before' })
  })

  test('a transferred issue leads to the other repository', async () => {
    await github.control('createRepository', { repo: 'octo/other' })
    await github.control('createIssue', { repo: 'octo/app', title: 'Off', labels: ['bug'] })
    const order = { repo: 'octo/app', number: 2, to: 'octo/other' }
    const { number } = await github.control('transferIssue', order)
    const { id } = await github.control('readRepository', { repo: 'octo/other' })
    const moved = await github.request('/repos/octo/app/issues/2')
    const url = `${github.url}/repositories/${id}/issues/${number}`
    expect([moved.status, moved.headers.get('location')]).toEqual([301, url])
    expect((await github.request(url)).body).toMatchObject({
      title: 'Off',
      labels: [{ name: 'bug' }],
      repository_url: `${github.url}/repos/octo/other`,
    })
    const comments = await github.request('/repos/octo/app/issues/2/comments?per_page=9')
    expect(comments.headers.get('location')).toBe(`${url}/comments?per_page=9`)
    expect((await github.request('/repos/octo/app/issues')).body).toMatchObject([{ number: 1 }])
  })

  test('a deleted issue is gone, and its number is not used again', async () => {
    const { number } = await github.control('createIssue', { repo: 'octo/app', title: 'Spam' })
    await github.control('deleteIssue', { repo: 'octo/app', number })
    const answer = await github.request(`/repos/octo/app/issues/${number}`)
    expect([answer.status, answer.body]).toMatchObject([410, { message: 'This issue was deleted' }])
    const next = await github.control('createIssue', { repo: 'octo/app', title: 'Next' })
    expect(next.number).toBe(number + 1)
  })

  test('disabled issues are gone as a whole', async () => {
    await github.control('createRepository', { repo: 'octo/quiet' })
    await github.control('editRepository', { repo: 'octo/quiet', hasIssues: false })
    expect((await github.request('/repos/octo/quiet/issues')).status).toBe(410)
  })
})
