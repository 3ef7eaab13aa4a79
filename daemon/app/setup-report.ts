import { asFault } from '../core/fault.ts'

/** One thing that setup checked, and made where it was absent. */
export type SetupStep = Readonly<{
  name: string
  /** Which one of several, such as a repository; null = there is only one. */
  subject: string | null
  status: 'ok' | 'warn' | 'fail'
  detail: string
  /** What the user has to do; null = nothing. */
  next: string | null
  /** Lines for the user to paste. */
  lines: readonly string[]
}>

/** `setup --json`. */
export type SetupReport = Readonly<{
  dryRun: boolean
  exitCode: 0 | 1
  steps: readonly SetupStep[]
}>

export type SetupSteps = readonly SetupStep[]

/** The results of one step; what it throws becomes a failed result, so that the other steps still run. */
export async function attempt(
  name: string,
  run: () => SetupSteps | Promise<SetupSteps>,
): Promise<SetupSteps> {
  try {
    return await run()
  } catch (thrown) {
    return [failed(name, thrown)]
  }
}

export function failed(name: string, thrown: unknown, lines: readonly string[] = []): SetupStep {
  const { message, next } = asFault(thrown)
  return { name, subject: null, status: 'fail', detail: message, next: next || null, lines }
}

export function done(name: string, detail: string, next: string | null = null): SetupStep {
  return { name, subject: null, status: next === null ? 'ok' : 'warn', detail, next, lines: [] }
}
