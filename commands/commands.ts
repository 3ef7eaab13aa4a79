import ConfigSchema from './config/schema.ts'
import ConfigShow from './config/show.ts'
import ConfigValidate from './config/validate.ts'
import Demo from './demo.ts'
import Run from './run.ts'
import Status from './status.ts'

/** Every command by its id; each loads what it needs only when it runs. */
export const COMMANDS = {
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  'config:validate': ConfigValidate,
  demo: Demo,
  run: Run,
  status: Status,
}
