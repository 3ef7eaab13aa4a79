import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { CONFIG_KEYS } from '../../daemon/config/schema.ts'

describe('are generated pages up to date', () => {
  const ROOT = join(import.meta.dirname, '..', '..')

  function generate(...options: string[]): { code: number | null; output: string } {
    const done = spawnSync(process.execPath, ['scripts/generate.mjs', ...options], {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { code: done.status, output: done.stdout + done.stderr }
  }

  test('what is committed is what the sources give', () => {
    expect(generate('--check')).toEqual({ code: 0, output: '' })
  })

  test('a stale or missing file is named, and written on demand, twice the same', () => {
    const root = mkdtempSync(join(tmpdir(), 'generated-'))
    try {
      const before = generate('--check', '--root', root)
      expect(before.code).toBe(1)
      expect(before.output).toContain('docs/configuration.md')
      expect(generate('--root', root).code).toBe(0)
      expect(generate('--check', '--root', root)).toEqual({ code: 0, output: '' })
      const page = 'docs/configuration.md'
      expect(readFileSync(join(root, page), 'utf8')).toBe(readFileSync(join(ROOT, page), 'utf8'))
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  test('the page shows every key', () => {
    const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')
    for (const key of CONFIG_KEYS) expect(page).toMatch(new RegExp(`\\| \`${key}[\`.]`))
  })
})
