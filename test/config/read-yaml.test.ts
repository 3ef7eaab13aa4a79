import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { inspectConfig, type LoadedConfig, loadConfig } from '../../daemon/config/load-config.ts'
import { asFault, type Fault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { CONFIG_FILES, type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'
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

describe('what is no configuration', () => {
  test.each([
    '',
    '# only a comment\n',
    '- a\n- b\n',
    'just text\n',
    'caduceus:\n',
    'caduceus: [a]\n',
  ])('a file that is empty or no mapping (%j) is one problem', (text) => {
    rig.write(STANDALONE, text)
    const inspection = inspectConfig(CONFIG_FILES, rig.env())
    expect(problemsOf(inspection)).toEqual([
      expect.objectContaining({ path: '(document)', wanted: 'a mapping of keys to values' }),
    ])
  })

  const DEEPER_LINES = Array.from({ length: 1400 }, (_, depth) => `${' '.repeat(depth)}a:`).join(
    '\n',
  )
  const token = ['gh', 'p_', 'a'.repeat(36)].join('')
  test.each([
    ['bytes that are not UTF-8', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]), /UTF-8/],
    ['UTF-16', Buffer.from('\uFEFFwatched_repos: []\n', 'utf16le'), /UTF-8/],
    ['malformed YAML', `a: 1\ngithub_token: "${token}\nb: 'x\n`, /line \d+, column \d+/],
    ['a key given twice', 'dry_run: true\ndry_run: false\n', /line 2, column 1/],
    ['two documents', 'dry_run: true\n---\ndry_run: false\n', /line 2/],
    ['a file that is too large', '#'.repeat(LIMITS.configurationBytes + 1), /too large/],
    ['lists without end', '['.repeat(200_000), /nested more than 100 levels/],
    ['mappings without end', '{a: '.repeat(200_000), /nested more than 100 levels/],
    ['list items without end', '- '.repeat(200_000), /nested more than 100 levels/],
    ['ever deeper lines', DEEPER_LINES, /nested more than 100 levels/],
    ['an unknown alias', 'watched_repos: *nobody\n', /./],
    [
      'aliases that expand without measure',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f']
        .map((name, index) => {
          const before = String.fromCharCode(name.charCodeAt(0) - 1)
          return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(',')}]${index < 4 ? '' : '\n'}`
        })
        .join('\n')}`,
      /alias/,
    ],
  ])('%s is told clearly', (_, content, reason) => {
    const path = rig.write(STANDALONE, content)
    const found = faultOf()
    expect(found.code).toBe('config/unreadable')
    expect(detailsOf(found)['path']).toBe(path)
    expect(String(detailsOf(found)['reason'])).toMatch(reason)
    expect(found.message + JSON.stringify(found.details)).not.toContain(token)
  })

  test('a byte order mark and keys that are lists do no harm', () => {
    rig.write(STANDALONE, `\uFEFF${OURS}? [a, b]\n: 1\n`)
    expect(load().warnings).toHaveLength(1)
  })
})
