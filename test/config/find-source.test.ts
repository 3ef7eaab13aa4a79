import { mkdirSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { HERMES_KEYS } from '../../daemon/config/find-source.ts'
import { inspectConfig, type LoadedConfig, loadConfig } from '../../daemon/config/load-config.ts'
import { asFault, type Fault } from '../../daemon/core/fault.ts'
import { CONFIG_FILES, type ConfigRig, makeConfigRig } from '../support/config-rig.ts'
import { detailsOf } from '../support/faults.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

const STANDALONE = '.config/caduceus/config.yaml'
const OURS = 'watched_repos: [octocat/hello]\nworker_command: /bridge\n'

const load = (env: Readonly<Record<string, string>> = {}): LoadedConfig =>
  loadConfig(CONFIG_FILES, rig.env(env))

function faultOf(env: Readonly<Record<string, string>> = {}): Fault {
  try {
    load(env)
  } catch (error) {
    return asFault(error)
  }
  expect('a fault').toBe('thrown')
  return asFault(null)
}

describe('where the configuration is found', () => {
  test('CADUCEUS_CONFIG decides over the other places', () => {
    const path = rig.write('my own.yaml', OURS)
    rig.write(STANDALONE, OURS)
    expect(load({ CADUCEUS_CONFIG: path }).source).toEqual({ path, section: null })
    expect(load({ CADUCEUS_CONFIG: '~/my own.yaml' }).source.path).toBe(path)
  })

  test('CADUCEUS_CONFIG naming no file is fatal even when other sources exist', () => {
    rig.write(STANDALONE, OURS)
    const missing = faultOf({ CADUCEUS_CONFIG: rig.path('none.yaml') })
    expect(missing.code).toBe('config/unreadable')
    expect(missing.message).toContain('none.yaml')
    expect(detailsOf(faultOf({ CADUCEUS_CONFIG: rig.home }))['reason']).toBe('not a regular file')
    expect(faultOf({ CADUCEUS_CONFIG: '' }).code).toBe('config/environment')
  })

  test('the section of the Hermes configuration comes before the standalone file', () => {
    const path = rig.write('hermes/config.yaml', 'model: m\ncaduceus:\n  dry_run: true\n')
    rig.write(STANDALONE, OURS)
    const loaded = load({ HERMES_HOME: rig.path('hermes') })
    expect(loaded.source).toEqual({ path, section: 'caduceus' })
    expect(loaded.config.dryRun).toBe(true)
  })

  test('other keys beside the section are nobody’s business', () => {
    rig.write('hermes/config.yaml', 'anything: {at: all}\ncaduceus: {watched_repos: [a/b]}\n')
    expect(load({ HERMES_HOME: rig.path('hermes') }).warnings).toEqual([])
  })

  test.each(HERMES_KEYS)(
    'a Hermes file (%s) without our section falls through if it can',
    (key) => {
      const hermes = rig.write('hermes/config.yaml', `${key}: x\nwatched_repos: [a/b]\n`)
      const env = { HERMES_HOME: rig.path('hermes') }
      const missing = faultOf(env)
      expect(missing.code).toBe('config/no-section')
      expect(missing.message).toContain('"caduceus:"')
      expect(missing.message).toContain(hermes)
      const path = rig.write(STANDALONE, OURS)
      expect(load(env).source).toEqual({ path, section: null })
    },
  )

  test.each(['', '# nothing yet\n', 'display: dark\n', '- a list\n'])(
    'a Hermes file that holds nothing of ours (%j) falls through',
    (text) => {
      rig.write('hermes/config.yaml', text)
      const path = rig.write(STANDALONE, OURS)
      expect(load({ HERMES_HOME: rig.path('hermes') }).source.path).toBe(path)
    },
  )

  test('without a Hermes file the standalone one is used', () => {
    const path = rig.write(STANDALONE, `caduceus:\n  ${OURS.replace('\n', '\n  ')}`)
    const loaded = load({ HERMES_HOME: rig.path('hermes') })
    expect(loaded.source).toEqual({ path, section: 'caduceus' })
  })

  test('a standalone file of Hermes’s shape names the missing section', () => {
    rig.write(STANDALONE, 'model: m\n')
    expect(faultOf().code).toBe('config/no-section')
  })

  test('HERMES_HOME empty or relative is an error, whatever else is there', () => {
    const CADUCEUS_CONFIG = rig.write('own.yaml', OURS)
    rig.write(STANDALONE, OURS)
    for (const HERMES_HOME of ['', 'relative/path', '~/hermes']) {
      const found = faultOf({ HERMES_HOME, CADUCEUS_CONFIG })
      expect(found.code).toBe('config/environment')
      expect(detailsOf(found)['name']).toBe('HERMES_HOME')
    }
  })

  test('when there is none, the places that were looked at are named', () => {
    const found = faultOf({ HERMES_HOME: rig.path('hermes') })
    expect(found.code).toBe('config/not-found')
    expect(found.message).toContain(rig.path('hermes', 'config.yaml'))
    expect(found.message).toContain(rig.path(STANDALONE))
    expect(inspectConfig(CONFIG_FILES, {}).kind).toBe('invalid')
  })

  test('a configuration linked into place is read where it lies', () => {
    const path = rig.write('dotfiles/caduceus.yaml', OURS)
    mkdirSync(rig.path('.config/caduceus'), { recursive: true })
    symlinkSync(path, rig.path(STANDALONE))
    expect(load().source.path).toBe(rig.path(STANDALONE))
  })
})
