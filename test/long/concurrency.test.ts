import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Crowd, openCrowd, runCrowd } from '../support/crowd.ts'

const REPOSITORIES = 40
const ISSUES = 200

describe('eight ticks at a time, over 40 repositories with 200 issues', () => {
  let crowd: Crowd

  beforeAll(async () => {
    crowd = await openCrowd(REPOSITORIES)
  }, 120_000)
  afterAll(async () => {
    await crowd.rig.close()
  })

  test.each([1, 4, 0])(
    'with max_runs_per_repo %i every issue is run once, and never more at once than configured',
    async (perRepository) => {
      const began = performance.now()
      const report = await runCrowd(crowd, ISSUES, { parallelism: 4, perRepository })
      const seconds = ((performance.now() - began) / 1000).toFixed(0)
      const { waves, skipped, most } = report
      process.stdout.write(
        `max_runs_per_repo ${perRepository}: ${ISSUES} issues, ${8 * waves} ticks, of which ${skipped} met another, at most ${most} workers at once, ${seconds} s\n`,
      )
      expect(report).toMatchObject({ most: 4, violations: [] })
      expect(skipped).toBeGreaterThan(0)
    },
    1_800_000,
  )
})
