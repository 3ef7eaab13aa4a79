import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { PHASES, type Phase } from '../daemon/core/queue-state.ts'
import { BaseCommand } from './base-command.ts'

const ISSUE = {
  issue: Args.string({ description: 'The issue, as owner/repo#number.', required: true }),
}

const DRY_RUN = Flags.boolean({
  summary: 'Say what would happen, and change nothing.',
  default: false,
})

export class QueueList extends BaseCommand {
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
    const { listQueue } = await import('../daemon/app/list-queue.ts')
    const phase = flags.phase as Phase | undefined
    const list = listQueue(phase ?? null)
    if (!this.jsonEnabled()) {
      const { renderList } = await import('../daemon/app/render-queue-list.ts')
      const width = process.stdout.isTTY ? process.stdout.columns : null
      for (const line of renderList(list, width)) this.log(line)
    }
    return list
  }
}

export class QueueShow extends BaseCommand {
  static override summary = 'Show everything known about one issue and its last run.'
  static override description =
    'Where it stands, what it waits for, what a human can do, and where the files of its last run are. ' +
    'Reads the stored state and changes nothing.'
  static override examples = ['<%= config.bin %> queue show owner/repo#12']
  static override args = ISSUE

  async run(): Promise<unknown> {
    const { args } = await this.parse(QueueShow)
    const { showIssue } = await import('../daemon/app/show-issue.ts')
    const shown = showIssue(args.issue)
    if (!this.jsonEnabled()) {
      const { renderShow } = await import('../daemon/app/render-queue-show.ts')
      for (const line of renderShow(shown)) this.log(line)
    }
    return shown
  }
}

export class QueueReset extends BaseCommand {
  static override summary = 'Let an issue go on that failed, was skipped, or needs attention.'
  static override description =
    'Puts it back into the queue with a full retry budget. When its last run can go on where it was ' +
    'stopped, it does, and its worker is not run again.'
  static override examples = [
    '<%= config.bin %> queue reset owner/repo#12',
    '<%= config.bin %> queue reset owner/repo#12 --dry-run',
  ]
  static override args = ISSUE
  static override flags = {
    'dry-run': DRY_RUN,
    'force-finalization-reset': Flags.boolean({
      summary: 'Give up the work of the last run, and begin a new one.',
      default: false,
    }),
  }

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(QueueReset)
    const { changeQueueEntry } = await import('../daemon/app/change-queue-entry.ts')
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

export class QueueReprocess extends BaseCommand {
  static override summary = 'Have an issue worked on anew, whatever became of it before.'
  static override description =
    'Begins a new generation: a new run with a branch of its own, in which nothing of earlier runs goes ' +
    'on. Refused while a run is at work, and while a pull request waits for a human.'
  static override examples = [
    '<%= config.bin %> queue reprocess owner/repo#12',
    '<%= config.bin %> queue reprocess owner/repo#12 --dry-run',
  ]
  static override args = ISSUE
  static override flags = {
    'dry-run': DRY_RUN,
  }

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(QueueReprocess)
    const { changeQueueEntry } = await import('../daemon/app/change-queue-entry.ts')
    const { report, lines } = await changeQueueEntry(
      { verb: 'reprocess', issue: args.issue, dryRun: flags['dry-run'], isForced: false },
      (line) => this.note(line),
    )
    if (!this.jsonEnabled()) for (const line of lines) this.log(line)
    return report
  }
}
