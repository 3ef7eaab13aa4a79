import { ConfigSchema, ConfigShow, ConfigValidate } from './config.ts'
import { CronInstall, CronRemove } from './cron.ts'
import Demo from './demo.ts'
import Doctor from './doctor.ts'
import { QueueList, QueueReprocess, QueueReset, QueueShow } from './queue.ts'
import { Daemon, Run } from './run.ts'
import Setup from './setup.ts'
import Status from './status.ts'

/** Every command by its id; each loads what it needs only when it runs. */
export const COMMANDS = {
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  'config:validate': ConfigValidate,
  'cron-install': CronInstall,
  'cron-remove': CronRemove,
  daemon: Daemon,
  demo: Demo,
  doctor: Doctor,
  'queue:list': QueueList,
  'queue:reprocess': QueueReprocess,
  'queue:reset': QueueReset,
  'queue:show': QueueShow,
  run: Run,
  setup: Setup,
  status: Status,
}
