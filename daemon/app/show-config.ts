import { environment as readEnvironment } from '../sys/environment.ts'
import { loadProgramConfig } from './load-program-config.ts'

/** `config show`: every key as it is in force, secrets masked. */
export type ShownConfig = Readonly<{
  path: string
  section: string | null
  values: readonly Readonly<{ key: string; value: unknown; origin: string }>[]
}>

/** Faults: config/*. */
export function showConfig(): ShownConfig {
  const { source, values } = loadProgramConfig(readEnvironment())
  return { path: source.path, section: source.section, values }
}

/** One line per key, in YAML's own notation. */
export function renderConfig({ path, section, values }: ShownConfig): string {
  const from = section === null ? path : `${path} (section ${section})`
  const lines = values.map(({ key, value, origin }) => {
    const note = origin === 'file' ? '' : `  # ${origin}`
    return `${key}: ${JSON.stringify(value)}${note}`
  })
  return [`# ${from}`, ...lines].join('\n')
}
