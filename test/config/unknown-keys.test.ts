import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { loadConfig } from '../../daemon/config/load-config.ts'
import {
  CONFIG_FILES,
  type ConfigRig,
  makeConfigRig,
  problemsOf,
  warningsOf,
} from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('unknown keys', () => {
  test.each([
    ['watched_repo', 'watched_repos'],
    ['watchedRepos', 'watched_repos'],
    ['worker-command', 'worker_command'],
    ['wroker_timeout_secs', 'worker_timeout_seconds'],
  ])('%s at the top is ignored with a warning that names %s', (key, nearest) => {
    const inspection = rig.inspect({ watched_repos: ['a/b'], worker_command: '/b', [key]: [] })
    expect(inspection.kind).toBe('valid')
    const [warning] = warningsOf(inspection)
    expect(warning?.path).toBe(key)
    expect(warning?.wanted).toBe(nearest)
    expect(warning?.fix).toContain('ignored')
  })

  test('a key like no other is warned about without a guess, its value unseen', () => {
    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    const inspection = rig.inspect({
      watched_repos: ['a/b'],
      worker_command: '/b',
      xylophone: token,
    })
    expect(warningsOf(inspection)[0]?.wanted).toContain('docs/configuration.md')
    expect(JSON.stringify(inspection)).not.toContain(token)
  })

  test.each([
    'stale_run_hours',
    'scheduler_lease_ttl_seconds',
    'scheduler_anything',
    'worker_lease_ttl_seconds',
    'backpressure_budget_ms',
    'reduced_containment_acknowledged',
  ])('%s was dropped and is warned about as such', (key) => {
    const inspection = rig.inspect({ watched_repos: ['a/b'], worker_command: '/b', [key]: 1 })
    expect(inspection.kind).toBe('valid')
    expect(warningsOf(inspection)[0]?.found).toBe('a key that was dropped')
  })

  test.each(['oci_cli', 'oci_whatever', 'network_profiles', 'secret_grants', 'upgrade_choice'])(
    '%s was removed and is an error',
    (key) => {
      const problems = problemsOf(rig.inspect({ worker_command: '/b', [key]: null }))
      expect(problems.map(({ path }) => path)).toEqual([key])
    },
  )

  test('inside sandbox, at any depth, it is an error that names the nearest', () => {
    const sandbox = { images: 'x', resources: { cpu: 1 } }
    const problems = problemsOf(rig.inspect({ worker_command: '/b', sandbox }))
    expect(problems.map(({ path, wanted }) => [path, wanted])).toEqual([
      ['sandbox.images', 'image'],
      ['sandbox.resources.cpu', 'cpus'],
    ])
  })

  test('names that objects have anyway are unknown keys like others', () => {
    const text =
      'worker_command: /b\nwatched_repos: [a/b]\n__proto__: {dry_run: true}\nconstructor: 1\ntoString: 2\n'
    const env = rig.env({ CADUCEUS_CONFIG: rig.write('own.yaml', text) })
    const loaded = loadConfig(CONFIG_FILES, env)
    expect(loaded.config.dryRun).toBe(false)
    expect(loaded.warnings).toHaveLength(3)
  })
})
