/** What the daemon reports; each event is one line. */
export type DaemonEvent =
  | Readonly<{ event: 'started'; pid: number; everySeconds: number; stateDir: string }>
  | Readonly<{ event: 'problem'; message: string }>
  | Readonly<{ event: 'interval'; everySeconds: number }>
  | Readonly<{ event: 'stopping' | 'stopped' }>

/** An event as a line for people. */
export function renderEvent(event: DaemonEvent): string {
  switch (event.event) {
    case 'started':
      return `daemon ${event.pid} runs a tick every ${event.everySeconds} s (state in ${event.stateDir})`
    case 'interval':
      return `the interval is ${event.everySeconds} s now`
    case 'problem':
      return event.message
    case 'stopping':
      return 'daemon is stopping; a tick at work may finish, and runs go on'
    default:
      return 'daemon stopped'
  }
}
