import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { CONFIG_KEYS } from '../../daemon/config/schema.ts'
import { type ConfigRig, makeConfigRig } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('what config show prints', () => {
  test('every key is shown with its value in force and where it comes from', () => {
    const secret = 'a-secret-value'
    const document = {
      worker_command: '/b',
      github_token: secret,
      state_dir: '~/s',
      watched_repos: [],
    }
    const inspection = rig.inspect(document, { CADUCEUS_DRY_RUN: '1' })
    const values = inspection.kind === 'valid' ? inspection.loaded.values : []
    expect(values.map(({ key }) => key)).toEqual(CONFIG_KEYS.filter((key) => key !== 'sandbox'))
    const shown = Object.fromEntries(values.map(({ key, value, origin }) => [key, [value, origin]]))
    expect(shown['github_token']).toEqual(['<redacted>', 'file'])
    expect(shown['state_dir']).toEqual([rig.path('s'), 'file'])
    expect(shown['log_path']).toEqual([rig.path('s', 'processor.log'), 'default'])
    expect(shown['watched_repos']).toEqual([[], 'file'])
    expect(shown['dry_run']).toEqual([true, 'environment'])
    expect(shown['poll_interval_seconds']).toEqual([120, 'default'])
    expect(JSON.stringify(values)).not.toContain(secret)
  })
})
