import { git } from './run-git.ts'

type Signature = Readonly<{ name: string; email: string; date: string }>

export type CommitFacts = Readonly<{
  oid: string
  treeOid: string
  parents: readonly string[]
  author: Signature
  committer: Signature
  message: string
}>

// %x00 between fields and records: nothing a person wrote can be taken for a separator.
const FORMAT = ['%H', '%T', '%P', '%an', '%ae', '%aI', '%cn', '%ce', '%cI', '%B'].join('%x00')

/** Reads commits, in the order given. Faults: git/failed when one is missing. */
export async function readCommits(
  path: string,
  oids: readonly string[],
): Promise<readonly CommitFacts[]> {
  if (oids.length === 0) return []
  const text = await git(
    path,
    ['log', '--no-walk=unsorted', '--stdin', '-z', `--format=${FORMAT}`],
    {
      input: `${oids.join('\n')}\n`,
    },
  )
  const fields = text.split('\0')
  return oids.map((_, index) => parseCommit(fields.slice(index * 10, index * 10 + 10)))
}

function parseCommit(fields: readonly string[]): CommitFacts {
  const [oid = '', treeOid = '', parents = ''] = fields
  return {
    oid,
    treeOid,
    parents: parents.split(' ').filter((parent) => parent !== ''),
    author: signature(fields.slice(3, 6)),
    committer: signature(fields.slice(6, 9)),
    message: (fields[9] ?? '').trimEnd(),
  }
}

const signature = ([name = '', email = '', date = '']: readonly string[]): Signature => ({
  name,
  email,
  date: `${new Date(date).toISOString().slice(0, 19)}Z`,
})
