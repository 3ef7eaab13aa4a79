// By their own paths: the package's index loads all of it.
import { flush } from '@oclif/core/flush'
import { handle } from '@oclif/core/handle'
import { run } from '@oclif/core/run'
import { buildOfThisProgram } from './app/build.ts'

const UNKNOWN_COMMAND = /^command (.+) not found\.?$/i

/** Runs one command line. Sets the exit code; the commands themselves print faults. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const { dist } = buildOfThisProgram()
  try {
    await run([...argv], { root: dist })
    await flush()
  } catch (error) {
    const [, unknown] = UNKNOWN_COMMAND.exec(error instanceof Error ? error.message : '') ?? []
    if (unknown !== undefined) {
      const name = unknown.replaceAll(':', ' ')
      process.stderr.write(`caduceus: There is no command "${name}". See: caduceus --help\n`)
      process.exitCode = 2
      return
    }
    await handle(error instanceof Error ? error : new Error(String(error), { cause: error }))
  }
}

/** For the manifest and oclif's explicit command discovery. */
export { COMMANDS } from '../commands/commands.ts'
