/** What a fault that ends a run does to its issue; rows of TRANSITIONS answer to each. */
type FaultEvent =
  | 'worker-failed'
  | 'infrastructure-failed'
  | 'rate-limited'
  | 'interrupted'
  | 'withdrawn'
  | 'blocked'

/** What the program does about every fault of a class. */
export type FaultPolicy = Readonly<{
  meaning: string
  /** Whether it uses up one of the attempts an issue has. */
  attempts: '+1' | 'keep'
  /** What happens to an issue whose run it ends. */
  event: FaultEvent
  /** Whether it may pass by itself, so that a run whose work is paid for waits for it. */
  mayPass: boolean
  /** Whether a run that waits for it needs a human in the end (`circuit_max_degraded_seconds`). */
  endsPatience: boolean
  /** Whether asking again is of no use. */
  isRefusal: boolean
  /** Whether a run that it ended says nothing about its surroundings, so that circuits stay as they are. */
  keepsCircuits: boolean
  /** Of a command that met it. */
  exitCode: 1 | 2
  /** How `doctor` shows it. */
  finding: 'warn' | 'fail'
}>

/** The one place where the policy of a class of faults stands. */
// biome-ignore format: a table is read by its rows
export const FAULT_CLASSES = {
  worker: { attempts: '+1', event: 'worker-failed', mayPass: false, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'the worker failed; it counts against the retry budget' },
  infrastructure: { attempts: 'keep', event: 'infrastructure-failed', mayPass: true, endsPatience: true, isRefusal: false, keepsCircuits: true, exitCode: 1, finding: 'fail', meaning: 'something around us failed; tried again later' },
  'rate-limited': { attempts: 'keep', event: 'rate-limited', mayPass: true, endsPatience: false, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'warn', meaning: 'GitHub asked us to wait' },
  interrupted: { attempts: 'keep', event: 'interrupted', mayPass: false, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'the run was cut off by a signal, crash or reboot' },
  cancelled: { attempts: 'keep', event: 'withdrawn', mayPass: false, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'the issue was withdrawn while we worked on it' },
  terminal: { attempts: 'keep', event: 'blocked', mayPass: false, endsPatience: true, isRefusal: true, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'a human has to look; nothing is tried again by itself' },
  config: { attempts: 'keep', event: 'infrastructure-failed', mayPass: true, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'the configuration has to be fixed first' },
  state: { attempts: 'keep', event: 'infrastructure-failed', mayPass: true, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'the stored state cannot be used as it is' },
  usage: { attempts: 'keep', event: 'infrastructure-failed', mayPass: false, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 2, finding: 'fail', meaning: 'the command was called wrongly' },
  internal: { attempts: 'keep', event: 'infrastructure-failed', mayPass: true, endsPatience: true, isRefusal: false, keepsCircuits: false, exitCode: 1, finding: 'fail', meaning: 'a fault of our own; please report it' },
} as const satisfies Record<string, FaultPolicy>

export type FaultClass = keyof typeof FAULT_CLASSES

/** One row of the catalogue; `{name}` is filled from the details given where the fault is made. */
export type FaultSpec = Readonly<{ class: FaultClass; message: string; next: string }>
