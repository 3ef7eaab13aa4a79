import { type Fault, fault } from '../core/fault.ts'
import { describeRequest, type HttpRequest, isWrite } from './http-request.ts'

/**
 * What became of a write: certainly nothing, or nobody knows (P§3). Reads have no effect to tell.
 * Spread into the details of every fault of a request.
 */
export type Effect = 'none' | 'unknown'

export function effectOf(request: HttpRequest, effect: Effect): Readonly<{ effect?: Effect }> {
  return isWrite(request) ? { effect } : {}
}

// Codes of node:dns, node:net, node:tls and undici (its docs, "Errors"). `effect`: a refused connection
// and an unknown name prove that nothing was sent (P§3); all else may have come after the request left.
const NETWORK_ERRORS = {
  ECONNREFUSED: { says: 'the connection was refused', effect: 'none' },
  ENOTFOUND: { says: 'the name of its host is unknown', effect: 'none' },
  EAI_AGAIN: { says: 'the name of its host cannot be looked up now', effect: 'none' },
  ECONNRESET: { says: 'the connection was cut', effect: 'unknown' },
  EPIPE: { says: 'the connection was cut', effect: 'unknown' },
  UND_ERR_SOCKET: { says: 'the connection was closed', effect: 'unknown' },
  ETIMEDOUT: { says: 'the connection timed out', effect: 'unknown' },
  UND_ERR_CONNECT_TIMEOUT: { says: 'no connection came about in time', effect: 'unknown' },
  EHOSTUNREACH: { says: 'there is no route to its host', effect: 'unknown' },
  ENETUNREACH: { says: 'there is no network', effect: 'unknown' },
  CERT_HAS_EXPIRED: { says: 'its certificate has expired', effect: 'unknown' },
  DEPTH_ZERO_SELF_SIGNED_CERT: { says: 'its certificate is not trusted', effect: 'unknown' },
  SELF_SIGNED_CERT_IN_CHAIN: { says: 'its certificate is not trusted', effect: 'unknown' },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { says: 'its certificate is not trusted', effect: 'unknown' },
  ERR_TLS_CERT_ALTNAME_INVALID: { says: 'its certificate is for another host', effect: 'unknown' },
  HPE_INVALID_CONSTANT: { says: 'it does not answer in HTTP', effect: 'unknown' },
  TimeoutError: { says: 'no answer came in time', effect: 'unknown' },
} as const satisfies Record<string, { says: string; effect: Effect }>

/**
 * `github/unreachable` for what fetch threw. The thrown error is not kept as a cause: it may hold the
 * request with its credentials, and its code says it all.
 */
export function networkFault(request: HttpRequest, thrown: unknown): Fault {
  const codes = codesOf(thrown)
  const known = codes.map((code) => rowOf(code)).filter((row) => row !== null)
  const certain = codes.length > 0 && codes.every((code) => rowOf(code)?.effect === 'none')
  const reason = known[0]?.says ?? `a network error (${codes[0] ?? 'without a code'})`
  return fault('github/unreachable', {
    request: describeRequest(request),
    reason,
    ...(codes[0] === undefined ? {} : { code: codes[0] }),
    ...effectOf(request, certain ? 'none' : 'unknown'),
  })
}

function rowOf(code: string): Readonly<{ says: string; effect: Effect }> | null {
  const rows: Readonly<Record<string, { says: string; effect: Effect }>> = NETWORK_ERRORS
  return Object.hasOwn(rows, code) ? (rows[code] ?? null) : null
}

/**
 * The codes at the root of what fetch threw: fetch wraps the socket's error in a TypeError, and a host
 * with several addresses leaves one error for each.
 */
function codesOf(thrown: unknown, depth = 0): readonly string[] {
  if (typeof thrown !== 'object' || thrown === null || depth > 5) return []
  if ('errors' in thrown && Array.isArray(thrown.errors) && thrown.errors.length > 0) {
    return thrown.errors.flatMap((each) => codesOf(each, depth + 1))
  }
  if ('cause' in thrown && typeof thrown.cause === 'object' && thrown.cause !== null) {
    return codesOf(thrown.cause, depth + 1)
  }
  if ('code' in thrown && typeof thrown.code === 'string') return [thrown.code]
  return 'name' in thrown && typeof thrown.name === 'string' ? [thrown.name] : []
}
