import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('which servers get the token', () => {
  const baseOf = (api_base: string): unknown => {
    const inspection = rig.inspect({ worker_command: '/b', api_base })
    return inspection.kind === 'valid' ? inspection.loaded.config.apiBase : null
  }

  test.each([
    ['https://api.github.com', 'github.com', 'https://api.github.com', 'github.com'],
    ['https://api.github.com/', 'github.com', 'https://api.github.com', 'github.com'],
    [
      'https://ghe.example.com/api/v3',
      'enterprise',
      'https://ghe.example.com/api/v3',
      'ghe.example.com',
    ],
    [
      'https://GHE.example.com/api/v3/',
      'enterprise',
      'https://ghe.example.com/api/v3',
      'ghe.example.com',
    ],
    [
      'https://ghe.example.com:8443/api/v3/x',
      'enterprise',
      'https://ghe.example.com:8443/api/v3/x',
      'ghe.example.com:8443',
    ],
    ['http://127.0.0.1:8080', 'loopback', 'http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://localhost:1/any/path/', 'loopback', 'http://localhost:1/any/path', 'localhost:1'],
    ['http://[::1]:8080/api/v3', 'loopback', 'http://[::1]:8080/api/v3', '[::1]:8080'],
  ])('%s is accepted', (text, kind, url, gitServer) => {
    expect(baseOf(text)).toEqual({ kind, url, gitServer })
  })

  test.each([
    'http://api.github.com',
    'http://ghe.example.com/api/v3',
    'https://api.github.com/api/v3',
    'https://api.github.com:8443',
    'https://bitbucket.example.com',
    'https://proxy.example.com/github',
    'https://ghe.example.com/api/v3evil',
    'https://ghe.example.com/x/../api/v4',
    'http://localhost.example.com:80/',
    'http://127.0.0.2:80/',
    'ftp://127.0.0.1/',
    'not a url',
    '',
  ])('%j is refused, and the text is not repeated', (text) => {
    const inspection = rig.inspect({ worker_command: '/b', api_base: text })
    const [problem] = problemsOf(inspection)
    expect(problem?.path).toBe('api_base')
    expect(problem?.found).toBe('a value that is not shown')
  })

  test.each([
    'https://user:PLACE@ghe.example.com/api/v3',
    'https://ghe.example.com/api/v3?t=PLACE',
    'https://ghe.example.com/PLACE#PLACE',
    'PLACE',
  ])('a secret in it (%s) stands in no error', (text) => {
    const secret = 'very-secret-thing'
    const inspection = rig.inspect({
      worker_command: '/b',
      api_base: text.replaceAll('PLACE', secret),
    })
    expect(problemsOf(inspection)).toHaveLength(1)
    const fault = inspection.kind === 'invalid' ? inspection.fault : null
    expect(fault?.message).toContain('api_base')
    expect(JSON.stringify([problemsOf(inspection), fault, fault?.message])).not.toContain(secret)
  })
})
