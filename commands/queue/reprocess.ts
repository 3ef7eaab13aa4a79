import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { BaseCommand } from '../base-command.ts'

export default class QueueReprocess extends BaseCommand {
  static override summary = 'Have an issue worked on anew, whatever became of it before.'
  static override description =
    'Begins a new generation: a new run with a branch of its own, in which nothing of earlier runs goes ' +
    'on. Refused while a run is at work, and while a pull request waits for a human.'
  static override examples = [
    '<%= config.bin %> queue reprocess owner/repo#12',
    '<%= config.bin %> queue reprocess owner/repo#12 --dry-run',
  ]
  static override args = {
    issue: Args.string({ description: 'The issue, as owner/repo#number.', required: true }),
  }
  static override flags = {
    'dry-run': Flags.boolean({
      summary: 'Say what would happen, and change nothing.',
      default: false,
    }),
  }

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(QueueReprocess)
    const { changeQueueEntry } = await import('../../daemon/app/queue-change.ts')
    const { report, lines } = await changeQueueEntry(
      { verb: 'reprocess', issue: args.issue, dryRun: flags['dry-run'], isForced: false },
      (line) => this.note(line),
    )
    if (!this.jsonEnabled()) for (const line of lines) this.log(line)
    return report
  }
}
