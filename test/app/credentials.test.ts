import { describe, expect, test } from '@jest/globals'
import { supervisorEnvironment, withoutCredentials } from '../../daemon/app/credentials.ts'

const SECRET = ['plain', 'secret', 'of', 'an', 'old', 'server'].join('-')
const OPERATORS = {
  PATH: '/usr/bin',
  HOME: '/home/operator',
  LANG: 'C.UTF-8',
  GITHUB_TOKEN: 'x',
  GH_TOKEN: 'x',
  CADUCEUS_GITHUB_TOKEN: 'x',
  HIDDEN: ['gh', 'p_', 'a'.repeat(36)].join(''),
  URL: `https://user:${SECRET}@example.org`,
  NODE_OPTIONS: '--import=/somewhere/preload.mjs',
  TEST_MODE: '1',
  EDITOR: 'vi',
}

describe('which environment the processes of the program get', () => {
  test('a runner gets everything but credentials, whatever name they stand under', () => {
    const { PATH, HOME, LANG, NODE_OPTIONS, TEST_MODE, EDITOR } = OPERATORS
    const expected = { PATH, HOME, LANG, NODE_OPTIONS, TEST_MODE, EDITOR }
    expect(withoutCredentials(OPERATORS, [SECRET])).toEqual(expected)
  })

  test('a supervisor gets what it needs to run and nothing else of the operator’s', () => {
    const { PATH, HOME, LANG } = OPERATORS
    expect(supervisorEnvironment(OPERATORS)).toEqual({ PATH, HOME, LANG })
    const more = { LC_ALL: 'C', TMPDIR: '/tmp' }
    expect(supervisorEnvironment({ ...OPERATORS, ...more })).toEqual({ PATH, HOME, LANG, ...more })
  })
})
