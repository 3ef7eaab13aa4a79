import * as Flags from '@oclif/core/flags'
import { asFault } from '../daemon/core/fault.ts'
import { BaseCommand } from './base-command.ts'

/** What cron-install and cron-remove share: a failure is one line that begins like a check's. */
abstract class CronCommand extends BaseCommand {
  static override flags = {
    'dry-run': Flags.boolean({
      summary: 'Say what would happen, and change nothing.',
      default: false,
    }),
  }

  protected override async catch(error: Error & { exitCode?: number }): Promise<unknown> {
    if (this.jsonEnabled() || 'oclif' in error || 'parse' in error) return super.catch(error)
    const { message, next } = asFault(error)
    process.exitCode = 1
    process.stderr.write(`${[`[FAIL] ${this.id}`, message, next].filter(Boolean).join(' — ')}\n`)
    return undefined
  }
}

export class CronInstall extends CronCommand {
  static override summary = 'Let Hermes run a tick every poll_interval_seconds.'
  static override description =
    'Writes the script that the job runs, and creates or puts right the one job that runs it. A paused ' +
    'job stays paused. Call it again after a change of the interval, or when it was cut off.'
  static override examples = [
    '<%= config.bin %> cron-install',
    '<%= config.bin %> cron-install --dry-run',
  ]

  async run(): Promise<unknown> {
    const { flags } = await this.parse(CronInstall)
    const { installCron } = await import('../daemon/app/install-cron.ts')
    const { renderInstall } = await import('../daemon/app/render-cron.ts')
    const report = await installCron({ dryRun: flags['dry-run'] })
    if (!this.jsonEnabled()) for (const line of renderInstall(report)) this.log(line)
    return report
  }
}

export class CronRemove extends CronCommand {
  static override summary = 'Take back what cron-install made.'
  static override description =
    'Removes the jobs of Hermes that run our script, and the script. State, bridge, configuration and ' +
    'clones stay. Nothing to remove is no failure.'
  static override examples = ['<%= config.bin %> cron-remove']

  async run(): Promise<unknown> {
    const { flags } = await this.parse(CronRemove)
    const { removeCron } = await import('../daemon/app/remove-cron.ts')
    const { renderRemove } = await import('../daemon/app/render-cron.ts')
    const report = await removeCron({ dryRun: flags['dry-run'] })
    if (!this.jsonEnabled()) for (const line of renderRemove(report)) this.log(line)
    return report
  }
}
