// Answers of the API before they are put into HTTP. Wording and shape of errors are GitHub's own.

/** `body: undefined` = no body at all. */
export type Reply = Readonly<{
  status: number
  body?: unknown
  headers?: Readonly<Record<string, string>>
}>

const DOCS = 'https://docs.github.com/rest'

const error = (
  status: number,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
): Reply => ({
  status,
  body: { message, ...more, documentation_url: DOCS, status: String(status) },
})

export const ok = (body: unknown): Reply => ({ status: 200, body })

export const created = (body: unknown, url: string): Reply => ({
  status: 201,
  body,
  headers: { Location: url },
})

export const noContent = (): Reply => ({ status: 204 })

export const badRequest = (message: string): Reply => error(400, message)

export const badCredentials = (): Reply => error(401, 'Bad credentials')

export const requiresAuthentication = (): Reply => error(401, 'Requires authentication')

/** @param permission what the token lacks, as GitHub's header names it: `issues=write` */
export const notAccessible = (permission: string): Reply => ({
  ...error(403, 'Resource not accessible by personal access token'),
  headers: { 'X-Accepted-GitHub-Permissions': permission },
})

export const forbidden = (message: string): Reply => error(403, message)

export const notFound = (message = 'Not Found'): Reply => error(404, message)

export const notAllowed = (message: string): Reply => error(405, message)

export const gone = (message: string): Reply => error(410, message)

export const tooLarge = (): Reply => error(413, 'Payload too large')

/** GitHub keeps the method of a write with 307 and calls both "Moved Permanently". */
export const moved = (method: string, url: string): Reply => ({
  status: method === 'GET' || method === 'HEAD' ? 301 : 307,
  body: { message: 'Moved Permanently', url, documentation_url: `${DOCS}/#http-redirects` },
  headers: { Location: url },
})

export type FieldProblem = Readonly<{
  resource: string
  code: string
  field?: string
  message?: string
}>

export const invalid = (...errors: readonly FieldProblem[]): Reply =>
  error(422, 'Validation Failed', { errors })

export const rateLimited = (accountId: number | null): Reply =>
  error(
    403,
    accountId === null
      ? 'API rate limit exceeded for 127.0.0.1.'
      : `API rate limit exceeded for user ID ${accountId}.`,
  )

export const secondaryLimited = (status: 403 | 429): Reply =>
  error(
    status,
    'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
  )
