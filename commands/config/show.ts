import { BaseCommand } from '../base-command.ts'

export default class ConfigShow extends BaseCommand {
  static override summary = 'Show every configuration key with the value in effect.'
  static override description = 'Secrets are masked. Defaults are marked.'

  async run(): Promise<unknown> {
    await this.parse(ConfigShow)
    const { showConfig, renderConfig } = await import('../../daemon/app/config-report.ts')
    const shown = showConfig()
    if (!this.jsonEnabled()) this.log(renderConfig(shown))
    return shown
  }
}
