// Whether the URL of a remote is a given repository on a given GitHub. Pure; strict on purpose: git,
// curl and ssh disagree about odd URLs, and whatever they could read differently proves nothing.

import { formatRepository, type RepositoryName, repositoryId } from '../core/issue-key.ts'
import { looksLikeGithubToken } from '../core/redaction.ts'
import type { Setting } from './profile.ts'

/** A remote's URL, taken apart. `host` is null for a path on this machine. */
type Remote = Readonly<{ scheme: string; host: string | null; segments: readonly string[] }>

/** Where repositories of an API live. */
type Location = Readonly<{
  /** Whether any URL or path will do whose last two segments are the repository (tests, demo; design §8). */
  isLoopback: boolean
  hosts: readonly string[]
  allowsPlainHttp: boolean
  /** `https://github.com`, without a final slash. */
  webBase: string
}>

const PUBLIC_API_HOST = 'api.github.com'
/** The second one carries ssh on port 443 (GitHub docs, "Using SSH over the HTTPS port"). */
const PUBLIC_HOSTS = ['github.com', 'ssh.github.com'] as const
const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
/** GitHub with data residency: the API of TENANT.ghe.com is api.TENANT.ghe.com. */
const TENANT_API = /^api\.([a-z0-9-]+\.ghe\.com)$/

const NETWORK_SCHEMES: ReadonlySet<string> = new Set([
  'https',
  'http',
  'ssh',
  'git',
  'git+ssh',
  'ssh+git',
])

/** Printable ASCII without backslash, query or fragment. */
const PLAIN = /^[!"$->@-[\]-~]+$/
const URL_FORM = /^([a-z][a-z0-9+-]*):\/\/([^/]*)(\/.*)?$/i
const AUTHORITY = /^(?:[^@]*@)?([A-Za-z0-9.-]+)(?::[0-9]{1,5})?$/
const SCP_FORM = /^(?:[^@/:]+@)?([A-Za-z0-9.-]+):(?!\/\/)(.*)$/

/**
 * Whether a remote URL is the repository, on the GitHub that the API base belongs to (R§6.1,
 * design §8). Case of owner and name is ignored; user and port may be there.
 */
export function provesRepository(
  url: string,
  repository: RepositoryName,
  apiBase: string,
): boolean {
  const place = locationOf(apiBase)
  const remote = place.isLoopback ? parseAnyRemote(url) : parseRemote(url)
  if (remote === null || !endsInRepository(remote.segments, repository)) return false
  if (place.isLoopback) return true
  if (remote.host === null || remote.segments.length !== 2) return false
  if (remote.scheme === 'http' && !place.allowsPlainHttp) return false
  return NETWORK_SCHEMES.has(remote.scheme) && place.hosts.includes(remote.host)
}

/**
 * What git makes of the URL of `origin` by url.<base>.insteadOf and, for a push to a URL that was not
 * written for pushing, pushInsteadOf: of all beginnings that match, the longest counts (git-config(1)).
 */
export function rewriteUrl(settings: readonly Setting[], url: string, isPush: boolean): string {
  const isWritten = settings.some(([key]) => key === 'remote.origin.pushurl')
  const forPush = isPush && !isWritten ? replaceBeginning(settings, url, '.pushinsteadof') : null
  return forPush ?? replaceBeginning(settings, url, '.insteadof') ?? url
}

function replaceBeginning(
  settings: readonly Setting[],
  url: string,
  ending: string,
): string | null {
  const [longest] = settings
    .filter(([key, from]) => key.startsWith('url.') && key.endsWith(ending) && url.startsWith(from))
    .sort(([, a], [, b]) => b.length - a.length)
  if (longest === undefined) return null
  const [key, from] = longest
  return key.slice('url.'.length, -ending.length) + url.slice(from.length)
}

/** The URL to clone a repository from, as shown to the operator. */
export function cloneUrl(repository: RepositoryName, apiBase: string): string {
  return `${locationOf(apiBase).webBase}/${formatRepository(repository)}.git`
}

/** The host an origin must have, as shown to the operator. */
export function originHost(apiBase: string): string {
  return locationOf(apiBase).hosts[0] ?? 'this machine'
}

/** A remote URL for people: without user, password, query, and bounded. */
export function showUrl(url: string): string {
  const shown = url
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')
    .replace(/[?#].*$/s, '')
    .replaceAll(/[^ -~]/g, '?')
  return shown.length > 200 ? `${shown.slice(0, 200)}…` : shown
}

/** A web URL without its credentials, and the header that carries them instead; null = there are none. */
type SplitUrl = Readonly<{ url: string; header: string | null; secret: string | null }>

/**
 * Takes a password, or a token in place of a user, out of a web URL: git hands the URL to its helper
 * as an argument, which everybody on the machine can read. A mere user name stays, since it selects
 * the stored credential.
 */
export function splitCredentials(url: string): SplitUrl {
  const [, scheme, userPart, rest] = /^(https?:\/\/)([^/@]*)@(.*)$/is.exec(url) ?? []
  if (scheme === undefined || userPart === undefined) return { url, header: null, secret: null }
  const [user = '', ...others] = userPart.split(':')
  const password = others.join(':')
  const secret = password === '' && looksLikeGithubToken(user) ? user : password
  if (secret === '') return { url, header: null, secret: null }
  const pair = `${decodePercent(user)}:${decodePercent(password)}`
  const header = `Authorization: Basic ${Buffer.from(pair).toString('base64')}`
  return { url: `${scheme}${rest}`, header, secret }
}

function locationOf(apiBase: string): Location {
  const url = new URL(apiBase)
  const isLoopback = LOOPBACK_HOSTS.includes(url.hostname)
  const host = url.hostname === PUBLIC_API_HOST ? 'github.com' : tenantHost(url.hostname)
  return {
    isLoopback,
    hosts: host === 'github.com' ? PUBLIC_HOSTS : [host],
    allowsPlainHttp: url.protocol === 'http:',
    webBase: isLoopback ? url.origin : `https://${host}${url.port === '' ? '' : `:${url.port}`}`,
  }
}

function tenantHost(apiHost: string): string {
  return TENANT_API.exec(apiHost)?.[1] ?? apiHost
}

function parseRemote(url: string): Remote | null {
  if (!PLAIN.test(url)) return null
  const [, scheme, authority, path] = URL_FORM.exec(url) ?? []
  if (scheme !== undefined && authority !== undefined) {
    const host = AUTHORITY.exec(authority)?.[1]
    return host === undefined ? null : remote(scheme, host, path ?? '')
  }
  const [, host, scpPath] = SCP_FORM.exec(url) ?? []
  return host === undefined || scpPath === undefined ? null : remote('ssh', host, scpPath)
}

/** Only the end of the path counts. */
function parseAnyRemote(url: string): Remote | null {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').replace(/^[^/:]+:/, '')
  return { scheme: 'any', host: null, segments: pathSegments(path) }
}

function remote(scheme: string, host: string, path: string): Remote {
  const segments = pathSegments(path)
  return { scheme: scheme.toLowerCase(), host: host.toLowerCase(), segments }
}

function pathSegments(path: string): readonly string[] {
  return path.replace(/^\//, '').replace(/\/$/, '').split('/')
}

function endsInRepository(segments: readonly string[], repository: RepositoryName): boolean {
  const [owner, name] = segments.slice(-2)
  if (owner === undefined || name === undefined) return false
  const bare = name.replace(/\.git$/i, '')
  return `${owner}/${bare}`.toLowerCase() === repositoryId(repository)
}

/** A stray percent sign is taken as it is. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
