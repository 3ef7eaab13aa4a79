// What a look at an installation amounts to: verdicts, what they mean for the exit code, and the
// judgements that need no look at the machine (design §11).

import { isSameLabel } from '../core/labels.ts'

/** How a check came out. `skipped` says nothing about health. */
export const CHECK_STATUSES = {
  ok: { word: 'OK' },
  warn: { word: 'WARN' },
  fail: { word: 'FAIL' },
  skipped: { word: 'SKIP' },
} as const satisfies Record<string, { word: string }>

export type CheckStatus = keyof typeof CHECK_STATUSES

/** Who can mend a failure, which decides the exit code; the greatest one counts (R§1.6, H§6.5). */
export const CATEGORIES = {
  'configuration-runtime': { exitCode: 1, meaning: 'the configuration, the token or the state' },
  'host-prerequisite': { exitCode: 2, meaning: 'a program or the host that has to be there' },
} as const satisfies Record<string, { exitCode: 1 | 2; meaning: string }>

export type Category = keyof typeof CATEGORIES

/** What a check is about. */
export type CheckGroup = 'program' | 'configuration' | 'github' | 'repositories' | 'state' | 'host'

/** What a check needs; without it the check is skipped, for this reason. */
export const NEEDS = {
  configuration: { missing: 'not looked at: the configuration does not load' },
  network: { missing: 'left out: --offline' },
  hermes: { missing: 'not under Hermes' },
} as const satisfies Record<string, { missing: string }>

export type Need = keyof typeof NEEDS

/** One thing that was found. */
export type Finding = Readonly<{
  verdict: CheckStatus
  /** Which of several things of its kind, such as a repository; null = there is one. */
  subject: string | null
  detail: string
  /** What to do, one sentence; null when there is nothing to do. */
  next: string | null
  /** When it differs from the check's own. */
  category?: Category
}>

/** A finding with the check it came from. */
export type CheckResult = Finding &
  Readonly<{ check: string; group: CheckGroup; category: Category }>

export const ok = (detail: string, subject: string | null = null): Finding => ({
  verdict: 'ok',
  subject,
  detail,
  next: null,
})

export const warn = (
  detail: string,
  next: string | null,
  subject: string | null = null,
): Finding => ({
  verdict: 'warn',
  subject,
  detail,
  next,
})

export const fail = (detail: string, next: string, subject: string | null = null): Finding => ({
  verdict: 'fail',
  subject,
  detail,
  next,
})

export const skipped = (detail: string, subject: string | null = null): Finding => ({
  verdict: 'skipped',
  subject,
  detail,
  next: null,
})

/** 0 healthy, 1 configuration or runtime, 2 host prerequisite; 2 wins. Only failures count. */
export function exitCodeOf(
  results: readonly Pick<CheckResult, 'verdict' | 'category'>[],
): 0 | 1 | 2 {
  const codes = results
    .filter(({ verdict }) => verdict === 'fail')
    .map(({ category }) => CATEGORIES[category].exitCode)
  return codes.reduce<0 | 1 | 2>((worst, code) => (code > worst ? code : worst), 0)
}

/** How many findings of each verdict. */
export function countStatuses(
  results: readonly Pick<CheckResult, 'verdict'>[],
): Readonly<Record<CheckStatus, number>> {
  const count = (verdict: CheckStatus): number =>
    results.filter((result) => result.verdict === verdict).length
  return { ok: count('ok'), warn: count('warn'), fail: count('fail'), skipped: count('skipped') }
}

/** What Hermes takes out of a cron script's environment, as far as it matters to us (H§5.6, PR #49207). */
const STRIPPED_BY_HERMES: readonly RegExp[] = [
  /^(?:GITHUB_TOKEN|GH_TOKEN|COPILOT_GITHUB_TOKEN)$/,
  /^(?:OPENAI|ANTHROPIC)_(?:API_KEY|BASE_URL|TOKEN)$/,
  /^(?:OPENROUTER|GEMINI|GOOGLE|OPENCODE_ZEN|OPENCODE_GO)_API_KEY$/,
  /^API_SERVER_/,
  /_BOT_TOKEN$/,
  /^VIRTUAL_ENV$/,
]

export function isStrippedByHermes(name: string): boolean {
  return STRIPPED_BY_HERMES.some((pattern) => pattern.test(name))
}

type Environment = Readonly<Record<string, string>>

/** The first two are in the wrapper; the token is told as uncertain by its check. */
const KNOWN_TO_WRAPPER = ['CADUCEUS_PLUGIN_ROOT', 'CADUCEUS_NODE', 'CADUCEUS_GITHUB_TOKEN']

/**
 * The environment a tick will see under Hermes: what the gateway was started with and has read from the
 * host's `.env`, without what is taken from scripts (H§5.6). When the gateway's own environment cannot be
 * seen, this process stands for it, without the variables of ours that are perhaps set in this shell only.
 * @param gateway of the running gateway; null = unknown
 * @param own of this process
 * @param hostVariables what the host's `.env` says
 */
export function environmentOfCron(
  gateway: Environment | null,
  own: Environment,
  hostVariables: Environment,
): Environment {
  const isOurs = (name: string): boolean =>
    name.startsWith('CADUCEUS_') && !KNOWN_TO_WRAPPER.includes(name)
  const base = gateway ?? Object.fromEntries(Object.entries(own).filter(([name]) => !isOurs(name)))
  const said = Object.entries(hostVariables).filter(([, value]) => value.trim() !== '')
  const whole = { ...base, ...Object.fromEntries(said) }
  const kept = Object.entries(whole).filter(([name]) => !isStrippedByHermes(name))
  const home = own['HERMES_HOME']
  return { ...Object.fromEntries(kept), ...(home === undefined ? {} : { HERMES_HOME: home }) }
}

/** Names that people could take for a label they are not: other endings, decorations, a slip of the pen. */
export function nearMissesOf(labels: readonly string[], wanted: string): readonly string[] {
  const stem = stemOf(wanted)
  return labels.filter((label) => {
    if (isSameLabel(label, wanted)) return false
    const other = stemOf(label)
    return other !== '' && (other === stem || differInOne(other, stem))
  })
}

/** Letters and digits only; the forms of "investigate" count as one. */
function stemOf(label: string): string {
  const letters = label
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
  return letters.replace(/investigat(?:e|es|ed|ion|ions|ing)$/, 'investigat')
}

/** Whether one letter was left out, added or changed. */
function differInOne(a: string, b: string): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a]
  if (long.length - short.length > 1 || short.length < 4) return false
  let at = 0
  while (at < short.length && short[at] === long[at]) at += 1
  const isChanged = short.length === long.length
  return short.slice(isChanged ? at + 1 : at) === long.slice(at + 1)
}

/** The gateway's ticker writes every 60 s; the host itself calls it dead after this (H§6.5). */
export const HEARTBEAT_MS = 200_000

/** A ticker that beats and fails each time is seen by this; it may rightly be busy for a while (H§5.1). */
export const SUCCESS_MS = 600_000

/**
 * What is wrong with the host's ticker; null = nothing. A beat from the future comes of a clock that was set
 * back, and would hide a dead ticker until then.
 * @param beatMs since the last beat; null = there never was one
 * @param successMs since the last beat without a fault; null = the host does not say
 */
export function tickerProblem(beatMs: number | null, successMs: number | null): string | null {
  if (beatMs === null) return 'it has never run'
  if (beatMs > HEARTBEAT_MS) return `its last beat was ${describeAge(beatMs)} ago`
  if (beatMs < -HEARTBEAT_MS) return `its last beat is ${describeAge(-beatMs)} in the future`
  if (successMs === null || successMs <= SUCCESS_MS) return null
  return `it beats, but the last one without a fault was ${describeAge(successMs)} ago`
}

type FileSystemRow = Readonly<{ magic: number; name: string; verdict: 'warn' | 'fail' }>

/** Kinds of file systems on which kernel locks or durability are not what we need; statfs(2), linux/magic.h. */
const FILE_SYSTEMS: readonly FileSystemRow[] = [
  { magic: 0x6969, name: 'NFS', verdict: 'fail' },
  { magic: 0xff534d42, name: 'CIFS', verdict: 'fail' },
  { magic: 0xfe534d42, name: 'SMB', verdict: 'fail' },
  { magic: 0x517b, name: 'SMB', verdict: 'fail' },
  { magic: 0x5346414f, name: 'AFS', verdict: 'fail' },
  { magic: 0x73757245, name: 'Coda', verdict: 'fail' },
  { magic: 0x00c36400, name: 'Ceph', verdict: 'fail' },
  { magic: 0x0bd00bd0, name: 'Lustre', verdict: 'fail' },
  { magic: 0x47504653, name: 'GPFS', verdict: 'fail' },
  { magic: 0x65735546, name: 'FUSE', verdict: 'warn' },
  { magic: 0x01021997, name: '9P', verdict: 'warn' },
  {
    magic: 0x786f4256,
    name: 'a folder shared with the host of a virtual machine',
    verdict: 'warn',
  },
  { magic: 0x01021994, name: 'tmpfs', verdict: 'warn' },
]

/** What is known against a file system; null = nothing. */
export function evaluateFileSystem(magic: number): Omit<FileSystemRow, 'magic'> | null {
  return FILE_SYSTEMS.find((row) => row.magic === magic >>> 0) ?? null
}

const MIB = 1024 * 1024

/** Less than this is no use, or soon will be none. */
export const SPACE_GOALS = {
  bytes: { least: 100 * MIB, comfortable: 1024 * MIB },
  inodes: { least: 1000, comfortable: 10_000 },
} as const satisfies Record<string, { least: number; comfortable: number }>

/** @param inodes null = the file system makes them as needed */
export function evaluateSpace(bytes: number, inodes: number | null): 'ok' | 'warn' | 'fail' {
  const measured = [
    { free: bytes, goal: SPACE_GOALS.bytes },
    ...(inodes === null ? [] : [{ free: inodes, goal: SPACE_GOALS.inodes }]),
  ]
  if (measured.some(({ free, goal }) => free < goal.least)) return 'fail'
  return measured.some(({ free, goal }) => free < goal.comfortable) ? 'warn' : 'ok'
}

/** The first version number in a text; null = there is none. */
export function parseVersion(text: string): readonly [number, number, number] | null {
  const [, major, minor, patch = '0'] = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? []
  if (major === undefined || minor === undefined) return null
  return [Number(major), Number(minor), Number(patch)]
}

/** Whether a version is at least another one. */
export function isAtLeast(found: readonly number[], wanted: readonly number[]): boolean {
  for (const [at, part] of wanted.entries()) {
    const own = found[at] ?? 0
    if (own !== part) return own > part
  }
  return true
}

/** An age for people: 45 s, 12 min, 3 h, 5 days. */
export function describeAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** Bytes for people. */
export function describeBytes(bytes: number): string {
  return bytes >= 1024 * MIB
    ? `${(bytes / (1024 * MIB)).toFixed(1)} GiB`
    : `${Math.floor(bytes / MIB)} MiB`
}
