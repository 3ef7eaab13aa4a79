/**
 * A port of which a test uses only some methods; any other says that it was called. A method that is
 * added to the port later needs no change here.
 */
export function fakePort<P extends object>(name: string, methods: Partial<P>): P {
  // What is missing is supplied by the trap below.
  return new Proxy(methods, {
    get(target, property) {
      const method: unknown = Reflect.get(target, property)
      if (method !== undefined || typeof property === 'symbol' || property === 'then') return method
      return (): never => {
        throw new TypeError(`${name}.${property} is not a part of this test`)
      }
    },
  }) as P
}
