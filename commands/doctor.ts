import * as Flags from '@oclif/core/flags'
import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

export default class Doctor extends BaseCommand {
  static override jsonVersion = null
  static override summary = 'Check everything a tick needs, and say what to do about what is wrong.'
  static override description =
    'Reads only, on GitHub too. Exit code 0 when nothing failed, 1 when the configuration, the token, a ' +
    'clone or the state has to be mended, 2 when a program or the host is missing something.'
  static override examples = [
    '<%= config.bin %> doctor',
    '<%= config.bin %> doctor --fix',
    '<%= config.bin %> doctor --offline --json',
    '<%= config.bin %> doctor --bundle support.json',
  ]
  static override flags = {
    offline: Flags.boolean({
      summary: 'Leave out what needs the network, and say what that is.',
      default: false,
    }),
    fix: Flags.boolean({
      summary:
        'Mend permissions, the executable bit of the bridge, missing folders, stale builds and the cron wrapper first.',
      default: false,
    }),
    bundle: Flags.string({
      summary: 'Also write a support archive without secrets to this file, which must not exist.',
      helpValue: 'FILE',
    }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Doctor)
    const { examine, renderDoctor } = await import('../daemon/doctor/examine.ts')
    const isWatched = process.stderr.isTTY && !this.jsonEnabled()
    const report = await examine(
      buildOfThisProgram(),
      { offline: flags.offline, fix: flags.fix, bundle: flags.bundle ?? null },
      (done, total) => {
        const line = done < total ? `checked ${done} of ${total} …` : ''
        if (isWatched) process.stderr.write(`\r\u001B[K${line}`)
      },
    )
    process.exitCode = report.exitCode
    if (!this.jsonEnabled()) for (const line of renderDoctor(report)) this.log(line)
    return report
  }
}
