/** What a class of fault means for the attempt budget, the issue, and the exit code (design §6, §11). */
export const FAULT_CLASSES = {
  worker: { attempts: '+1', meaning: 'the worker failed; it counts against the retry budget' },
  infrastructure: { attempts: 'keep', meaning: 'something around us failed; tried again later' },
  'rate-limited': { attempts: 'keep', meaning: 'GitHub asked us to wait' },
  interrupted: { attempts: 'keep', meaning: 'the run was cut off by a signal, crash or reboot' },
  cancelled: { attempts: 'keep', meaning: 'the issue was withdrawn while we worked on it' },
  terminal: { attempts: 'keep', meaning: 'a human has to look; nothing is tried again by itself' },
  config: { attempts: 'keep', meaning: 'the configuration has to be mended first' },
  state: { attempts: 'keep', meaning: 'the stored state cannot be used as it is' },
  usage: { attempts: 'keep', meaning: 'the command was called wrongly' },
  internal: { attempts: 'keep', meaning: 'a fault of our own; please report it' },
} as const satisfies Record<string, { attempts: '+1' | 'keep'; meaning: string }>

export type FaultClass = keyof typeof FAULT_CLASSES

/** One row of the catalogue; `{name}` is filled from the details given where the fault is made. */
export type FaultSpec = Readonly<{ class: FaultClass; message: string; next: string }>
