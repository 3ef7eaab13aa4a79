import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('what the environment overrides', () => {
  test.each([
    ['1', true],
    ['TRUE', true],
    ['yes', true],
    ['0', false],
    ['False', false],
    ['NO', false],
  ])(
    'CADUCEUS_DRY_RUN=%s sets dry_run to %s, whatever the file says',
    (CADUCEUS_DRY_RUN, wanted) => {
      for (const dry_run of [true, false]) {
        const inspection = rig.inspect({ worker_command: '/b', dry_run }, { CADUCEUS_DRY_RUN })
        expect(inspection.kind === 'valid' && inspection.loaded.config.dryRun).toBe(wanted)
      }
    },
  )

  test('CADUCEUS_DRY_RUN=maybe is reported together with everything else', () => {
    for (const CADUCEUS_DRY_RUN of ['maybe', '', 'constructor']) {
      const inspection = rig.inspect({ watched_repos: ['x'] }, { CADUCEUS_DRY_RUN })
      expect(problemsOf(inspection).map(({ path }) => path)).toEqual([
        'watched_repos[0]',
        'worker_command',
        'CADUCEUS_DRY_RUN',
      ])
    }
  })

  test('no other key is overridden', () => {
    const env = { CADUCEUS_POLL_INTERVAL_SECONDS: '5', CADUCEUS_STATE_DIR: '/elsewhere' }
    const inspection = rig.inspect({ worker_command: '/b' }, env)
    const config = inspection.kind === 'valid' ? inspection.loaded.config : null
    expect(config?.pollIntervalSeconds).toBe(120)
    expect(config?.stateDir).toBe(rig.path('.hermes', 'caduceus-state'))
  })
})
