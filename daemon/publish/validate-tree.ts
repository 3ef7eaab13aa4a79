import picomatch from 'picomatch'
import { fault } from '../core/fault.ts'
import { isGitDirectoryName } from '../core/git-directory-name.ts'
import type { CapturedTree, TreeChange } from '../core/ports.ts'

/** The configured rules that a publication obeys (design §9, §12). */
export type PublishPolicy = Readonly<{
  forbiddenStrings: readonly string[]
  closeIssue: 'finalize' | 'merge' | 'never'
  removeLabel: boolean
  settleMs: number
  protectedPaths: readonly string[]
  maxChangedFiles: number
  maxDiffBytes: number
  maxFileBytes: number
}>

type Breach = Readonly<{ class: 'policy' | 'worker'; reason: string }>
type Rule = (
  changes: readonly TreeChange[],
  policy: PublishPolicy,
  linksOut: readonly string[],
) => Breach | null

const GITLINK = '160000'

/**
 * Rules on the written tree, which can no longer change (P§5, design §12). First breach wins.
 * `worker`: the worker left something unusable. `policy`: a human has to decide.
 */
const RULES = [
  function gitDirectory(changes) {
    const bad = changes.find(({ path }) => path.split('/').some(isGitDirectoryName))
    return bad ? { class: 'worker', reason: `${show(bad.path)} would be a git directory` } : null
  },
  function escapingLink(_changes, _policy, linksOut) {
    const bad = linksOut[0]
    return bad === undefined
      ? null
      : { class: 'worker', reason: `${show(bad)} links to outside the tree` }
  },
  function submodule(changes) {
    const bad = changes.find(({ newMode }) => newMode === GITLINK)
    return bad ? { class: 'worker', reason: `${show(bad.path)} is a repository of its own` } : null
  },
  function protectedPath(changes, policy) {
    // s: a line end in a name is a character like any other.
    const patterns = policy.protectedPaths.map((path) => (path.endsWith('/') ? `${path}**` : path))
    const isProtected = picomatch(patterns, { dot: true, flags: 'is' })
    const bad = policy.protectedPaths.length > 0 && changes.find(({ path }) => isProtected(path))
    return bad
      ? { class: 'policy', reason: `${show(bad.path)} is protected (protected_paths)` }
      : null
  },
  function fileCount(changes, policy) {
    const reason = `${changes.length} files changed, more than ${policy.maxChangedFiles} (max_changed_files)`
    return changes.length > policy.maxChangedFiles ? { class: 'policy', reason } : null
  },
  function fileSize(changes, policy) {
    const bad = changes.find(({ size }) => size > policy.maxFileBytes)
    if (bad === undefined) return null
    const reason = `${show(bad.path)} has ${bad.size} bytes, more than ${policy.maxFileBytes} (max_file_bytes)`
    return { class: 'policy', reason }
  },
  function totalSize(changes, policy) {
    const total = changes.reduce((sum, { size }) => sum + size, 0)
    const reason = `${total} bytes changed, more than ${policy.maxDiffBytes} (max_diff_bytes)`
    return total > policy.maxDiffBytes ? { class: 'policy', reason } : null
  },
] as const satisfies readonly Rule[]

const FAULT_OF = { policy: 'publish/policy', worker: 'worker/tree-unusable' } as const

/** Faults: worker/tree-unusable, publish/policy. Fine = returns. */
export function validateTree(
  captured: CapturedTree,
  policy: PublishPolicy,
  treePath: string,
): void {
  for (const rule of RULES) {
    const breach = rule(captured.changes, policy, captured.linksOut)
    if (breach !== null) {
      throw fault(FAULT_OF[breach.class], { reason: breach.reason, tree: treePath })
    }
  }
}

function show(path: string): string {
  return JSON.stringify(path)
}
