import { fault } from '../daemon/core/fault.ts'
import type { ControlParams, ControlResult, ControlVerb } from './control.ts'

/**
 * Acts as operator of an embedded GitHub, also in another process:
 * `await control('mergePull', { repo: 'octo/app', number: 3 })`. Verbs are listed in control.ts.
 * Faults: demo/refused with the reason; github/unreachable.
 */
export type Control = <Verb extends ControlVerb>(
  verb: Verb,
  ...params: TakesNothing<ControlParams<Verb>> extends true ? [] : [params: ControlParams<Verb>]
) => Promise<ControlResult<Verb>>

type TakesNothing<Params> = [Params] extends [undefined] ? true : false

const TIMEOUT_MS = 60_000

/** @param url of the embedded GitHub, as it printed it */
export function connectControl(url: string): Control {
  return async (verb, ...[params]) => {
    const answer = await post(`${url}/_control/${verb}`, JSON.stringify(params ?? {}))
    if ('error' in answer) throw fault('demo/refused', { reason: String(answer.error) })
    // Both ends are of one build; the verb's own type says what its result is.
    return ('result' in answer ? answer.result : null) as never
  }
}

async function post(url: string, body: string): Promise<object> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw fault('github/unreachable', { request: `POST ${url}`, reason: String(cause) }, cause)
  })
  const answer: unknown = await response.json()
  if (typeof answer === 'object' && answer !== null) return answer
  throw fault('demo/refused', { reason: `status ${response.status}` })
}
