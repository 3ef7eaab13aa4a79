import { compileSchema } from '../sys/compile-schema.ts'
import { JOURNAL_SCHEMA, type JournalFile } from './journal-schema.ts'
import { META_SCHEMA, type MetaFile, QUEUE_SCHEMA, type QueueFile } from './store-schema.ts'

// Whether a file follows its schema; of what is wrong with it, the first thing.

export const validateQueueFile = compileSchema<QueueFile>(QUEUE_SCHEMA)
export const validateMetaFile = compileSchema<MetaFile>(META_SCHEMA)
export const validateJournalFile = compileSchema<JournalFile>(JOURNAL_SCHEMA)
