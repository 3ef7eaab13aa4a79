/** The configured rules that a publication obeys (design §9, §12). */
export type PublishPolicy = Readonly<{
  forbiddenStrings: readonly string[]
  closeIssue: 'finalize' | 'merge' | 'never'
  removeLabel: boolean
  settleMs: number
  protectedPaths: readonly string[]
  maxChangedFiles: number
  maxDiffBytes: number
  maxFileBytes: number
}>

/** Who a published commit is by (R§8.2); exempt from the public-voice rule (design §9). */
export const COMMIT_IDENTITY = {
  name: 'Caduceus Daemon',
  email: 'caduceus@daemon.local',
} as const satisfies Record<string, string>
