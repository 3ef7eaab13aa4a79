import type { FAULTS, FaultCode } from './fault-catalogue.ts'

/** A fact of a fault; it is shown to people, so it is never a secret. */
export type DetailValue = string | number | boolean | null

/** The names in braces of a text. */
type Placeholder<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never

type TextOf<Code extends FaultCode> = (typeof FAULTS)[Code]['message' | 'next']

/** What the program itself reads of a fault, beside what its texts show. */
type Facts = Readonly<{
  /** `code`: of the system's error, such as ENOENT. */
  'sys/io': Readonly<{ code?: string | null }>
  /** `code`: of the system's error, such as ENOENT. */
  'sys/spawn-failed': Readonly<{ code?: string | null }>
  /** `timedOut`: git was ended because its time was over. */
  'git/failed': Readonly<{ timedOut?: true }>
  /** `code`: of the network's error, such as ECONNREFUSED. */
  'github/unreachable': Readonly<{ code?: string }>
  /** `untilMs`: when this process may ask again, milliseconds; spread, so that not all processes come at once. */
  'github/rate-limited': Readonly<{ untilMs: number }>
  /** `archive`: the copy that was made of the file; null = none. */
  'state/corrupt': Readonly<{ archive: string | null }>
}>

type FactsOf<Code extends FaultCode> = Code extends keyof Facts ? Facts[Code] : unknown

/** The details of a code, as they are read; of several codes, of one of them. */
export type DetailsOf<Code extends FaultCode> = Code extends FaultCode
  ? Readonly<Record<Placeholder<TextOf<Code>>, DetailValue>> & FactsOf<Code>
  : never

/** The details that a fault is made with: of several codes, those of each. */
export type DetailsFor<Code extends FaultCode> = Readonly<
  Record<Placeholder<TextOf<Code>>, DetailValue>
> &
  FactsOf<Code>
