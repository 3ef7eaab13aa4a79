import { fault, reasonOf } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { readFileBounded } from '../sys/files.ts'
import { type ParsedResult, parseResult } from './validate-result.ts'

/**
 * The result file of a run. The file is opened without following links and only when it is a regular
 * file with no other name, for another one may lie where the worker may not read; no more than 1 MiB is
 * read. The bytes are those of the file, secrets and all.
 * @param transcript where the worker's output is; named in the faults
 * @param known secret values the worker may have written
 * Faults: worker/result-missing, worker/result-unreadable, worker/result-invalid.
 */
export function readResult(
  path: string,
  transcript: string,
  known: readonly string[],
): { parsed: ParsedResult; bytes: Uint8Array } {
  const bytes = readOrFault(path, transcript)
  if (bytes === null) throw fault('worker/result-missing', { transcript })
  return { parsed: parseResult(bytes, transcript, known), bytes }
}

function readOrFault(path: string, transcript: string): Uint8Array | null {
  try {
    return readFileBounded(path, LIMITS.resultBytes, { refuseHardLinks: true })
  } catch (cause) {
    // What the worker put there in place of a file is the worker's doing, not a fault around us.
    const reason = `it is ${reasonOf(cause)}`
    throw fault('worker/result-unreadable', { reason, transcript }, cause)
  }
}
