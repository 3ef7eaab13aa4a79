import { BaseCommand } from '../base-command.ts'

export default class ConfigValidate extends BaseCommand {
  static override summary = 'Check the configuration and report every problem at once.'
  static override description = 'Exit code 0 when it would load (warnings included), 1 when not.'

  async run(): Promise<unknown> {
    await this.parse(ConfigValidate)
    const { validateConfig, renderValidation } = await import('../../daemon/app/config-report.ts')
    const validation = validateConfig()
    process.exitCode = validation.valid ? 0 : 1
    if (!this.jsonEnabled()) this.log(renderValidation(validation))
    return validation
  }
}
