import type { JSONSchema } from 'json-schema-to-ts'
import { NAMES, SECONDS } from './key-kinds.ts'

const MEGABYTES = { type: 'integer', maximum: 16_777_216 } as const

/** Containers (R§2.10). Looked at when the configuration is loaded, used by the container executor. */
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
      description: 'How long looking for containers left over may take.',
    },
    reserved_host_disk_mb: {
      ...MEGABYTES,
      minimum: 0,
      default: 2048,
      description: 'Space that stays free on the disk; 0 = do not watch.',
    },
  },
} as const satisfies JSONSchema
