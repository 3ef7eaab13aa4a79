// Every limit that is not a configuration key, in one place (R§13).

const KIB = 1024
const MIB = 1024 * KIB

export const LIMITS = {
  /** Worker result file. */
  resultBytes: MIB,
  resultDepth: 32,
  summaryBytes: 64 * KIB,
  commitMessageBytes: 64 * KIB,
  titleCharacters: 256,
  artifacts: 100,
  artifactKeyBytes: 128,
  /** What goes into a pull request or comment; GitHub refuses more characters than this. */
  bodyCharacters: 65_536,
  artifactsRenderedBytes: 16 * KIB,
  /** Prompt and context given to a worker. */
  promptBytes: 2 * MIB,
  contextBytes: MIB,
  commentBytes: 64 * KIB,
  retainedComments: 100,
  retainedEvents: 100,
  /** execve limits one string to 128 KiB, name and terminator included. */
  environmentValueBytes: 120 * KIB,
  /** GitHub. */
  pageSize: 100,
  httpBodyBytes: 10 * MIB,
  /** Requests at a time. GitHub allows 100 for an account (docs, "Rate limits for the REST API"). */
  httpConcurrency: 25,
  redirects: 3,
  httpCacheFileBytes: 2 * MIB,
  httpCacheFiles: 2000,
  httpCacheBytes: 256 * MIB,
  /** What is shown of GitHub's own words. */
  httpReasonCharacters: 300,
  /** Stored files. */
  queueBytes: 256 * MIB,
  metaBytes: 4 * MIB,
  journalBytes: 4 * MIB,
  claimBytes: 4 * KIB,
  supervisorFileBytes: 256 * KIB,
  logBytes: 20 * MIB,
  diagnostics: 20,
  diagnosticMessageBytes: 256,
  recentErrors: 10,
  /** Git. */
  gitConcurrency: 10,
  gitOutputBytes: 32 * KIB,
  gitListingBytes: 256 * MIB,
  configurationBytes: MIB,
  /** Waits, in milliseconds. */
  stateLockMs: 10_000,
  tickMs: 100_000,
  heartbeatMs: 5_000,
  heartbeatStaleMs: 90_000,
  intentMs: 30_000,
  /** From a claim to its runner's first word, on a machine that is very busy. */
  startMs: 120_000,
  termGraceMs: 2_000,
  killBoundMs: 10_000,
  backoffCapMs: 3_600_000,
  rateLimitCapMs: 3_600_000 + 60_000,
  secondaryLimitMs: 60_000,
  /** Processes that waited for the same limit start again spread over this. */
  rateLimitSpreadMs: 5_000,
  /** Between two polls that list both labels whole. */
  fullPollMs: 3_600_000,
  /** Between two collections of what nothing names any more. */
  collectMs: 3_600_000,
  pollOverlapMs: 120_000,
  ghTokenMs: 10_000,
  /** Counts (design §6). */
  interruptions: 3,
  adoptions: 5,
  /** Failures before their duration counts; a clock that jumped makes one alone look old. */
  degradedTries: 3,
} as const satisfies Record<string, number>
