import { setFlagsFromString } from 'node:v8'

/** The newest Node whose V8 is known to have the flag; others would complain on the error stream. */
const NEWEST_KNOWN_NODE = 24

/**
 * Keeps V8 from optimising WebAssembly in the background. Node's `fetch` reads answers with it, and a
 * short process has to wait for that work at its exit: on Node 20 it costs more CPU time than the
 * requests themselves. To be called before the first of them.
 */
export function leaveWasmUnoptimized(): void {
  const major = Number(process.versions.node.split('.')[0])
  if (major <= NEWEST_KNOWN_NODE) setFlagsFromString('--wasm-tiering-budget=1000000000')
}
