import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

const repo = 'octo/app'

let github: TestGitHub
let gitPath: string

beforeAll(async () => {
  github = await startTestGitHub()
  gitPath = (await github.control('readRepository', { repo })).gitPath
})
afterAll(() => github.stop())

const git = (...args: string[]): string =>
  execFileSync('git', ['--git-dir', gitPath, ...args], { encoding: 'utf8' }).trim()

describe('branches', () => {
  test('are read by name, slashes included', async () => {
    git('branch', 'deep/er', 'main')
    const oid = git('rev-parse', 'main')
    const ref = await github.request('/repos/octo/app/git/ref/heads/deep/er')
    expect(ref.body).toMatchObject({ ref: 'refs/heads/deep/er', object: { sha: oid } })
    const branch = await github.request('/repos/octo/app/branches/deep%2Fer')
    expect(branch.body).toMatchObject({ name: 'deep/er', commit: { sha: oid } })
    expect((await github.request('/repos/octo/app/git/ref/heads/deep')).status).toBe(404)
    expect((await github.request('/repos/octo/app/git/ref/heads/..%2f..%2fconfig')).status).toBe(
      404,
    )
  })

  test('have a default that clones begin with', async () => {
    await github.control('createRepository', { repo: 'octo/dev', defaultBranch: 'develop' })
    const { gitPath: path } = await github.control('readRepository', { repo: 'octo/dev' })
    const head = () =>
      execFileSync('git', ['ls-remote', '--symref', path, 'HEAD'], { encoding: 'utf8' })
    expect(head()).toMatch(/^ref: refs\/heads\/develop\tHEAD/)
    await github.control('pushCommit', { repo: 'octo/dev', branch: 'trunk', files: { a: 'a' } })
    await github.control('editRepository', { repo: 'octo/dev', defaultBranch: 'trunk' })
    expect(head()).toMatch(/^ref: refs\/heads\/trunk\tHEAD/)
    const { body } = await github.request('/repos/octo/dev')
    expect(body).toMatchObject({ default_branch: 'trunk' })
  })

  test('are none in an empty repository, and come from another when copied', async () => {
    const empty = await github.control('createRepository', { repo: 'octo/empty', files: null })
    expect(empty.branches).toEqual({})
    const copy = await github.control('createRepository', { repo: 'octo/copy', copyOf: gitPath })
    expect(copy.branches['main']).toBe(git('rev-parse', 'main'))
  })

  test('get files of every kind, and can be rewritten', async () => {
    const { oid } = await github.control('pushCommit', {
      repo,
      branch: 'kinds',
      files: {
        'run me.sh': { content: '#!/bin/sh\n', mode: '100755' },
        link: { content: 'run me.sh', mode: '120000' },
        binary: { content: 'AAEC', encoding: 'base64' },
        'README.md': null,
      },
    })
    const listing = git('ls-tree', '--format=%(objectmode) %(path)', oid)
    expect(listing.split('\n').filter((line) => !line.includes('.txt'))).toEqual([
      '100644 binary',
      '120000 link',
      '100755 run me.sh',
    ])
    const order = { repo, branch: 'kinds', files: { x: 'x' }, isForced: true }
    const forced = await github.control('pushCommit', order)
    expect(git('rev-parse', `${forced.oid}^`)).toBe(git('rev-parse', 'main'))
  })
})
