import { afterEach, beforeEach, expect } from '@jest/globals'

// Every test leaves the process as it found it: no runtime warning, no extra signal or exit listener.

const WATCHED_EVENTS = ['SIGINT', 'SIGTERM', 'exit', 'uncaughtException', 'unhandledRejection']

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
