import { readBranch } from './branches.ts'
import { git } from './run-git.ts'

/** What a file becomes; a plain text is a normal file, null removes it. */
export type FileContent =
  | string
  | null
  | Readonly<{
      content: string
      encoding?: 'utf8' | 'base64'
      /** git's modes of a normal file, an executable one, a symbolic link. */
      mode?: '100644' | '100755' | '120000'
    }>

type CommitOrder = Readonly<{
  branch: string
  /** The commit it builds on; null makes a root commit. */
  parent: string | null
  message: string
  author: Readonly<{ name: string; email: string }>
  /** Seconds since the epoch. */
  dateSeconds: number
  files: Readonly<Record<string, FileContent>>
}>

/**
 * Makes one commit and moves the branch to it, without a working tree (git-fast-import(1)).
 * Faults: git/failed.
 * @returns the branch's new commit
 */
export async function commitFiles(path: string, order: CommitOrder): Promise<string> {
  const ref = `refs/heads/${order.branch}`
  const stream = Buffer.concat([
    text(`commit ${ref}\n`),
    text(`committer ${identity(order)}\n`),
    data(Buffer.from(order.message)),
    text(order.parent === null ? '' : `from ${order.parent}\n`),
    ...Object.entries(order.files).flatMap(([name, content]) => fileCommand(name, content)),
    text('\ndone\n'),
  ])
  await git(path, ['fast-import', '--quiet', '--force', '--done'], { input: stream })
  return readBranch(path, order.branch) ?? order.parent ?? ''
}

const text = (line: string): Buffer => Buffer.from(line)

const data = (content: Buffer): Buffer =>
  Buffer.concat([text(`data ${content.length}\n`), content, text('\n')])

const identity = ({ author, dateSeconds }: CommitOrder): string =>
  `${author.name.replaceAll(/[<>\n]/g, '')} <${author.email}> ${dateSeconds} +0000`

function fileCommand(name: string, content: FileContent): readonly Buffer[] {
  if (content === null) return [text(`D ${quoted(name)}\n`)]
  const file = typeof content === 'string' ? { content } : content
  const bytes = Buffer.from(file.content, file.encoding ?? 'utf8')
  return [text(`M ${file.mode ?? '100644'} inline ${quoted(name)}\n`), data(bytes)]
}

const quoted = (name: string): string =>
  `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
