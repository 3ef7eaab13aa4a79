import ConfigSchema from './config/schema.ts'
import ConfigShow from './config/show.ts'
import ConfigValidate from './config/validate.ts'
import Demo from './demo.ts'
import QueueList from './queue/list.ts'
import QueueReprocess from './queue/reprocess.ts'
import QueueReset from './queue/reset.ts'
import QueueShow from './queue/show.ts'
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
