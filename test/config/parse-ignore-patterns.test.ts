import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('which authors are ignored', () => {
  test.each(['(', '[z-a]', 'a{2,1}', '(?P<x>a)'])('%j is no ignore pattern', (pattern) => {
    const document = { worker_command: '/b', comment_ignore_patterns: [pattern] }
    const paths = problemsOf(rig.inspect(document)).map(({ path }) => path)
    expect(paths).toEqual(['comment_ignore_patterns[0]'])
  })

  test('ignore patterns tell upper from lower case unless (?i) says otherwise', () => {
    const comment_ignore_patterns = ['^Renovate', '(?i)^dependabot']
    const inspection = rig.inspect({ worker_command: '/b', comment_ignore_patterns })
    const [exact, loose] =
      inspection.kind === 'valid' ? inspection.loaded.config.commentIgnorePatterns : []
    expect([exact?.test('Renovate'), exact?.test('renovate')]).toEqual([true, false])
    expect([loose?.test('Dependabot'), loose?.test('dependabot')]).toEqual([true, true])
  })
})
