import * as Flags from '@oclif/core/flags'
import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

export default class Setup extends BaseCommand {
  static override summary = 'Make what is missing: a first configuration, the state, the bridge.'
  static override description =
    'What is there stays as it is, the rest of the host’s configuration included. May be repeated at any ' +
    'time; after an upgrade it also lays a changed template of the bridge beside yours. Under Hermes ' +
    '"hermes caduceus setup" builds the program first. Exit code 1 when something could not be made.'
  static override examples = [
    '<%= config.bin %> setup',
    '<%= config.bin %> setup --dry-run',
    '<%= config.bin %> setup --create-labels',
  ]
  static override flags = {
    'dry-run': Flags.boolean({
      summary: 'Tell what would be done, and change nothing.',
      default: false,
    }),
    'create-labels': Flags.boolean({
      summary: 'Also make the two trigger labels in the watched repositories.',
      default: false,
    }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Setup)
    const { runSetup } = await import('../daemon/app/run-setup.ts')
    const { renderSetup } = await import('../daemon/app/render-setup.ts')
    const report = await runSetup(buildOfThisProgram(), {
      dryRun: flags['dry-run'],
      createLabels: flags['create-labels'],
    })
    process.exitCode = report.exitCode
    if (!this.jsonEnabled()) for (const line of renderSetup(report)) this.log(line)
    return report
  }
}
