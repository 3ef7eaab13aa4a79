import { BaseCommand } from './base-command.ts'

export class ConfigShow extends BaseCommand {
  static override summary = 'Show every configuration key with the value in effect.'
  static override description = 'Secrets are masked. Defaults are marked.'

  async run(): Promise<unknown> {
    await this.parse(ConfigShow)
    const { showConfig, renderConfig } = await import('../daemon/app/config-report.ts')
    const shown = showConfig()
    if (!this.jsonEnabled()) this.log(renderConfig(shown))
    return shown
  }
}

export class ConfigValidate extends BaseCommand {
  static override summary = 'Check the configuration and report every problem at once.'
  static override description = 'Exit code 0 when it would load (warnings included), 1 when not.'

  async run(): Promise<unknown> {
    await this.parse(ConfigValidate)
    const { validateConfig, renderValidation } = await import('../daemon/app/config-report.ts')
    const validation = validateConfig()
    process.exitCode = validation.valid ? 0 : 1
    if (!this.jsonEnabled()) this.log(renderValidation(validation))
    return validation
  }
}

export class ConfigSchema extends BaseCommand {
  static override jsonVersion = null
  static override summary = 'Print the JSON schema of the configuration, for editors.'

  async run(): Promise<unknown> {
    await this.parse(ConfigSchema)
    const { configJsonSchema } = await import('../daemon/app/config-report.ts')
    const schema = configJsonSchema()
    if (!this.jsonEnabled()) this.log(JSON.stringify(schema, null, 2))
    return schema
  }
}
