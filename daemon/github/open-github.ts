// GitHub over its REST API: the one adapter of the GitHub port (design §10). connection.ts is what every
// request goes through; reads.ts and writes.ts are the operations; map-answer.ts turns answers into our types.

import { fault } from '../core/fault.ts'
import type { GitHub } from '../core/ports.ts'
import type { RepositoryLabels } from '../core/repository-labels.ts'
import { type ConnectionDeps, type ConnectionOptions, openConnection } from './connection.ts'
import { openEtagCache } from './etag-cache.ts'
import { openRequestBuilder } from './http-request.ts'
import { cachedPageReader, pageReader } from './read-pages.ts'
import { issueReads, type ReadOutcome, repositoryReads } from './reads.ts'
import { writes } from './writes.ts'

export type GitHubDeps = ConnectionDeps

export type GitHubOptions = ConnectionOptions &
  Readonly<{
    /** `api_base`, already checked against the allow-list (R§2.7). */
    apiBase: string
    /** Of this program. */
    version: string
    /** `discovery_max_pages`, for every list. */
    maxPages: number
    /** Kept answers; made when needed, may be removed at any time. */
    cacheDirectory: string
  }>

/**
 * Opens GitHub without a request: the token is asked for at the first one.
 * Faults: config/invalid when the base is not a URL or holds credentials.
 */
export function openGitHub(deps: GitHubDeps, options: GitHubOptions): GitHub & RepositoryLabels {
  const apiBase = checkedBase(options.apiBase)
  const connection = openConnection(deps, options)
  const build = openRequestBuilder(apiBase, options.version)
  const reading: ReadOutcome = {
    build,
    read: pageReader(connection),
    readCached: cachedPageReader(connection, openEtagCache(deps, options.cacheDirectory)),
    bounds: { maxPages: options.maxPages, apiBase },
  }
  return {
    ...repositoryReads(reading),
    ...issueReads(reading),
    ...writes({ connection, build }),
    serverTime: connection.serverTime,
  }
}

function checkedBase(apiBase: string): string {
  const url = URL.canParse(apiBase) ? new URL(apiBase) : null
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === ''
  if (isPlain && url.hash === '' && url.protocol.startsWith('http')) return url.href
  // The value itself is not told: it may hold credentials.
  const problems = 'api_base is not a plain URL without credentials, query and fragment'
  throw fault('config/invalid', { path: '', count: 1, problems })
}
