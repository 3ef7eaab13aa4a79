// What is kept of the operator's git settings while a worker runs, who may write every file they come from.
// Where to go and what to run is kept as it was. Secrets are never copied: each is read anew from where it
// was, which also lets the operator rotate it, and counts only where all around it is as it was. What a
// shell could take for more than a word is no secret in this sense, but a part of its command.

import type { CapturedRemote, TextParts } from '../core/journal.ts'
import { looksLikeGithubToken } from '../core/redaction.ts'
import type { Setting } from './profile.ts'

/** Settings to call git with, and what of them must not be shown. */
export type ReadableSettings = Readonly<{
  settings: readonly Setting[]
  secrets: readonly string[]
}>

/** The settings without their secrets, to be kept. Pure. */
export function captureRemote(clonePath: string, settings: readonly Setting[]): CapturedRemote {
  const kept = settings.map((setting) => {
    const { key, value } = takeApart(setting)
    return { key: key.parts, value: value.parts }
  })
  return { clonePath, settings: kept }
}

/** Whether anything has to be read anew. Pure. */
export function lacksSecrets({ settings }: CapturedRemote): boolean {
  return settings.some(isIncomplete)
}

/**
 * The captured settings, with the secrets that stand in their places now. One whose surroundings are not
 * the same any more is left out: the address then has no password, the header is not sent. Pure.
 * @param current as git reads them now; whoever wrote them decides nothing but the secrets
 */
export function withSecrets(
  { settings }: CapturedRemote,
  current: readonly Setting[],
): ReadableSettings {
  const found = new Map<string, Setting[]>()
  for (const setting of current) {
    const { key, value } = takeApart(setting)
    if (!key.isHarmless || !value.isHarmless) continue
    const place = locationOf(key.parts, value.parts)
    const same = found.get(place) ?? []
    same.push(setting)
    found.set(place, same)
  }
  const whole = settings.flatMap((kept): readonly Setting[] => {
    const name = kept.key.join('')
    if (!isIncomplete(kept)) return [[name, kept.value.join('')]]
    const same = found.get(locationOf(kept.key, kept.value))?.shift()
    if (same !== undefined) return [same]
    // Sent without a value, a header would take away the one that git makes itself.
    return HEADER_KEY.test(name) ? [] : [[name, kept.value.join('')]]
  })
  return { settings: whole, secrets: secretsIn(whole) }
}

/** What is secret in settings: to be masked in what git says. Pure. */
export function secretsIn(settings: readonly Setting[]): readonly string[] {
  return settings.flatMap((setting) => {
    const { key, value } = takeApart(setting)
    return [...key.secrets, ...value.secrets].flatMap((secret) => {
      const pair = secret.replace(/@$/, '').trim()
      return [pair, pair.replace(/^.*[ :]/, '')]
    })
  })
}

function isIncomplete({ key, value }: CapturedRemote['settings'][number]): boolean {
  return key.length > 1 || value.length > 1
}

function locationOf(key: TextParts, value: TextParts): string {
  return JSON.stringify([key, value])
}

/** A text cut where secrets stand in it. */
type Cut = Readonly<{
  parts: TextParts
  secrets: readonly string[]
  /** The secrets cannot lead anywhere or run anything, whoever wrote them. */
  isHarmless: boolean
}>

function takeApart([key, value]: Setting): Readonly<{ key: Cut; value: Cut }> {
  const kind = VALUE_KINDS.find((each) => each.keys.test(key)) ?? COMMAND
  return { key: cut(KEY, key), value: cut(kind, value) }
}

function cut(kind: Kind, text: string): Cut {
  const parts: string[] = []
  const secrets: string[] = []
  let from = 0
  let isHarmless = true
  for (const { start, end } of secretLocations(kind, text)) {
    const before = text.slice(from, start)
    const secret = text.slice(start, end)
    parts.push(before)
    secrets.push(secret)
    isHarmless &&= kind.harmless(secret, before)
    from = end
  }
  return { parts: [...parts, text.slice(from)], secrets, isHarmless }
}

type Span = Readonly<{ start: number; end: number }>

/** In order, those that touch joined. */
function secretLocations(kind: Kind, text: string): readonly Span[] {
  const found = kind.places
    .flatMap((place) => [...text.matchAll(place)])
    .filter(([match]) => !match.endsWith('@') || isSecretUser(match.slice(0, -1)))
    .map(({ 0: match, index }) => ({ start: index, end: index + match.length }))
    .sort((a, b) => a.start - b.start)
  const joined: Span[] = []
  for (const span of found) {
    const last = joined.at(-1)
    if (last === undefined || span.start > last.end) joined.push(span)
    else joined.splice(-1, 1, { start: last.start, end: Math.max(last.end, span.end) })
  }
  return joined
}

/** No login of GitHub is longer (39), and no token of it shorter. */
const MIN_TOKEN = 40

/** A mere user name selects a stored credential, and is no secret. */
function isSecretUser(userPart: string): boolean {
  const [user = '', ...password] = userPart.split(':')
  const isToken = user.length >= MIN_TOKEN || looksLikeGithubToken(user)
  return isToken || password.join(':') !== ''
}

/** What a setting says, where secrets stand in such a text, and which of them may come from anybody. */
type Kind = Readonly<{
  places: readonly RegExp[]
  harmless: (secret: string, before: string) => boolean
}>

/** Up to the last @ before the path, so that no reader of URLs finds the end of a password outside. */
const USERINFO = /(?<=:\/\/)[^\s/?#'"]*@/g
/** Where the text is a URL and nothing else; a proxy may be written without a scheme. */
const URL_USERINFO = /(?<=^[a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi
const LEADING_USERINFO = /^[^\s/]*@/g
const TOKEN = /gh[pousr]_[\w.-]{20,}|github_pat_\w{20,}/g
/** After the name of the header. */
const HEADER_VALUE = /(?<=^[^:]*:).+$|^[^:;]+$/gs
const HEADER_KEY = /\.extraheader$/

/**
 * In a command only words that a shell takes for nothing but themselves. Others are a part of it, and kept:
 * were they read anew, whoever writes them could run something.
 */
const COMMAND_USERINFO = /(?<=:\/\/)[\w.,:%+=~!^-]*@/g
/** As helpers print it (git-credential(1)). */
const PRINTED = /(?<=password=)[\w.,:%+=/~!@^#-]{1,500}(?![^\s'";])/gi

/** With a second @, or a backslash, some readers would take what follows for the host. */
const PLAIN_USERINFO = /^[^\p{Cc}\s@\\/?#]*@$/u
const PLAIN_WORD = /^[\w.,:%+=/~!^#-]*@?$/
const ONE_LINE = /^\P{Cc}*$/u
/** Git itself goes there, and hands it to no other program. */
const WEB = /^(?:(?:\w+\.)?(?:https?|socks\w*):\/\/)?$/i

const isPlainUser: Kind['harmless'] = (secret, before) =>
  (WEB.test(before) ? PLAIN_USERINFO : PLAIN_WORD).test(secret)

/** Of a key: it may hold a URL. */
const KEY: Kind = { places: [USERINFO, TOKEN], harmless: isPlainUser }

/** Whatever is not one of the kinds below may be a program or a shell command. */
const COMMAND: Kind = { places: [COMMAND_USERINFO, TOKEN, PRINTED], harmless: () => true }

const VALUE_KINDS = [
  { keys: HEADER_KEY, places: [HEADER_VALUE], harmless: (secret) => ONE_LINE.test(secret) },
  {
    keys: /^(?:http|remote)\..*proxy$/,
    places: [USERINFO, URL_USERINFO, LEADING_USERINFO],
    harmless: isPlainUser,
  },
  {
    keys: /^remote\.origin\.(?:url|pushurl)$|insteadof$/,
    places: [USERINFO, URL_USERINFO],
    harmless: isPlainUser,
  },
] as const satisfies readonly (Kind & Readonly<{ keys: RegExp }>)[]
