// The keys about workers, and about the containers they may run in.

import type { JSONSchema } from 'json-schema-to-ts'
import { BYTES, COUNT, NAMES, SECONDS, SECONDS_OR_ZERO } from './key-kinds.ts'

/** The worker: what is started, what it may see, how long it may take, how often it is tried. */
export const WORKER_KEYS = {
  worker_command: {
    type: ['string', 'array'],
    items: { type: 'string' },
    minItems: 1,
    description:
      'The program that does the work: text names one program (it is not split at blanks), a list gives the program and its arguments. No shell is involved.',
    $comment:
      'The program is an absolute path, or a name to be found in PATH. `${plugin_root}` may stand in arguments; no other dollar sign and no tilde.',
    examples: ['/opt/bridge/worker-bridge.py', ['/usr/bin/python3', '/opt/bridge/bridge.py']],
  },
  worker_instruction: {
    type: 'string',
    default: '',
    maxLength: 65_536,
    description: 'Text of yours that is added to every prompt.',
  },
  worker_timeout_seconds: {
    ...SECONDS,
    default: 3600,
    description: 'A worker is ended after this time; that counts as a failed attempt.',
  },
  worker_completion_grace_seconds: {
    ...SECONDS_OR_ZERO,
    default: 60,
    description:
      'A worker that lingers after a valid result is ended once nothing has changed for this long, and has succeeded; 0 = never.',
  },
  worker_stall_seconds: {
    ...SECONDS_OR_ZERO,
    default: 0,
    description: 'A worker without output or change for this long is ended; 0 = never.',
  },
  drain_timeout_seconds: {
    ...SECONDS_OR_ZERO,
    default: 30,
    description: 'How long a command that is told to stop waits for what it has begun.',
  },
  max_retries_per_issue: {
    ...COUNT,
    default: 3,
    description: 'Attempts a worker has for one issue, the first included.',
  },
  retry_backoff_seconds: {
    ...SECONDS,
    default: 300,
    description:
      'Wait before the next attempt; doubled with every failure, with some jitter, at most one hour.',
  },
  transcript_max_bytes: {
    ...BYTES,
    default: 10_485_760,
    description: 'What is kept of a worker’s output; the rest is dropped behind a marker.',
  },
  worker_env_allowlist: {
    ...NAMES,
    default: [],
    description:
      'Variables of the daemon that a worker gets besides the usual ones: names, or prefixes ending in `*`.',
    $comment:
      'Letters, digits and `_`; one `*` at the end at most. Names and prefixes of GitHub credentials and of the daemon’s own secrets are refused.',
    examples: [['HTTPS_PROXY', 'AWS_*']],
  },
  feedback_author_allowlist: {
    ...NAMES,
    default: [],
    description: 'Logins whose comments count as trusted feedback, exactly as GitHub writes them.',
  },
  comment_ignore_patterns: {
    type: 'array',
    items: { type: 'string', minLength: 1, maxLength: 256 },
    maxItems: 100,
    default: [],
    description: 'Comments of authors whose login matches one of these never reach a worker.',
    $comment: 'Regular expressions (ECMAScript); `(?i)` at the beginning ignores case.',
    examples: [[String.raw`\[bot\]$`, '(?i)^ci-']],
  },
  executor_mode: {
    type: 'string',
    enum: ['trusted_host', 'oci'],
    default: 'trusted_host',
    description:
      'Where workers run: as processes of this machine, or in containers (not available yet: `run` refuses).',
    $comment: 'oci needs sandbox.image.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

const MEGABYTES = { type: 'integer', maximum: 16_777_216 } as const

/** Containers. Checked when the configuration is loaded, used by the container executor. */
export const SANDBOX_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  description: 'Settings of the container executor.',
  properties: {
    engine: {
      type: 'string',
      enum: ['docker', 'podman'],
      default: 'docker',
      description: 'The container engine.',
    },
    image: {
      type: 'string',
      pattern: '^[^\\s@]+@sha256:[0-9a-f]{64}$',
      description: 'The image, pinned: `name@sha256:<64 lowercase hexadecimal digits>`.',
    },
    pull_policy: {
      type: 'string',
      enum: ['never', 'if_missing', 'always'],
      default: 'if_missing',
      description: 'When the image is fetched.',
    },
    resources: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'What a container may use.',
      properties: {
        cpus: {
          type: 'number',
          minimum: 0.25,
          maximum: 4096,
          default: 2,
          description: 'Processors.',
        },
        memory_mb: { ...MEGABYTES, minimum: 64, default: 2048, description: 'Memory.' },
        pids: {
          type: 'integer',
          minimum: 16,
          maximum: 4_194_304,
          default: 256,
          description: 'Processes and threads.',
        },
        tmpfs_mb: { ...MEGABYTES, minimum: 1, default: 256, description: 'Size of /tmp.' },
        shm_mb: { ...MEGABYTES, minimum: 1, default: 64, description: 'Size of /dev/shm.' },
      },
    },
    network: {
      type: 'string',
      enum: ['none', 'unrestricted'],
      default: 'none',
      description: 'Whether a container has a network. The one of the machine cannot be shared.',
    },
    pass_env: {
      ...NAMES,
      default: [],
      description: 'Variables of the daemon that are handed to the container: exact names.',
      $comment:
        'Credentials, variables of the daemon itself, HOME and TMPDIR are refused, present or not.',
    },
    stop_timeout_seconds: {
      ...SECONDS,
      default: 10,
      description: 'How long a container may take to stop.',
    },
    kill_timeout_seconds: {
      ...SECONDS,
      default: 5,
      description: 'How long killing it may take after that.',
    },
    reconcile_timeout_seconds: {
      ...SECONDS,
      default: 60,
      description: 'How long the search for orphaned containers may take.',
    },
    reserved_host_disk_mb: {
      ...MEGABYTES,
      minimum: 0,
      default: 2048,
      description: 'Space that stays free on the disk; 0 = do not watch.',
    },
  },
} as const satisfies JSONSchema
