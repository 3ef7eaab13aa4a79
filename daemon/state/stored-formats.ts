// The three formats of stored files, and what their schemas cannot say.

import { formatRepository, issueId, parseRepositoryName } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Meta } from '../core/meta.ts'
import type { QueueState } from '../core/queue-state.ts'
import type { Checked } from '../core/schema-error.ts'
import type { JournalFile } from './journal-schema.ts'
import type { StoredFields } from './schema-parts.ts'
import type { MetaFile, QueueFile } from './store-schema.ts'
import { validateJournalFile, validateMetaFile, validateQueueFile } from './validate-stored.ts'

/** How a content is stored: the file is `{format, version, …content}`. */
export type StoredFormat<Content, File extends StoredFields & Content> = Readonly<{
  name: string
  maxBytes: number
  validate(data: unknown): Checked<File>
  /** The content without what belongs to the file. */
  contentOf(file: File): Content
  /** What is wrong with a content although it follows the schema, or null. */
  contradictionOf(content: Content): string | null
}>

export const QUEUE_FORMAT: StoredFormat<QueueState, QueueFile> = {
  name: 'caduceus-queue',
  maxBytes: LIMITS.queueBytes,
  validate: validateQueueFile,
  contentOf: ({ entries, circuits }) => ({ entries, circuits }),
  contradictionOf: ({ entries }) => {
    // Thousands of entries name few repositories; each name is checked once.
    const known = new Set<string>()
    for (const [id, { key }] of Object.entries(entries)) {
      if (issueId(key) !== id) return `the entry "${id}" belongs to ${issueId(key)}`
      const repository = id.slice(0, id.lastIndexOf('#'))
      if (known.has(repository)) continue
      if (parseRepositoryName(repository) === null) return `"${id}" does not name an issue`
      known.add(repository)
    }
    return null
  },
}

export const META_FORMAT: StoredFormat<Meta, MetaFile> = {
  name: 'caduceus-meta',
  maxBytes: LIMITS.metaBytes,
  validate: validateMetaFile,
  contentOf: ({ format: _format, version: _version, ...meta }) => meta,
  contradictionOf: () => null,
}

export const JOURNAL_FORMAT: StoredFormat<Journal, JournalFile> = {
  name: 'caduceus-run',
  maxBytes: LIMITS.journalBytes,
  validate: validateJournalFile,
  contentOf: ({ format: _format, version: _version, ...journal }) => journal,
  contradictionOf: ({ key }) =>
    parseRepositoryName(formatRepository(key)) === null
      ? `"${issueId(key)}" does not name an issue`
      : null,
}
