import { paint } from './paint.ts'
import type { SetupReport, SetupStep } from './setup-report.ts'

const MARKS = {
  ok: paint.good('[OK]'),
  warn: paint.step('[WARN]'),
  fail: paint.bad('[FAIL]'),
} as const satisfies Record<SetupStep['status'], string>

/** The results of `caduceus setup` as lines for people. */
export function renderSetup({ steps }: SetupReport): readonly string[] {
  return steps.flatMap(({ name, subject, status, detail, next, lines }) => [
    `${MARKS[status]} ${subject === null ? name : `${name} ${subject}`} — ${detail}`,
    ...lines.map((line) => `    ${line}`),
    ...(next === null ? [] : [`    next action: ${next}`]),
  ])
}
