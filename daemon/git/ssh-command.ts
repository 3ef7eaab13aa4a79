import { basename } from 'node:path'

/** How each kind of ssh program is told never to ask (ssh_config(5) BatchMode; plink -batch). */
const BATCH_OPTIONS = {
  ssh: ' -oBatchMode=yes',
  plink: ' -batch',
  putty: ' -batch',
  tortoiseplink: '',
  simple: '',
} as const satisfies Record<string, string>

/** What the operator configured about ssh; null = nothing. */
export type SshSettings = Readonly<{
  /** GIT_SSH_COMMAND: a shell command. */
  environmentCommand: string | null
  /** core.sshCommand: a shell command. */
  configuredCommand: string | null
  /** GIT_SSH: one program, not a shell command. */
  program: string | null
  /** GIT_SSH_VARIANT or ssh.variant. */
  variant: string | null
}>

/**
 * The value for GIT_SSH_COMMAND: what git itself would choose, in git's order, told not to prompt
 * (C32). A program that is not known to be something else is taken for OpenSSH, as its wrappers are.
 */
export function sshCommand(settings: SshSettings): string {
  const { environmentCommand, configuredCommand, program } = settings
  const command = environmentCommand ?? configuredCommand ?? quoteProgram(program ?? 'ssh')
  return command + batchOption(settings.variant ?? guessVariant(command))
}

function batchOption(variant: string): string {
  return isKnownVariant(variant) ? BATCH_OPTIONS[variant] : BATCH_OPTIONS.ssh
}

function isKnownVariant(variant: string): variant is keyof typeof BATCH_OPTIONS {
  return Object.hasOwn(BATCH_OPTIONS, variant)
}

/** By the name of the program, as git does it. */
function guessVariant(command: string): string {
  const program = /^\s*(?:'([^']*)'|"([^"]*)"|(\S+))/.exec(command)
  const name = basename(program?.[1] ?? program?.[2] ?? program?.[3] ?? '').toLowerCase()
  return name.replace(/\.exe$/, '')
}

function quoteProgram(program: string): string {
  return /^[\w./-]+$/.test(program) ? program : `'${program.replaceAll("'", `'\\''`)}'`
}
