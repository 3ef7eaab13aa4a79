// Every limit that is not a configuration key, in one place.

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
  /** How much of GitHub's own error text is shown. */
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
  /** From a claim to its runner's first write, on a very busy machine. */
  startMs: 120_000,
  termGraceMs: 2_000,
  killBoundMs: 10_000,
  backoffCapMs: 3_600_000,
  rateLimitCapMs: 3_600_000 + 60_000,
  secondaryLimitMs: 60_000,
  /** Processes that waited for the same limit resume at random moments within this. */
  rateLimitSpreadMs: 5_000,
  /** Between two polls that list both labels whole. */
  fullPollMs: 3_600_000,
  /** Between two collections of garbage. */
  collectMs: 3_600_000,
  pollOverlapMs: 120_000,
  ghTokenMs: 10_000,
  /** Counts. */
  interruptions: 3,
  adoptions: 5,
  /** Failures in a row before their duration counts; a single one may look old when the clock jumped. */
  degradedTries: 3,
} as const satisfies Record<string, number>
