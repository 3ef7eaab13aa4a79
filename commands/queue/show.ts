import * as Args from '@oclif/core/args'
import { BaseCommand } from '../base-command.ts'

export default class QueueShow extends BaseCommand {
  static override summary = 'Show everything known about one issue and its last run.'
  static override description =
    'Where it stands, what it waits for, what a human can do, and where the files of its last run are. ' +
    'Reads the stored state and changes nothing.'
  static override examples = ['<%= config.bin %> queue show owner/repo#12']
  static override args = {
    issue: Args.string({ description: 'The issue, as owner/repo#number.', required: true }),
  }

  async run(): Promise<unknown> {
    const { args } = await this.parse(QueueShow)
    const { showIssue } = await import('../../daemon/app/queue-report.ts')
    const shown = showIssue(args.issue)
    if (!this.jsonEnabled()) {
      const { renderShow } = await import('../../daemon/app/render-queue.ts')
      for (const line of renderShow(shown)) this.log(line)
    }
    return shown
  }
}
