import { describe, expect, test } from '@jest/globals'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import { fault } from '../../daemon/core/fault.ts'

function observed<P extends object>(port: P): { port: P; seen: string[] } {
  const seen: string[] = []
  const note = ({ port: name, method, when }: Effect): void => {
    seen.push(`${name}.${method} ${when}`)
  }
  return { port: countEffects('p', port, note), seen }
}

describe('an observed port', () => {
  test('announces a call before it starts and after it returned, and passes values through', () => {
    const { port, seen } = observed({
      add: (a: number, b: number) => {
        seen.push('adding')
        return a + b
      },
    })
    expect(port.add(1, 2)).toBe(3)
    expect(seen).toEqual(['p.add before', 'adding', 'p.add after'])
  })

  test('a promise counts as ended when it is', async () => {
    let finish: (value: string) => void = () => {}
    const { port, seen } = observed({
      later: () =>
        new Promise<string>((resolve) => {
          finish = resolve
        }),
    })
    const pending = port.later()
    await Promise.resolve()
    expect(seen).toEqual(['p.later before'])
    finish('done')
    expect(await pending).toBe('done')
    expect(seen).toEqual(['p.later before', 'p.later after'])
  })

  test('what is thrown or rejected is announced as failed and passed on as it is', async () => {
    const problem = fault('internal/unexpected', { reason: 'test' })
    const { port, seen } = observed({
      throws: () => {
        throw problem
      },
      rejects: () => Promise.reject(problem),
    })
    expect(() => port.throws()).toThrow(problem)
    await expect(port.rejects()).rejects.toBe(problem)
    expect(seen).toEqual([
      'p.throws before',
      'p.throws failed',
      'p.rejects before',
      'p.rejects failed',
    ])
  })

  test('objects with private parts and plain values work as before', () => {
    class Counter {
      readonly name = 'counter'
      #count = 0
      increase(): number {
        this.#count += 1
        return this.#count
      }
      get count(): number {
        return this.#count
      }
    }
    const { port, seen } = observed(new Counter())
    port.increase()
    expect([port.increase(), port.count, port.name]).toEqual([2, 2, 'counter'])
    expect(seen.length).toBe(4)
  })

  test('an observer that throws before the call prevents it', () => {
    let called = false
    const refuse = (): never => {
      throw fault('internal/unexpected', { reason: 'refused' })
    }
    const port = countEffects('p', { act: () => void (called = true) }, refuse)
    expect(() => port.act()).toThrow('refused')
    expect(called).toBe(false)
  })
})
