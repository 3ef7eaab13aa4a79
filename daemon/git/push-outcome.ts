// What a push that failed has done. Pure.

/** A status line of `git push --porcelain`: flag, refs, summary (git-push(1), OUTPUT). */
const STATUS_LINE = /^([ +\-*!=])\t[^\t]*\t(.*)$/m

/**
 * Why a push failed, by what git printed; the first row that matches counts.
 * refused: the server took the request and said no, for ever. failed: nothing happened, try again.
 */
const REASONS = [
  // The branch is there already, or came into being at this moment.
  {
    kind: 'exists',
    text: /\(stale info\)|\(already exists\)|reference already exists|\(fetch first\)|\(non-fast-forward\)/,
  },
  {
    kind: 'failed',
    text: /\[remote rejected\].*(?:internal (?:server )?error|unpacker error|failed to (?:update|lock) ref|cannot lock ref|unable to (?:write|create|migrate)|timed? ?out|unavailable)|remote unpack failed/i,
  },
  { kind: 'refused', text: /\[remote rejected\]|\[rejected\]|\[no match\]/ },
  // Before anything was sent: no connection, no login, no such repository.
  {
    kind: 'failed',
    text: /unable to access '|Could not read from remote repository|Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied \(|Host key verification failed|Could not resolve host|Connection refused|Permission to \S+ denied|does not appear to be a git repository|[Rr]epository (?:'.*' )?not found|unable to find remote helper|transport '.*' not allowed|src refspec/,
  },
] as const satisfies readonly { kind: PushFailure; text: RegExp }[]

/**
 * exists: another branch of that name is there. refused: GitHub's rules. failed: no effect, may be
 * tried again. unknown: it may have taken effect.
 */
export type PushFailure = 'exists' | 'refused' | 'failed' | 'unknown'

/** Classifies a push that did not end with 0. */
export function classifyPushFailure(stdout: string, stderr: string): PushFailure {
  const status = STATUS_LINE.exec(stdout)?.[0] ?? ''
  const text = `${status}\n${stderr}`
  return REASONS.find((reason) => reason.text.test(text))?.kind ?? 'unknown'
}

const PROGRESS = /^(?:Enumerating|Counting|Compressing|Resolving|Total|Processing)\b.*\d/

/** What the server said: its own lines, without git's frame, then the reason of the status line. */
export function describeRejection(stdout: string, stderr: string): string {
  const remote = stderr
    .split(/[\r\n]+/)
    .flatMap((line) => /^remote: ?(.*)$/.exec(line)?.[1]?.trim() ?? [])
    .filter((line) => /[^\s\-—=*.]/.test(line) && !PROGRESS.test(line))
  const summary = STATUS_LINE.exec(stdout)?.[2] ?? ''
  const reason = [...remote, summary].filter(Boolean).join(' ')
  return reason.length > 4000 ? `${reason.slice(0, 4000)}…` : reason
}
