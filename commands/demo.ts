import { randomInt } from 'node:crypto'
import * as Flags from '@oclif/core/flags'
import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

/** Seeds that people can read and type. */
const MAX_SEED = 999_999

export default class Demo extends BaseCommand {
  static override summary = 'See the whole job done, on this machine alone.'
  static override description =
    'Makes a small repository with a failing test, an embedded GitHub and a labelled issue, and lets the ' +
    'real program turn the issue into a pull request. Needs no token, no network and no configuration.'
  static override usage =
    'demo [--json] [--investigate] [--dry-run | --fail | --crash [--seed N]] [--keep DIR]'
  static override examples = [
    '<%= config.bin %> demo',
    '<%= config.bin %> demo --crash',
    '<%= config.bin %> demo --fail --keep DIR',
  ]
  static override flags = {
    investigate: Flags.boolean({ summary: 'An investigation ticket: findings, no pull request.' }),
    'dry-run': Flags.boolean({
      summary: 'The worker runs, nothing is published; shows the report.',
    }),
    fail: Flags.boolean({ summary: 'The worker fails; shows the retry budget.' }),
    crash: Flags.boolean({
      summary: 'Kill its processes at random moments; it still ends with exactly one pull request.',
      exclusive: ['dry-run', 'fail'],
    }),
    seed: Flags.integer({
      summary: 'Plan the kills of --crash as an earlier demo with this seed did.',
      helpValue: 'N',
      min: 0,
      max: MAX_SEED,
      dependsOn: ['crash'],
    }),
    keep: Flags.string({ summary: 'Keep everything in this folder.', helpValue: 'DIR' }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Demo)
    const { runDemo } = await import('../daemon/demo/run-demo.ts')
    const report = await runDemo(
      buildOfThisProgram(),
      {
        investigate: flags.investigate,
        dryRun: flags['dry-run'],
        fail: flags.fail,
        crashSeed: flags.crash ? (flags.seed ?? randomInt(MAX_SEED)) : null,
        keep: flags.keep ?? null,
      },
      (line) => {
        if (!this.jsonEnabled()) this.log(line)
      },
    )
    return report
  }
}
