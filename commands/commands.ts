import { ConfigSchema, ConfigShow, ConfigValidate } from './config.ts'
import Demo from './demo.ts'
import { QueueList, QueueReprocess, QueueReset, QueueShow } from './queue.ts'
import Run from './run.ts'
import Status from './status.ts'

/** Every command by its id; each loads what it needs only when it runs. */
export const COMMANDS = {
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  'config:validate': ConfigValidate,
  demo: Demo,
  'queue:list': QueueList,
  'queue:reprocess': QueueReprocess,
  'queue:reset': QueueReset,
  'queue:show': QueueShow,
  run: Run,
  status: Status,
}
