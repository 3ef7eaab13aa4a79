import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { toTimestamp } from '../core/timestamp.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  readFileBounded,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import type { HttpRequest } from './http-request.ts'
import { isJson, textOf } from './map-answer.ts'

// Answers kept over restarts, so that an idle poll is a 304, which costs nothing of the rate limit.
// One file per place that is polled: a line of JSON about the body, then the body. It can be removed at
// any time: whatever is missing or damaged is fetched again, and nothing here fails a request.

type CachedPage = Readonly<{ etag: string; link: string | null; text: string }>

export type EtagCache = Readonly<{
  /** What is kept of this very URL and Accept; null when nothing usable is. */
  load: (request: HttpRequest) => CachedPage | null
  store: (request: HttpRequest, page: CachedPage) => void
  drop: (request: HttpRequest) => void
}>

/** How much is kept; beyond it the longest unchanged goes first. */
type CacheBounds = Readonly<{ files: number; bytes: number }>

const BOUNDS: CacheBounds = { files: LIMITS.httpCacheFiles, bytes: LIMITS.httpCacheBytes }
const STORES_PER_PRUNING = 64
const VERSION = 1
// RFC 9110 §8.8.3, and short.
const ETAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]{0,250}"$/

export function openEtagCache(
  deps: Readonly<{ clock: Clock }>,
  directory: string,
  bounds: CacheBounds = BOUNDS,
): EtagCache {
  let stores = 0
  const pathOf = (request: HttpRequest): string => join(directory, `${slotOf(request)}.page`)

  return {
    load: (request) => quietly(() => loadPage(pathOf(request), request)) ?? null,
    drop: (request) => {
      quietly(() => removeFile(pathOf(request)))
    },
    store: (request, page) => {
      const path = pathOf(request)
      const content = serialise(request, page, deps.clock.now())
      const isTooLarge = Buffer.byteLength(content) > LIMITS.httpCacheFileBytes
      if (isTooLarge || !ETAG.test(page.etag)) {
        quietly(() => removeFile(path))
        return
      }
      quietly(() => {
        ensureDirectory(directory)
        writeFileAtomic(path, content)
        if (stores % STORES_PER_PRUNING === 0) prune(directory, bounds)
        stores += 1
      })
    },
  }
}

/** A cache that cannot be read or written costs a request, never a poll. */
function quietly<T>(run: () => T): T | null {
  try {
    return run()
  } catch {
    return null
  }
}

/**
 * The place a URL belongs to. `since` is left out: it moves on with every change, and the page of an
 * older one is of no more use, so it is replaced instead of staying beside the new one.
 */
function slotOf(request: HttpRequest): string {
  const url = new URL(request.url)
  url.searchParams.delete('since')
  return sha256(`${url.href}\0${request.headers['accept'] ?? ''}`)
}

function serialise(request: HttpRequest, page: CachedPage, now: number): string {
  const about = {
    version: VERSION,
    url: request.url,
    etag: page.etag,
    link: page.link,
    digest: sha256(page.text),
    storedAt: toTimestamp(now),
  }
  return `${JSON.stringify(about)}\n${page.text}`
}

function loadPage(path: string, request: HttpRequest): CachedPage | null {
  const content = readFileBounded(path, LIMITS.httpCacheFileBytes)?.toString('utf8')
  if (content === undefined) return null
  const end = content.indexOf('\n')
  const about: unknown = JSON.parse(content.slice(0, Math.max(end, 0)))
  const text = content.slice(end + 1)
  const etag = textOf(about, 'etag')
  if (!isJson(about) || about['version'] !== VERSION || about['url'] !== request.url) return null
  if (etag === null || !ETAG.test(etag) || about['digest'] !== sha256(text)) return null
  return { etag, link: textOf(about, 'link'), text }
}

/** Everything in the folder is ours, leftovers of a crash included. */
function prune(directory: string, bounds: CacheBounds): void {
  const files = listDirectory(directory)
    .map((name) => ({ path: join(directory, name), status: fileStatus(join(directory, name)) }))
    .flatMap(({ path, status }) => (status?.kind === 'file' ? [{ path, status }] : []))
    .sort((a, b) => b.status.mtimeMs - a.status.mtimeMs)
  let bytes = 0
  for (const [index, file] of files.entries()) {
    bytes += file.status.size
    if (index >= bounds.files || bytes > bounds.bytes) removeFile(file.path)
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
