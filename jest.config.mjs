import { availableParallelism } from 'node:os'

// ESM throughout: swc strips types, jest runs the modules natively (node --experimental-vm-modules).
const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
      module: { type: 'es6' },
      sourceMaps: 'inline',
    },
  ],
}

export default {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform,
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/test/long/', '/test/hermes/'],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  setupFilesAfterEnv: ['<rootDir>/test/support/leave-no-trace.ts'],
  reporters: ['default', '<rootDir>/test/support/summary-reporter.mjs'],
  // A net, not a measure: a real process that meets a hiccup of a busy machine waits through a whole backoff.
  testTimeout: 180_000,
  // Suites wait for processes more than they compute, so two share even a small machine well.
  maxWorkers: Math.max(2, Math.floor(availableParallelism() * 0.75)),
}
