import { join, resolve } from 'node:path'
import type { Control } from '../../embedded-github/control-client.ts'
import type { Build } from '../app/build.ts'
import { fault } from '../core/fault.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  readFileBounded,
  writeFileAtomic,
} from '../sys/files.ts'
import { findProgram } from '../sys/find-program.ts'
import { makeTemporaryFolder } from '../sys/paths.ts'
import { configuration, environmentOf } from './demo-settings.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import { endRuns } from './end-runs.ts'
import { gitOutput } from './git-output.ts'
import { startGitHub } from './start-embedded-github.ts'

/** What the demo plays in: the embedded GitHub, a clone, an issue and the program's environment. */
export type DemoScene = Readonly<{
  root: string
  clone: string
  /** The bare repository behind the embedded GitHub. */
  origin: string
  stateDir: string
  control: Control
  issue: number
  /** The whole environment of the program under demonstration. */
  environment: Readonly<Record<string, string>>
  /** Ends the embedded GitHub. */
  close: () => void
  /** Ends every process of a run; only an interrupted demo needs it. */
  endRuns: () => void
}>

/**
 * Makes a small repository with a failing test on an embedded GitHub, an operator's clone, a labelled issue and
 * a configuration.
 * @param keep an empty or new folder, or null for a temporary one
 * Faults: usage/invalid, demo/refused, sys/spawn-failed, sys/process-timeout.
 */
export async function setDemoScene(
  build: Build,
  keep: string | null,
  story: DemoStory,
  environment: Readonly<Record<string, string>>,
): Promise<DemoScene> {
  requirePrograms(environment)
  // Absolute, because the embedded GitHub and the program run in other folders than this process.
  const root = keep === null ? makeTemporaryFolder('caduceus-demo-') : resolve(keep)
  if (fileStatus(join(root, 'github')) !== null) {
    const reason = `${root} holds an earlier demo; choose another folder.`
    throw fault('usage/invalid', { reason, command: 'demo' })
  }
  ensureDirectory(root)
  for (const name of ['github', 'home', 'projects/octo', 'state']) ensureDirectory(join(root, name))
  const github = await startGitHub(build, join(root, 'github'), environment)
  try {
    const { control, url } = github
    const { token } = await control('createToken', { login: DEMO.bot })
    const { gitPath } = await control('createRepository', {
      repo: DEMO.repository,
      files: projectFiles(join(build.templates, 'demo', 'project')),
    })
    for (const name of Object.values(DEMO.labels)) {
      await control('createLabel', { repo: DEMO.repository, name, color: '7C3AED' })
    }
    const issue = await control('createIssue', {
      repo: DEMO.repository,
      author: DEMO.author,
      ...issueText(build),
      labels: [DEMO.labels[story.kind]],
    })
    const clone = join(root, 'projects', DEMO.repository)
    const programEnvironment = environmentOf(root, build, token, story, environment)
    await gitOutput(['clone', '--quiet', gitPath, clone], root, programEnvironment)
    writeFileAtomic(join(root, 'config.yaml'), configuration(root, build, url, story))
    return {
      root,
      clone,
      origin: gitPath,
      stateDir: join(root, 'state'),
      control,
      issue: issue.number,
      environment: programEnvironment,
      close: github.close,
      endRuns: () => endRuns(join(root, 'state')),
    }
  } catch (thrown) {
    github.close()
    throw thrown
  }
}

function requirePrograms(environment: Readonly<Record<string, string>>): void {
  const missing = ['git', 'python3'].filter((name) => findProgram(name, environment) === null)
  if (missing.length === 0) return
  throw fault('demo/refused', { reason: `it needs ${missing.join(' and ')} on PATH` })
}

function projectFiles(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listDirectory(folder).map((name) => [name, readText(join(folder, name))]),
  )
}

function issueText(build: Build): { title: string; body: string } {
  const [first = '', ...rest] = readText(join(build.templates, 'demo', 'issue.md')).split('\n')
  return { title: first.replace(/^# /, ''), body: rest.join('\n').trim() }
}

function readText(path: string): string {
  const bytes = readFileBounded(path, 1024 * 1024)
  if (bytes === null) throw fault('sys/io', { operation: 'Reading', path, reason: 'it is missing' })
  return bytes.toString('utf8')
}
