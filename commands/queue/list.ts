import * as Flags from '@oclif/core/flags'
import { PHASES, type Phase } from '../../daemon/core/queue.ts'
import { BaseCommand } from '../base-command.ts'

export default class QueueList extends BaseCommand {
  static override summary = 'List the issues, what needs a human first.'
  static override description =
    'One line for each: issue, phase, attempts, last change, when it goes on or its pull request, and ' +
    'the last error. Reads the stored state and changes nothing.'
  static override examples = [
    '<%= config.bin %> queue list',
    '<%= config.bin %> queue list --phase failed',
  ]
  static override flags = {
    phase: Flags.string({
      summary: 'Only those in this phase.',
      options: Object.keys(PHASES),
      helpValue: 'PHASE',
    }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(QueueList)
    const { listQueue } = await import('../../daemon/app/queue-report.ts')
    const phase = flags.phase as Phase | undefined
    const list = listQueue(phase ?? null)
    if (!this.jsonEnabled()) {
      const { renderList } = await import('../../daemon/app/render-queue.ts')
      const width = process.stdout.isTTY ? process.stdout.columns : null
      for (const line of renderList(list, width)) this.log(line)
    }
    return list
  }
}
