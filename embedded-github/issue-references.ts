// Which issues a text refers to, and which it closes once merged (GitHub docs, "Linking a pull request to
// an issue", "Autolinked references and URLs"). Code is exempt, as on GitHub.

export type Reference = Readonly<{ owner: string; name: string; number: number }>

const CODE = /```[\s\S]*?(?:```|$)|~~~[\s\S]*?(?:~~~|$)|(`+)[^`][\s\S]*?\1/g

const COMMENT = /<!--[\s\S]*?(?:-->|$)/g

const REFERENCE = String.raw`(?:([A-Za-z0-9-]+)\/([A-Za-z0-9._-]+))?#([1-9][0-9]{0,9})\b`

const MENTION = new RegExp(String.raw`(?<![\w&/#-])${REFERENCE}`, 'g')

const CLOSING = new RegExp(
  String.raw`\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+${REFERENCE}`,
  'gi',
)

type Here = Readonly<{ owner: string; name: string }>

/** Every issue mentioned as `#1` or `owner/name#1`, each once. */
export function mentionedIssues(text: string, here: Here): readonly Reference[] {
  return referencesIn(text, MENTION, here)
}

/** Every issue that `Closes #1` and its kin name, each once. */
export function closedIssues(text: string, here: Here): readonly Reference[] {
  return referencesIn(text, CLOSING, here)
}

function referencesIn(text: string, pattern: RegExp, here: Here): readonly Reference[] {
  const prose = text.replaceAll(CODE, ' ').replaceAll(COMMENT, ' ')
  const found = [...prose.matchAll(pattern)].map(([, owner, name, number]) => ({
    owner: owner ?? here.owner,
    name: name ?? here.name,
    number: Number(number),
  }))
  const keys = found.map(({ owner, name, number }) => `${owner}/${name}#${number}`.toLowerCase())
  return found.filter((_, index) => keys.indexOf(keys[index] ?? '') === index)
}
