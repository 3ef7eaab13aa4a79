import type { JSONSchema } from 'json-schema-to-ts'
import { SECONDS } from './key-kinds.ts'

/** How GitHub is reached. */
export const GITHUB_KEYS = {
  github_token: {
    type: ['string', 'null'],
    default: null,
    writeOnly: true,
    description:
      'The token for GitHub. Better kept out of this file: see the order in which tokens are looked for.',
    $comment: 'Printable characters without blanks. Never shown.',
  },
  api_base: {
    type: 'string',
    default: 'https://api.github.com',
    writeOnly: true,
    description: 'The REST interface. GitHub Enterprise Server: `https://<its name>/api/v3`.',
    $comment:
      'https://api.github.com, or https with a path under /api/v3, or http on 127.0.0.1, localhost or `[::1]`. No user part, query or fragment. Never shown in errors.',
    examples: ['https://github.example.com/api/v3'],
  },
  http_timeout_seconds: {
    ...SECONDS,
    default: 60,
    description: 'Deadline of one request.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>
