// Loaded with --import: the program takes the row of macOS in every table of platforms – processes from ps(1),
// no subreaper, no pidfd. Only what these rows ask for is there on Linux too, so it really works that way.

import { createRequire } from 'node:module'
import { join } from 'node:path'

// The library itself is looked for by the true platform, so it is loaded before.
createRequire(join(import.meta.dirname, '../../package.json'))('koffi')
Object.defineProperty(process, 'platform', { value: 'darwin' })
