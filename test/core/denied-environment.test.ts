import { describe, expect, test } from '@jest/globals'
import { isDeniedName, mayExposeDenied } from '../../daemon/core/denied-environment.ts'

describe('which variables never reach a worker', () => {
  test.each([
    'GITHUB_TOKEN',
    'GH_TOKEN',
    'GH_ENTERPRISE_TOKEN',
    'GH_TOKEN_2',
    'CADUCEUS_GITHUB_TOKEN',
    'AUTO_ISSUE_GITHUB_TOKEN',
    'TOKEN_FOR_GITHUB',
    'MYGITHUBTOKEN',
    'github_token',
    'MY_GH_TOKEN',
    'GITHUB_PAT',
    'GH_PAT',
    'MY_GITHUB_PAT',
    'CADUCEUS_SECRET',
    'CADUCEUS_API_TOKEN',
  ])('%s is denied', (name) => {
    expect(isDeniedName(name)).toBe(true)
    expect(mayExposeDenied(name)).toBe(true)
  })

  test.each([
    'PATH',
    'HF_TOKEN',
    'OPENAI_API_KEY',
    'GITHUB_REPOSITORY',
    'GHOST_TOKEN',
    'XGH_TOKEN',
    'CADUCEUS_RUN_ID',
    'AZURE_PAT',
    'GITHUB_PATH',
  ])('%s is not', (name) => {
    expect(isDeniedName(name)).toBe(false)
    expect(mayExposeDenied(name)).toBe(false)
  })

  test.each([
    '*',
    'G*',
    'GH*',
    'GH_*',
    'GITHUB_*',
    'gith*',
    'A*',
    'CADUCEUS_*',
    'MY_GITHUB_*',
    'X_GH_*',
  ])('the wildcard %s asks for too much', (entry) => {
    expect(mayExposeDenied(entry)).toBe(true)
  })

  test.each(['AWS_*', 'HF_*', 'GEMINI_*', 'GOOGLE_*', 'CARGO_*', 'HTTP*'])(
    'the wildcard %s does not',
    (entry) => {
      expect(mayExposeDenied(entry)).toBe(false)
    },
  )
})
