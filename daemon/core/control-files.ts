/** Files of ours in the worker's tree; they never reach a commit. */
export const CONTROL_FILES = {
  prompt: 'worker-prompt.md',
  context: 'worker-context.json',
  result: 'worker-result.json',
} as const satisfies Record<string, string>
