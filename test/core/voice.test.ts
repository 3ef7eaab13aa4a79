import { describe, expect, test } from '@jest/globals'
import {
  characters,
  checkVoice,
  type OutgoingText,
  shortenCharacters,
} from '../../daemon/core/voice.ts'

const outgoing = (text: string, change: Partial<OutgoingText> = {}): OutgoingText => ({
  where: 'comment',
  text,
  limit: 1000,
  unit: 'characters',
  ...change,
})

describe('the public-voice rule', () => {
  test.each([
    ['in another case', 'By OpenCode.', 'opencode', 'opencode'],
    ['inside a longer word', 'Thermesophily', 'Hermes', 'hermes'],
    ['in full-width letters', 'Ｈermes', 'hermes', 'hermes'],
    ['as a ligature', 'oﬀer', 'OFFER', 'offer'],
    ['composed where the text is not', 'cafe\u0301', 'caf\u00E9', 'caf\u00E9'],
    ['with spaces of its own', 'a the bot b', 'THE BOT', 'the bot'],
    ['across lines', 'a\nb', 'a\nb', 'a\nb'],
  ])('a term is found %s, and reported in lower case', (_, text, term, word) => {
    expect(checkVoice([outgoing(text)], [term])).toEqual({
      kind: 'forbidden',
      where: 'comment',
      word,
    })
  })

  test('blank terms forbid nothing, and an empty list neither', () => {
    const text = outgoing('any  text \t here')
    expect(checkVoice([text], ['', ' ', '\t', '\u3000'])).toEqual({ kind: 'fine' })
    expect(checkVoice([text], [])).toEqual({ kind: 'fine' })
  })

  test('the first listed term of the first bad text is named', () => {
    const texts = [outgoing('fine'), outgoing('b a', { where: 'title' }), outgoing('c')]
    expect(checkVoice(texts, ['c', 'a', 'b'])).toEqual({
      kind: 'forbidden',
      where: 'title',
      word: 'a',
    })
  })

  test('a forbidden term in the last text outranks a length in the first', () => {
    const texts = [outgoing('too long', { limit: 3 }), outgoing('bad')]
    expect(checkVoice(texts, ['bad'])).toMatchObject({ kind: 'forbidden' })
  })

  test.each<[string, string, number, OutgoingText['unit']]>([
    ['letters', 'x'.repeat(256), 256, 'characters'],
    ['256 emoji outside the basic plane', '🤖'.repeat(256), 256, 'characters'],
    ['bytes of letters', 'x'.repeat(300), 300, 'bytes'],
    ['bytes of others', 'é🤖'.repeat(10), 60, 'bytes'],
  ])('exactly at the limit is fine, one more is not: %s', (_, text, limit, unit) => {
    expect(checkVoice([outgoing(text, { limit, unit })], [])).toEqual({ kind: 'fine' })
    expect(checkVoice([outgoing(`${text}x`, { limit, unit })], [])).toEqual({
      kind: 'too-long',
      where: 'comment',
      found: limit + 1,
      limit,
      unit,
    })
  })
})

describe('counting and shortening', () => {
  test('what fits stays; what does not ends with an ellipsis within the limit', () => {
    expect(shortenCharacters('🤖'.repeat(256), 256)).toBe('🤖'.repeat(256))
    const cut = shortenCharacters('🤖'.repeat(257), 256)
    expect(cut).toBe(`${'🤖'.repeat(255)}…`)
    expect(characters(cut)).toBe(256)
  })
})
