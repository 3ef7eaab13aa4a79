// Every effect passes a port that counts it (design §2), so that a test can stop a process at the n-th one.

/** One crossing of a port: announced before the call and again when it has ended. */
export type Effect = Readonly<{
  port: string
  method: string
  when: 'before' | 'after' | 'failed'
}>

/**
 * The same port, observed: each method call is announced before it starts and after it returned,
 * resolved (`after`) or threw, rejected (`failed`). Values pass through unchanged.
 * @param port its name in announcements, for example 'github'
 * @param observe called synchronously; what it throws reaches the caller of the method
 */
export function countEffects<P extends object>(
  port: string,
  implementation: P,
  observe: (effect: Effect) => void,
): P {
  return new Proxy(implementation, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function' || typeof property !== 'string') return value
      return (...args: readonly unknown[]): unknown => {
        const announce = (when: Effect['when']): void => observe({ port, method: property, when })
        announce('before')
        return watch(() => Reflect.apply(value, target, args), announce)
      }
    },
  })
}

function watch(call: () => unknown, announce: (when: Effect['when']) => void): unknown {
  let result: unknown
  try {
    result = call()
  } catch (error) {
    announce('failed')
    throw error
  }
  if (isPromiseLike(result)) return watchPromise(result, announce)
  announce('after')
  return result
}

async function watchPromise(
  pending: PromiseLike<unknown>,
  announce: (when: Effect['when']) => void,
): Promise<unknown> {
  let value: unknown
  try {
    value = await pending
  } catch (error) {
    announce('failed')
    throw error
  }
  announce('after')
  return value
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  )
}
