import * as Flags from '@oclif/core/flags'
import { buildOfThisProgram } from '../daemon/app/build.ts'
import { BaseCommand } from './base-command.ts'

export class Run extends BaseCommand {
  static override summary = 'Poll GitHub, start what is due, and leave.'
  static override description =
    'One tick: looks after running work, polls the watched repositories, and starts a detached run for ' +
    'each issue whose turn it is. Prints nothing when all is well. Cron calls this; a bare call is the same.'
  static override examples = ['<%= config.bin %> run', '<%= config.bin %> run --now --wait']
  static override flags = {
    wait: Flags.boolean({ summary: 'Stay until everything this call started has settled.' }),
    now: Flags.boolean({ summary: 'Poll at once, however recent the last poll was.' }),
  }

  async run(): Promise<unknown> {
    const { flags } = await this.parse(Run)
    const { runTick } = await import('../daemon/app/run-tick.ts')
    const print = (line: string): void => this.note(line)
    const report = await runTick(buildOfThisProgram(), { ...flags, print })
    process.exitCode = report.exitCode
    return report
  }
}

export class Daemon extends BaseCommand {
  static override summary = 'Run a tick every poll_interval_seconds, in the foreground.'
  static override description =
    'For machines without Hermes and without cron. Says one line when it starts, stops, or meets a problem; ' +
    'with --json each line is an object. SIGTERM lets the tick at work finish; runs go on by themselves.'
  static override examples = ['<%= config.bin %> daemon', '<%= config.bin %> daemon --json']

  async run(): Promise<void> {
    await this.parse(Daemon)
    const { renderEvent } = await import('../daemon/app/daemon-event.ts')
    const { runDaemon } = await import('../daemon/app/run-daemon.ts')
    const isJson = this.jsonEnabled()
    await runDaemon(buildOfThisProgram(), (event) => {
      if (isJson) process.stdout.write(`${JSON.stringify(event)}\n`)
      else this.note(renderEvent(event))
    })
  }

  /** The lines are the result; there is no other one at the end. */
  override logJson(json: unknown): void {
    if (json !== undefined) super.logJson(json)
  }
}
