import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { describeStore } from './store-contract.ts'

describeStore('json', (stateDir) => openJsonStore({ clock: systemClock }, stateDir))
