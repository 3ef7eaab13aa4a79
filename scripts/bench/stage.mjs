// Where the measured program works: an embedded GitHub as a process of its own, operator's clones, and
// state directories with a configuration each.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { importTypeScript } from '../import-typescript.mjs'

const REPOSITORY = dirname(dirname(import.meta.dirname))
const POLL_INTERVAL_MS = 1000

/** @param dist folder of the bundles to be measured */
export async function openStage(dist) {
  const root = mkdtempSync(join(tmpdir(), 'bench-'))
  mkdirSync(join(root, 'home'))
  const github = await startGitHub(dist, join(root, 'github'))
  const { token } = await github.control('createToken', { login: 'automation-bot' })
  return {
    root,
    dist,
    token,
    url: github.url,
    control: github.control,
    close: async () => {
      await github.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function startGitHub(dist, root) {
  mkdirSync(root)
  const child = spawn(process.execPath, [join(dist, 'embedded-github.mjs'), '--root', root], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  const line = await new Promise((resolve, reject) => {
    lines.once('line', resolve)
    child.once('exit', () => reject(new Error('the embedded GitHub did not start')))
  })
  const { url } = JSON.parse(line)
  return {
    url,
    control: async (verb, params = {}) => {
      const answer = await fetch(`${url}/_control/${verb}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(params),
      })
      const { result, error } = await answer.json()
      if (error !== undefined) throw new Error(`${verb}: ${error}`)
      return result
    },
    close: async () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}

/** Makes repositories on the embedded GitHub, and one clone copied for each, its origin rewritten. */
export async function makeRepositories(stage, names) {
  const [first, ...others] = names
  const { gitPath } = await stage.control('createRepository', { repo: first })
  const clone = join(stage.root, 'projects', first)
  execFileSync('git', ['clone', '--quiet', gitPath, clone])
  for (const repo of others) {
    const made = await stage.control('createRepository', { repo, copyOf: gitPath })
    const copy = join(stage.root, 'projects', repo)
    cpSync(clone, copy, { recursive: true })
    const path = join(copy, '.git', 'config')
    writeFileSync(path, readFileSync(path, 'utf8').replace(gitPath, made.gitPath))
  }
}

/**
 * Of everything that is measured: what a variable makes Node do at its start, such as reading more
 * certificates, would hide what the program does.
 */
export function environmentOf({ root }) {
  return { PATH: process.env.PATH, HOME: join(root, 'home') }
}

/** The program with a configuration and a state directory of its own. */
export function openProgram(stage, name, watchedRepos) {
  const stateDir = join(stage.root, name)
  const configuration = `${stateDir}.yaml`
  mkdirSync(stateDir, { mode: 0o700 })
  const config = {
    watched_repos: watchedRepos,
    api_base: stage.url,
    workdir_base: join(stage.root, 'projects'),
    state_dir: stateDir,
    worker_command: '/bin/true',
    poll_interval_seconds: POLL_INTERVAL_MS / 1000,
  }
  writeFileSync(configuration, JSON.stringify(config))
  const own = { CADUCEUS_CONFIG: configuration, CADUCEUS_GITHUB_TOKEN: stage.token }
  const env = { ...environmentOf(stage), ...own }
  const run = (nodeOptions, ...args) => {
    const argv = [...nodeOptions, join(stage.dist, 'caduceus.mjs'), ...args]
    const started = performance.now()
    const done = spawnSync(process.execPath, argv, { env, encoding: 'utf8' })
    return { ...done, ms: performance.now() - started }
  }
  const meta = () => JSON.parse(readFileSync(join(stateDir, 'state_meta.json'), 'utf8'))
  /** A tick whose poll is due; the wait for that does not count. `lastPoll` is when the one before began. */
  const runTick = async (lastPoll, nodeOptions = []) => {
    await sleep(Math.max(0, lastPoll + POLL_INTERVAL_MS - Date.now()))
    const done = run(nodeOptions, 'run')
    if (Date.parse(meta().lastPollStarted) === lastPoll) throw new Error('the tick did not poll')
    return done
  }
  const lastPoll = () => Date.parse(meta().lastPollStarted)
  return {
    stateDir,
    /** Milliseconds of an idle tick. */
    tick: async (nodeOptions) => succeeded(await runTick(lastPoll(), nodeOptions), ''),
    /** Milliseconds of `status`. */
    status: () => succeeded(run([], 'status'), null),
    /** The first ticks: both labels, then what has changed, then nothing any more. */
    settle: async () => {
      // The first one also tells about the stored issues that need attention.
      await runTick(0)
      await runTick(lastPoll())
      await runTick(lastPoll())
      const { lastOutcome } = meta()
      if (lastOutcome !== 'idle304') throw new Error(`ticks are not idle, but ${lastOutcome}`)
    },
  }
}

/** @param expected what it has to print, or null for anything */
function succeeded({ status, stdout, stderr, ms }, expected) {
  if (status === 0 && stderr === '' && stdout === (expected ?? stdout)) return ms
  throw new Error(`the program failed (${status}): ${stdout}${stderr}`)
}

/** How often each phase occurs among a hundred stored issues; none of them is due. */
const PHASES = {
  done: 60,
  skipped: 15,
  failed: 8,
  needs_attention: 8,
  queued: 8,
  awaiting_review: 1,
}

/** Fills a state directory with issues, by the program's own rules for what may be stored. */
export async function storeIssues(stateDir, repo, count) {
  const { EMPTY_QUEUE, newEntry } = await importTypeScript(REPOSITORY, 'daemon/core/queue-state.ts')
  const { renderStoredFile } = await importTypeScript(REPOSITORY, 'daemon/state/stored-file.ts')
  const { QUEUE_FORMAT } = await importTypeScript(REPOSITORY, 'daemon/state/stored-formats.ts')
  const [owner, name] = repo.split('/')
  const now = new Date().toISOString()
  const phases = Object.entries(PHASES).flatMap(([phase, times]) => Array(times).fill(phase))
  const entries = Array.from({ length: count }, (_, index) => {
    const key = { owner, name, number: index + 1 }
    // Of few issues each phase is one.
    const phase = count < 100 ? Object.keys(PHASES)[index % 6] : phases[index % 100]
    return [
      `${repo}#${key.number}`,
      { ...newEntry(key, 'code', now, now), phase, attempts: 1, ...ADDITIONS[phase]?.(key) },
    ]
  })
  const path = join(stateDir, 'state.json')
  const content = { ...EMPTY_QUEUE, entries: Object.fromEntries(entries) }
  writeFileSync(path, renderStoredFile(path, QUEUE_FORMAT, content), { mode: 0o600 })
}

const error = () => ({
  code: 'worker/failed',
  message: 'The worker ended with exit code 1; see its transcript.',
  at: new Date().toISOString(),
})
const ADDITIONS = {
  failed: () => ({ lastError: error() }),
  needs_attention: () => ({
    lastError: error(),
    blocked: { source: 'worker/failed', hint: 'Read the transcript.' },
  }),
  // Backed off for longer than any benchmark takes.
  queued: () => ({ nextAttemptAt: new Date(Date.now() + 50 * 60_000).toISOString() }),
  awaiting_review: ({ number }) => ({ pull: { number, url: `https://github.com/pull/${number}` } }),
}
