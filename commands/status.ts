import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

export default class Status extends BaseCommand {
  static override jsonVersion = null
  static override summary = 'Show what is queued, running, waiting and in trouble.'
  static override description =
    'Reads the stored state and changes nothing. Exit code 3 means that nothing has run yet, 1 that the ' +
    'state cannot be read.'

  async run(): Promise<unknown> {
    await this.parse(Status)
    const { readStatus, STATUS_DIAGNOSTICS } = await import('../daemon/app/read-status.ts')
    const status = readStatus(buildOfThisProgram())
    if (status.diagnostic !== null) {
      process.exitCode = STATUS_DIAGNOSTICS[status.diagnostic].exitCode
    }
    if (!this.jsonEnabled()) {
      const { renderStatus } = await import('../daemon/app/render-status.ts')
      this.log(renderStatus(status))
    }
    return status
  }
}
