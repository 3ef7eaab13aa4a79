import { describe, expect, test } from '@jest/globals'
import { environment, homeDirectory } from '../../daemon/sys/environment.ts'

describe('the environment', () => {
  test('is a copy: changing ours later does not change it', () => {
    process.env['CADUCEUS_TEST_VARIABLE'] = 'before'
    const copy = environment()
    process.env['CADUCEUS_TEST_VARIABLE'] = 'after'
    expect(copy['CADUCEUS_TEST_VARIABLE']).toBe('before')
    delete process.env['CADUCEUS_TEST_VARIABLE']
    expect(environment()['CADUCEUS_TEST_VARIABLE']).toBeUndefined()
  })

  test('names a home only by an absolute HOME', () => {
    expect(homeDirectory({ HOME: '/home/someone' })).toBe('/home/someone')
    for (const env of [{}, { HOME: '' }, { HOME: 'relative' }])
      expect(homeDirectory(env)).toBeNull()
  })
})
