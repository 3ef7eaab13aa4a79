import { Command } from '@oclif/core/command'
import { asFault, describeFault } from '../daemon/core/fault.ts'
import { policyOf } from '../daemon/core/fault-catalogue.ts'

/** What every command shares: how a fault is told, and which exit code it has (design §11). */
export abstract class BaseCommand extends Command {
  static override enableJsonFlag = true
  /** Of the object that --json prints (RELEASING.md); null = the object brings its own, or is no shape of ours. */
  static jsonVersion: string | null = '1.0.0'

  /** One line that says what, where and what to do next; with --json the same as an object. */
  protected override async catch(error: Error & { exitCode?: number }): Promise<unknown> {
    if ('oclif' in error || 'parse' in error) throw error // oclif's own: a usage error, or an exit
    const met = asFault(error)
    process.exitCode = policyOf(met.code).exitCode
    if (this.jsonEnabled()) {
      this.logJson({ error: { code: met.code, message: met.message, next: met.next } })
    } else {
      process.stderr.write(`caduceus: ${describeFault(met)}\n`)
    }
    return undefined
  }

  protected override toSuccessJson(result: unknown): unknown {
    const { jsonVersion: version } = this.constructor as typeof BaseCommand
    if (version === null || typeof result !== 'object' || result === null) return result
    return { version, ...result }
  }

  /** A line for the operator that is not the command's result. */
  protected note(line: string): void {
    process.stderr.write(`caduceus: ${line}\n`)
  }
}
