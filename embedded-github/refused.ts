import { type Fault, fault } from '../daemon/core/fault.ts'

/** What an operator asked for and cannot have. */
export const refused = (reason: string): Fault => fault('demo/refused', { reason })
