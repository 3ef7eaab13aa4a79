import { BaseCommand } from '../base-command.ts'

export default class ConfigSchema extends BaseCommand {
  static override summary = 'Print the JSON schema of the configuration, for editors.'

  async run(): Promise<unknown> {
    await this.parse(ConfigSchema)
    const { configJsonSchema } = await import('../../daemon/app/config-report.ts')
    const schema = configJsonSchema()
    if (!this.jsonEnabled()) this.log(JSON.stringify(schema, null, 2))
    return schema
  }
}
