import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import { QUIET, refusalOf } from '../support/refusal.ts'

let rig: ProgramRig

afterEach(async () => {
  await rig.close()
})

describe('what do stored files do that cannot be used?', () => {
  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
    await rig.tick()
  })

  const FILES = ['queue', 'meta'] as const
  const DIAGNOSTICS = { queue: 'corrupt_queue', meta: 'corrupt_state' } as const

  test.each(FILES)(
    'a truncated %s is refused and left as it is; its bytes are kept once',
    async (file) => {
      const path = rig.layout[file]
      const bytes = readFileSync(path).subarray(0, 40)
      writeFileSync(path, bytes)
      const status = await rig.run('status')
      expect(status).toMatchObject({ code: 1, stderr: '' })
      expect(status.stdout).toContain(`${path} is not readable as state: it is not valid JSON.`)
      expect(copiesOf(path)).toEqual([])

      const refusal = await refusalOf(rig, 'run')
      const [copy = ''] = copiesOf(path)
      expect(refusal).toBe(
        `${path} is not readable as state: it is not valid JSON. Its bytes were kept as ${copy}. Restore the file from a backup, or move it away to begin with an empty state.`,
      )
      expect(await refusalOf(rig, 'run')).toBe(refusal)
      expect(copiesOf(path)).toEqual([copy])
      for (const kept of [path, copy]) expect(readFileSync(kept)).toEqual(bytes)

      const json = await rig.run('status', '--json')
      expect(json.code).toBe(1)
      expect(JSON.parse(json.stdout)).toMatchObject({
        diagnostic: DIAGNOSTICS[file],
        message: expect.stringContaining(copy),
        report: null,
      })
    },
  )

  test.each(FILES)(
    'a %s of another format is not taken for corrupt, nor for empty',
    async (file) => {
      const path = rig.layout[file]
      const good = readFileSync(path, 'utf8')
      const [, known] = /"version":(\d+)/.exec(good) ?? []
      const others = [
        [
          '{"version":1,"entries":{}}',
          `${path} has format 1, written by the original implementation. Use another state_dir`,
        ],
        [
          good.replace(/"version":\d+/, '"version":999'),
          `${path} has format 999; this version knows ${known}. Install the newer version that wrote it.`,
        ],
      ] as const
      for (const [text, message] of others) {
        writeFileSync(path, text)
        for (const command of ['run', 'status'])
          expect(await refusalOf(rig, command)).toContain(message)
        const json = await rig.run('status', '--json')
        expect(json.code).toBe(1)
        expect(JSON.parse(json.stdout)).toMatchObject({
          error: { message: message.slice(0, message.lastIndexOf('. ') + 1) },
        })
        expect(readFileSync(path, 'utf8')).toBe(text)
        expect(copiesOf(path)).toEqual([])
      }
      writeFileSync(path, good)
      expect(await rig.tick()).toEqual(QUIET)
    },
  )

  const copiesOf = (path: string): readonly string[] =>
    readdirSync(rig.layout.stateDir)
      .map((name) => join(rig.layout.stateDir, name))
      .filter((other) => other.startsWith(`${path}.corrupt-`))
})
