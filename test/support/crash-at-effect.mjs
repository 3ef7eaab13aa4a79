// A preload (NODE_OPTIONS=--import): ends this process with SIGKILL at its n-th effect, as announced on
// the diagnostics channel `caduceus:effect`. Each process counts its own effects.
//   TEST_CRASH_AT       "<n>" or "<n>:before" (the n-th is not done) or "<n>:after" (it is the last one done);
//                       "<port>.<method>#<n>:before" and so on for the n-th of that name
//   TEST_CRASH_PLAN     a file with such a place on each line: each process takes one that nobody has taken, and
//                       leaves `<file>.<line>.taken` with its arguments and `<file>.<line>.dead` when it dies there
//   TEST_CRASH_PROCESS  a regular expression for the command line; other processes only log
//   TEST_CRASH_SIGNAL   another signal, for example SIGSTOP
//   TEST_EFFECT_LOG     a file that gets one line per effect: pid, number, port.method, when

import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import './pass-on.mjs'

const {
  TEST_CRASH_AT,
  TEST_CRASH_PLAN,
  TEST_CRASH_PROCESS = '',
  TEST_CRASH_SIGNAL = 'SIGKILL',
  TEST_EFFECT_LOG,
} = process.env
const isTarget = new RegExp(TEST_CRASH_PROCESS).test(process.argv.join(' '))

/** The first line of the plan that is still free. */
const takePlace = () => {
  const places = readFileSync(TEST_CRASH_PLAN, 'utf8').split('\n')
  for (const [index, place] of places.entries()) {
    try {
      writeFileSync(`${TEST_CRASH_PLAN}.${index}.taken`, process.argv.join(' '), { flag: 'wx' })
      return { place, line: index }
    } catch {
      // Another process has it.
    }
  }
  return { place: '', line: -1 }
}
const { place, line } =
  TEST_CRASH_PLAN && isTarget ? takePlace() : { place: TEST_CRASH_AT ?? '', line: -1 }
const [crashAt, crashWhen = 'before'] = place.split(':')
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
    if (line >= 0) writeFileSync(`${TEST_CRASH_PLAN}.${line}.dead`, '')
    process.kill(process.pid, TEST_CRASH_SIGNAL)
  }
})
