// Which environment variables never reach a worker, whatever an allow-list says.
// Names are compared without case: a credential is none the less one for being spelled `github_token`.

/** Why a name is denied; every row is a rule of its own. */
export const DENIED_NAMES = [
  {
    why: 'a GitHub token',
    matches: (name: string) => namesGithub(name) && name.includes('TOKEN'),
  },
  {
    why: 'a personal access token of GitHub',
    matches: (name: string) => namesGithub(name) && name.endsWith('_PAT'),
  },
  {
    why: 'a secret of the daemon',
    matches: (name: string) =>
      name.startsWith('CADUCEUS_') && (name.includes('SECRET') || name.includes('TOKEN')),
  },
] as const satisfies readonly { why: string; matches: (upperCaseName: string) => boolean }[]

/** Well-known credentials; a wildcard whose prefix starts one of them asks for too much. */
const KNOWN_CREDENTIALS = [
  'GITHUB_TOKEN',
  'GITHUB_ENTERPRISE_TOKEN',
  'GITHUB_PAT',
  'GH_TOKEN',
  'GH_ENTERPRISE_TOKEN',
  'GH_PAT',
  'CADUCEUS_GITHUB_TOKEN',
  'AUTO_ISSUE_GITHUB_TOKEN',
] as const

/** Whether a variable of this name is kept from every worker. */
export function isDeniedName(name: string): boolean {
  const upper = name.toUpperCase()
  return DENIED_NAMES.some((rule) => rule.matches(upper))
}

/**
 * Whether an entry of `worker_env_allowlist` is out to expose a denied variable: it is one, or it is a
 * wildcard that starts a well-known credential or is wholly about GitHub or the daemon itself.
 * What such an entry let through would still be dropped by `isDeniedName`; refusing it at load tells
 * the operator so in time.
 * @param entry an exact name, or a prefix ending in `*`
 */
export function mayExposeDenied(entry: string): boolean {
  if (!entry.endsWith('*')) return isDeniedName(entry)
  const prefix = entry.slice(0, -1).toUpperCase()
  return (
    isDeniedName(prefix) ||
    namesGithub(prefix) ||
    prefix.startsWith('CADUCEUS_') ||
    KNOWN_CREDENTIALS.some((name) => name.startsWith(prefix))
  )
}

function namesGithub(upperCaseName: string): boolean {
  return upperCaseName.includes('GITHUB') || upperCaseName.split('_').includes('GH')
}
