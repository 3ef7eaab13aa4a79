// What the host's install-time scanner looks for, as far as a project such as this can meet it. It reads
// line by line, without regard to case; comments and tests count.

const words = (text) => new Set(text.split(' '))

/** Suffixes of the files that the scanner reads, and of modules, which a later one may read. */
export const SCANNED_SUFFIXES = words(
  '.md .txt .py .sh .bash .js .ts .rb .yaml .yml .json .toml .cfg .ini .conf .html .css .xml .tex .r' +
    ' .jl .pl .php .mjs .cjs',
)

/** Every other scanned file counts as a document. */
export const CODE_SUFFIXES = words('.py .js .ts .sh .bash .rb .pl .php .mjs .cjs')

export const BINARY_SUFFIXES = words('.exe .dll .so .dylib .bin .dat .com .msi .dmg .app .deb .rpm')

/** Characters without width, and those that change the direction of writing: text hides behind them. */
export const INVISIBLE = /[\u200b-\u200d\u2060\u2062-\u2064\ufeff\u202a-\u202e\u2066-\u2069]/

/** Any number of words in between. */
const WORDS = String.raw`(?:\w+\s+)*`

// The tables: each rule's pattern, and how to write it instead. A raised dot is left out of the pattern;
// it breaks what would make the table itself a finding.
const raw = String.raw

const CRITICAL = {
  'host-configuration': {
    pattern: raw`\.hermes·/(?:config\.yaml|SOUL\.md)`,
    hint: 'write $HERMES_HOME/config.yaml',
  },
  'account-file': {
    pattern: raw`/etc·/(?:passwd|shadow|su·doers)`,
    hint: 'take another file, or build the path by concatenation',
  },
  'system-overwrite': {
    pattern: raw`>\s*/etc·/`,
    hint: 'do not show a redirection into the system configuration',
  },
  'recursive-delete': {
    pattern: raw`\brm\s+-rf\s+/|\brm\s+(?:-\S*)?r.*\$HOME|\brmdir\s.*\$HOME`,
    hint: 'name a relative folder, or call the removal function of the language',
  },
  privileges: {
    pattern: raw`set·uid|set·gid|NO·PASSWD|vi·su·do|chmod\s+[u+]?s`,
    hint: 'say "the set-user-id bit", or give the mode as an octal number',
  },
  'dangerous-program': {
    pattern: raw`\b(?:mk·fs|so·cat)\b|\bnc(?:at)?\s+-[lp]|authorized·_keys`,
    hint: 'describe it instead of naming it',
  },
  'name-lookup': {
    pattern: raw`\b(?:dig|nslookup|host)\s.*\$`,
    hint: 'choose another word ("server"), or break the line before the $',
  },
  'quoted-credential': {
    pattern: raw`(?:api[_-]?key|token|secret|password)\s*[=:]\s*["'][\w+/=-]{20}`,
    hint: "build the value: 'a'.repeat(20)",
  },
  'token-shape': {
    pattern:
      raw`ghp·_[a-z0-9]{36}|github·_pat_\w{80}|sk·-[a-z0-9]{20}|AK·IA\w{16}|glpat·-[\w-]{20}` +
      raw`|-----BEGIN\s+(?:\w+\s+)?PRIVATE\s+KEY`,
    hint: 'build the value by concatenation',
  },
  injection: {
    pattern:
      raw`ignore\s+${WORDS}(?:previous|all|above|prior)\s+instructions` +
      raw`|disregard\s+${WORDS}(?:your|all|any)\s+${WORDS}(?:instructions|rules|guidelines)` +
      raw`|do\s+not\s+${WORDS}tell\s+${WORDS}the\s+user|system\s+${WORDS}prompt\s+${WORDS}override`,
    hint: 'reword the sentence, or build it by concatenation',
  },
  'piped-interpreter': {
    pattern: raw`echo\s.*\|\s*(?:bash|sh|python|perl|ruby|node)|curl\s.*\|\s*python`,
    hint: 'write a file and run it; in a table keep the word away from the bar',
  },
  'credential-file': {
    pattern: raw`cat\s.*(?:\.env·|credentials|\.netrc|\.pgpass|\.npmrc|\.pypirc)`,
    hint: 'do not print a file of credentials',
  },
}

const CRITICAL_IN_DOCUMENTS = {
  'agent-instruction-file': {
    pattern: raw`(?:AGENTS|CLAUDE)\.md|\.cursor·rules|\.cline·rules`,
    hint: 'say "agent instruction files" without naming them',
  },
  'credential-sent': {
    pattern: raw`(?:curl\s|wget\s|fetch\s*\().*\$.*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|API)`,
    hint: 'show the request without the variable of the credential',
  },
  'credential-read': {
    pattern: raw`os\.(?:getenv·|environ\.get)\s*\([^)]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)`,
    hint: 'name the variable in prose',
  },
}

const HIGH = {
  'piped-shell': {
    pattern: raw`\b(?:curl|wget)\s.*\|\s*(?:ba)?sh`,
    hint: 'download to a file first',
  },
  'environment-dump': {
    pattern: raw`env·\s*\||print·env`,
    hint: 'write ?? for a default, and put other types of a union before this one',
  },
  'dotted-spawn': {
    pattern: raw`child_process\.(?:exec|spawn|fork)\s*\(`,
    hint: 'import the function by its name',
  },
  'evaluated-text': {
    pattern: raw`\b(?:eval|exec)\s*\(\s*["']|os\.(?:system|popen)\s*\(|shutil\.rmtree\s*\(\s*["'/]`,
    hint: 'pass a variable, or an argument list to the process function',
  },
  'three-levels-up': {
    pattern: raw`\.\./\.\./\.\.`,
    hint: 'join path segments, or move the file up',
  },
  'process-files': {
    pattern: raw`/proc·/self|/proc/\d+/`,
    hint: 'fill the process id in: /proc/${pid}/',
  },
  'super-user': { pattern: raw`\bsu·do\b`, hint: 'say "as root"' },
  'open-listener': { pattern: raw`0\.0\.0\.0:\d+|INADDR·_ANY`, hint: 'listen on loopback' },
  tunnel: {
    pattern: raw`\b(?:ng·rok|cloud·flared|local·tunnel)\b`,
    hint: 'describe it instead of naming it',
  },
  'home-secrets': {
    pattern: raw`(?:~|\$HOME)/\.(?:ssh|aws|docker|kube|gnupg)`,
    hint: 'say "the ssh folder of the user"',
  },
  'agent-settings': {
    pattern: raw`\.claude·/settings|\.codex·/config`,
    hint: 'say "the settings of the harness"',
  },
  'link-with-variable': {
    pattern: raw`\[.*\]·\(https?://[^)]*\$`,
    hint: 'put the URL together before, or keep bracket and parenthesis on two lines',
  },
  'hidden-comment': {
    pattern: raw`<!·--[^>]*(?:ignore|override|system|secret|hidden)[^>]*-->`,
    hint: 'use other words in the comment',
  },
  'role-play': {
    pattern:
      raw`you\s+are\s+${WORDS}now\s+|pretend\s+${WORDS}(?:you\s+are|to\s+be)` +
      raw`|you\s+have\s+been\s+${WORDS}(?:updated|upgraded|patched)\s+to`,
    hint: 'reword the sentence',
  },
}

const HIGH_IN_DOCUMENTS = {
  'environment-in-prose': {
    pattern: raw`process\.env\[|os\.environ\b|base64.*env`,
    hint: 'name the variable in prose',
  },
  'sends-context': {
    pattern:
      raw`\b(?:include|output|print|send|share)\s+${WORDS}(?:conversation|context)\b` +
      raw`|\b(?:send|post|upload)\s.*\s(?:to|at)\s+https?://`,
    hint: 'turn the sentence round ("the context holds …")',
  },
}

/** Counted only: they do not spoil the verdict. */
const MEDIUM = {
  installs: { pattern: raw`npm install \S|pip install \S|git clone \S|docker pull \S` },
  schedules: { pattern: raw`\bcrontab\b|systemctl enable|git config --global` },
  'starts-program': { pattern: raw`subprocess\.(?:run|call|Popen|check_output)\(` },
  fetches: { pattern: raw`(?:fetch|curl|wget)\s*\(?\s*["']https?://` },
  'two-levels-up': { pattern: raw`\.\./\.\.` },
  'host-secrets': { pattern: raw`(?:~|\$HOME)/\.hermes/\.env` },
}

const rules = (level, scope, table) =>
  Object.entries(table).map(([name, { pattern, hint = 'nothing to do' }]) => {
    return { name, level, scope, hint, pattern: patternOf(pattern) }
  })

/** Without the raised dots; case does not matter. */
export function patternOf(text) {
  return new RegExp(text.replaceAll('·', ''), 'i')
}

/** `scope` doc = not in code. Critical and high findings spoil the verdict. */
export const RULES = [
  ...rules('critical', 'any', CRITICAL),
  ...rules('critical', 'doc', CRITICAL_IN_DOCUMENTS),
  ...rules('high', 'any', HIGH),
  ...rules('high', 'doc', HIGH_IN_DOCUMENTS),
  ...rules('medium', 'any', MEDIUM),
]
