import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../base-command.ts'

export default class QueueReset extends BaseCommand {
  static override summary = 'Let an issue go on that failed, was skipped, or needs attention.'
  static override description =
    'Puts it back into the queue with a full retry budget. When its last run can go on where it was ' +
    'stopped, it does, and its worker is not run again.'
  static override examples = [
    '<%= config.bin %> queue reset owner/repo#12',
    '<%= config.bin %> queue reset owner/repo#12 --dry-run',
  ]
  static override args = {
    issue: Args.string({ description: 'The issue, as owner/repo#number.', required: true }),
  }
  static override flags = {
    'dry-run': Flags.boolean({
      summary: 'Say what would happen, and change nothing.',
      default: false,
    }),
    'force-finalization-reset': Flags.boolean({
      summary: 'Give up the work of the last run, and begin a new one.',
      default: false,
    }),
  }

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(QueueReset)
    const { changeQueueEntry } = await import('../../daemon/app/queue-change.ts')
    const { report, lines } = await changeQueueEntry(
      {
        verb: 'reset',
        issue: args.issue,
        dryRun: flags['dry-run'],
        isForced: flags['force-finalization-reset'],
      },
      (line) => this.note(line),
    )
    if (!this.jsonEnabled()) for (const line of lines) this.log(line)
    return report
  }
}
