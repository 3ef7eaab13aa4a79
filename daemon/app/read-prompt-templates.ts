import { join } from 'node:path'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { readFileBounded } from '../sys/files.ts'
import { PROMPT_FILES, type PromptTemplates } from '../worker/render-prompt.ts'
import type { Build } from './build.ts'

/** The prompt texts of the installed build, read once per process. Faults: sys/io when one is missing. */
export function readPromptTemplates(build: Build): PromptTemplates {
  const read = (name: string): string => {
    const path = join(build.templates, name)
    const bytes = readFileBounded(path, LIMITS.configurationBytes)
    if (bytes !== null) return bytes.toString('utf8')
    throw fault('sys/io', { operation: 'Reading', path, reason: 'it is missing' })
  }
  return {
    frame: read(PROMPT_FILES.frame),
    behaviour: { code: read(PROMPT_FILES.code), investigation: read(PROMPT_FILES.investigation) },
  }
}
