import { NOT_SHOWN, type Parsed } from './problem.ts'

/** The REST interface in use, and what goes with it. */
export type ApiBase = Readonly<{
  kind: 'github.com' | 'enterprise' | 'loopback'
  /** Without a slash at the end. */
  url: string
  /** The server of repositories and of `gh`: name, with the port if it is not the usual one. */
  gitServer: string
}>

const PUBLIC_API = 'api.github.com'
const ENTERPRISE_PATH = '/api/v3'
const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '[::1]']

/** Only these servers ever get the token. What was given is never repeated: it may hold one. */
export function parseApiBase(text: string): Parsed<ApiBase> {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) return refuse('a URL')
  if (url.username !== '' || url.password !== '') return refuse('a URL without a user part')
  if (url.search !== '' || url.hash !== '') return refuse('a URL without query and fragment')
  const path = url.pathname.replace(/\/+$/, '')
  const accept = (kind: ApiBase['kind'], gitServer: string): Parsed<ApiBase> => ({
    value: { kind, url: `${url.origin}${path}`, gitServer },
    problems: [],
  })
  if (url.protocol === 'http:' && LOOPBACK.includes(url.hostname)) {
    return accept('loopback', url.host)
  }
  if (url.protocol !== 'https:') return refuse('https (http only on this machine itself)')
  if (url.hostname === PUBLIC_API) {
    return path === '' && url.port === ''
      ? accept('github.com', 'github.com')
      : refuse(`https://${PUBLIC_API} without a path`)
  }
  return path === ENTERPRISE_PATH || path.startsWith(`${ENTERPRISE_PATH}/`)
    ? accept('enterprise', url.host)
    : refuse(`a path under ${ENTERPRISE_PATH} (GitHub Enterprise Server)`)
}

function refuse(wanted: string): Parsed<ApiBase> {
  const problem = {
    path: 'api_base',
    found: NOT_SHOWN,
    wanted,
    fix: `Write https://${PUBLIC_API} or https://<server>${ENTERPRISE_PATH}.`,
  }
  return {
    value: { kind: 'github.com', url: `https://${PUBLIC_API}`, gitServer: 'github.com' },
    problems: [problem],
  }
}
