import { join } from 'node:path'
import { build } from 'esbuild'

/** Imports a TypeScript module of the repository, with all it imports, without writing a file. */
export async function importTypeScript(root, module, plugins = []) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [join(root, module)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    plugins,
    logLevel: 'silent',
  })
  const [bundle] = result.outputFiles
  const encoded = Buffer.from(bundle.contents).toString('base64')
  return import(`data:text/javascript;base64,${encoded}`)
}
