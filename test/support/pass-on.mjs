// Part of the preloads: the program gives its supervisor an environment of a few names, so a preload that is in
// force here passes itself and its settings on to the supervisors that this process starts.

import childProcess from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'

const settings = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => name === 'NODE_OPTIONS' || name.startsWith('TEST_'),
  ),
)
const { spawn } = childProcess

const startsSupervisor = (args) =>
  Array.isArray(args) && args.some((arg) => arg.endsWith('/supervisor.cjs'))

childProcess.spawn = (program, args, options) =>
  startsSupervisor(args)
    ? spawn(program, args, { ...options, env: { ...options.env, ...settings } })
    : spawn(program, args, options)
syncBuiltinESMExports()
