import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startTranscript, type Transcript } from '../../daemon/supervisor/transcript.ts'

let folder: string
let path: string
let transcript: Transcript | null

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'transcript-'))
  path = join(folder, 'run.log')
  transcript = null
})
afterEach(() => {
  transcript?.close()
  rmSync(folder, { recursive: true, force: true })
})

const content = (): string => readFileSync(path, 'latin1')

function write(maxBytes: number, ...pieces: readonly string[]): Transcript {
  transcript = startTranscript(path, maxBytes)
  for (const piece of pieces) transcript.write(Buffer.from(piece))
  return transcript
}

describe('what is kept of an output', () => {
  test('pieces up to the cap, wherever they meet it', () => {
    expect(write(10, '12345', '67890').finish()).toEqual({ bytes: 10, truncated: false })
    expect(content()).toBe('1234567890')
    transcript?.close()
    write(10, '1234567', '89012', '345').finish()
    expect(content()).toBe('1234567890\n...<truncated 5 bytes>\n')
  })

  test('one marker, however often it is finished', () => {
    const started = write(3, '12345')
    const first = started.finish()
    expect(started.finish()).toEqual(first)
    expect(first).toEqual({ bytes: content().length, truncated: true })
    expect(content()).toBe('123\n...<truncated 2 bytes>\n')
  })

  test('nothing at all is no truncation', () => {
    expect(write(0).finish()).toEqual({ bytes: 0, truncated: false })
  })

  test('room can be made by giving up the end, and the marker counts what was given up', () => {
    const started = write(200_000, 'x'.repeat(100_000))
    started.finish()
    expect(started.makeRoom()).toBe(true)
    expect(started.finish().truncated).toBe(true)
    const kept = 100_000 - 64 * 1024
    expect(content()).toBe(`${'x'.repeat(kept)}\n...<truncated ${64 * 1024} bytes>\n`)
    expect(started.makeRoom()).toBe(true)
    expect(started.makeRoom()).toBe(false)
    started.finish()
    expect(content()).toBe('\n...<truncated 100000 bytes>\n')
  })

  test.each([
    ['a link', () => symlinkSync('/dev/null', path)],
    ['a folder', () => mkdirSync(path)],
  ])('%s in its place is refused', (_, make) => {
    make()
    expect(() => startTranscript(path, 10)).toThrow(expect.objectContaining({ code: 'sys/io' }))
  })
})
