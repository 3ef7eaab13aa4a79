import * as Flags from '@oclif/core/flags'
import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

export default class Run extends BaseCommand {
  static override summary = 'Poll GitHub, start what is due, and leave.'
  static override description =
    'One tick: looks after running work, polls the watched repositories, and starts a detached run for ' +
    'each issue whose turn it is. Prints nothing when all is well. Cron calls this; a bare call is the same.'
  static override examples = ['<%= config.bin %> run', '<%= config.bin %> run --now --wait']
  static override flags = {
    wait: Flags.boolean({ summary: 'Stay until everything this call started has settled.' }),
    now: Flags.boolean({ summary: 'Poll at once, however recent the last poll was.' }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Run)
    const { runTick } = await import('../daemon/app/run-tick.ts')
    const report = await runTick(buildOfThisProgram(), flags)
    for (const line of [...report.problems, ...report.attention]) this.note(line)
    process.exitCode = report.exitCode
    return report
  }
}
