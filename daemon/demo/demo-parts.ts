import type { Build } from '../app/build.ts'
import type { DemoStory } from './demo-story.ts'
import type { DemoScene } from './scene.ts'

/** What every part of the demo works with. */
export type DemoParts = Readonly<{
  build: Build
  story: DemoStory
  scene: DemoScene
  /** Prints a line for the person who watches. */
  print: (line: string) => void
  /** Aborted when the demo is interrupted. */
  signal: AbortSignal
}>
