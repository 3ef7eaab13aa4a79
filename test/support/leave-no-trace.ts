import { afterEach, beforeEach, expect } from '@jest/globals'
import { configureGlobal } from 'fast-check'

// Every test leaves the process as it found it: no runtime warning, no extra signal or exit listener.

const WATCHED_EVENTS = ['SIGINT', 'SIGTERM', 'exit', 'uncaughtException', 'unhandledRejection']

// Properties meet the same values each time; PROPERTY_SEED lets them meet others. A failure prints its seed.
configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? 787_025_515) })

let warnings: string[] = []
let listeners: number[] = []

const note = (warning: Error): void => {
  if (warning.name !== 'ExperimentalWarning') warnings.push(`${warning.name}: ${warning.message}`)
}

const countListeners = (): number[] => WATCHED_EVENTS.map((event) => process.listenerCount(event))

beforeEach(() => {
  warnings = []
  process.on('warning', note)
  listeners = countListeners()
})

afterEach(() => {
  process.off('warning', note)
  expect(warnings).toEqual([])
  expect(countListeners()).toEqual(listeners)
})
