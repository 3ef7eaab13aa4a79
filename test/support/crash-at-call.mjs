// A preload (NODE_OPTIONS=--import): ends this process with SIGKILL right before or right after its n-th
// call that leaves a trace outside: opening, writing, syncing, renaming, removing, spawning.
//   TEST_CRASH_AT_CALL   n = before the n-th of these calls, n.5 = after it
//   TEST_CALL_LOG        a file that is made when the process ends by itself
import childProcess from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { TEST_CRASH_AT_CALL, TEST_CALL_LOG } = process.env
const { writeFileSync } = fs
const crashAt = Number(TEST_CRASH_AT_CALL)
let calls = 0

const crashIf = (isTime) => {
  if (isTime) process.kill(process.pid, 'SIGKILL')
}

const counted = (call) =>
  function (...args) {
    // Looking at processes is not doing anything.
    if (String(args[0]).startsWith('/proc/')) return call.apply(this, args)
    calls += 1
    const own = calls
    crashIf(own === crashAt)
    try {
      return call.apply(this, args)
    } finally {
      crashIf(own + 0.5 === crashAt)
    }
  }

for (const name of [
  'openSync',
  'writeSync',
  'fsyncSync',
  'renameSync',
  'unlinkSync',
  'ftruncateSync',
]) {
  fs[name] = counted(fs[name])
}
childProcess.spawn = counted(childProcess.spawn)
syncBuiltinESMExports()

process.on('exit', () => {
  if (TEST_CALL_LOG) writeFileSync(TEST_CALL_LOG, String(calls))
})
