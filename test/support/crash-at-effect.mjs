// A preload (NODE_OPTIONS=--import): ends this process with SIGKILL at its n-th effect, as announced on
// the diagnostics channel `caduceus:effect`. Each process counts its own effects.
//   TEST_CRASH_AT       "<n>" or "<n>:before" (the n-th is not done) or "<n>:after" (it is the last one done);
//                       "<port>.<method>#<n>:before" and so on for the n-th of that name
//   TEST_CRASH_PROCESS  a regular expression for the command line; other processes only log
//   TEST_EFFECT_LOG     a file that gets one line per effect: pid, number, port.method, when

import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

const { TEST_CRASH_AT, TEST_CRASH_PROCESS = '', TEST_EFFECT_LOG } = process.env
const [crashAt, crashWhen = 'before'] = (TEST_CRASH_AT ?? '').split(':')
const isTarget = new RegExp(TEST_CRASH_PROCESS).test(process.argv.join(' '))
/** By name, and of all names together under ''. */
const counts = { before: new Map(), after: new Map() }

subscribe('caduceus:effect', ({ port, method, when }) => {
  const phase = when === 'before' ? 'before' : 'after'
  const count = (name) => {
    const next = (counts[phase].get(name) ?? 0) + 1
    counts[phase].set(name, next)
    return next
  }
  const name = `${port}.${method}`
  const places = [String(count('')), `${name}#${count(name)}`]
  if (TEST_EFFECT_LOG)
    appendFileSync(TEST_EFFECT_LOG, `${process.pid} ${places[0]} ${name} ${when}\n`)
  if (isTarget && places.includes(crashAt) && phase === crashWhen) {
    process.kill(process.pid, 'SIGKILL')
  }
})
