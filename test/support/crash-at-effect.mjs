// A preload (NODE_OPTIONS=--import): ends this process with SIGKILL at its n-th effect, as announced on
// the diagnostics channel `caduceus:effect`. Each process counts its own effects.
//   TEST_CRASH_AT       "<n>" or "<n>:before" (the n-th is not done) or "<n>:after" (it is the last one done)
//   TEST_CRASH_PROCESS  a regular expression for the command line; other processes only log
//   TEST_EFFECT_LOG     a file that gets one line per effect: pid, number, port.method, when

import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

const { TEST_CRASH_AT, TEST_CRASH_PROCESS = '', TEST_EFFECT_LOG } = process.env
const [crashAt, crashWhen = 'before'] = (TEST_CRASH_AT ?? '').split(':')
const isTarget = new RegExp(TEST_CRASH_PROCESS).test(process.argv.join(' '))
let started = 0
let ended = 0

subscribe('caduceus:effect', ({ port, method, when }) => {
  if (when === 'before') started += 1
  else ended += 1
  const count = when === 'before' ? started : ended
  if (TEST_EFFECT_LOG) {
    appendFileSync(TEST_EFFECT_LOG, `${process.pid} ${count} ${port}.${method} ${when}\n`)
  }
  const phase = when === 'before' ? 'before' : 'after'
  if (isTarget && count === Number(crashAt) && phase === crashWhen) {
    process.kill(process.pid, 'SIGKILL')
  }
})
