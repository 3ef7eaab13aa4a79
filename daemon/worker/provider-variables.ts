import { isDeniedName } from '../core/denied-environment.ts'

const ALLOWED_PREFIXES = ['OPENAI_', 'ANTHROPIC_', 'OPENROUTER_', 'OPENCODE_'] as const

/** Whether workers get a variable for their provider's sake, or because the operator says so. */
export function isProviderName(name: string, allowlist: readonly string[]): boolean {
  if (isDeniedName(name) || name.startsWith('CADUCEUS_')) return false
  if (ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix))) return true
  return allowlist.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  )
}

/** Of the variables a provider's tools read, those with such a word in the name hold a secret. */
const SECRET_WORDS = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH/

/**
 * Values a worker is given that no reader of ours may see: those of every variable the operator has listed, and of the
 * provider's variables that are named like a secret. The worker knows them and may write them into its result.
 */
export function workerSecrets(
  source: Readonly<Record<string, string>>,
  allowlist: readonly string[],
): readonly string[] {
  return Object.entries(source).flatMap(([name, value]) => {
    if (!isProviderName(name, allowlist)) return []
    const isProviders = ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix))
    return isProviders && !SECRET_WORDS.test(name) ? [] : [value.trim()]
  })
}
