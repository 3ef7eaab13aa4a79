// The house's layer rules (daemon/ARCHITECTURE.md), from one table: a folder may import only folders of a lower rank.
const RANKS = [
  ['core'],
  ['sys'],
  ['config', 'state', 'github', 'git', 'executor', 'host', 'demo'],
  ['worker', 'publish', 'supervisor'],
  ['engine'],
  ['app'],
]

const folder = (name) => `^daemon/${name}/`
const rankRules = RANKS.flatMap((names, rank) =>
  names.map((name) => ({
    name: `rank-${name}`,
    severity: 'error',
    comment: `daemon/${name} may import only folders below it`,
    from: { path: folder(name) },
    to: {
      path: RANKS.slice(rank)
        .flat()
        .filter((other) => other !== name)
        .map(folder)
        .concat('^commands/'),
    },
  })),
)

export default {
  forbidden: [
    ...rankRules,
    {
      name: 'core-is-pure',
      severity: 'error',
      comment: 'core holds decisions: no effects, no packages',
      from: { path: '^daemon/core/' },
      to: { dependencyTypes: ['core', 'npm'] },
    },
    {
      name: 'effects-live-in-sys',
      severity: 'error',
      comment:
        'files, processes and timers are reached through daemon/sys (the demo server is its own process)',
      from: { path: '^daemon/', pathNot: '^daemon/(sys|demo)/' },
      to: {
        path: '^(node:)?(fs|fs/promises|child_process|timers|timers/promises|worker_threads)$',
      },
    },
    {
      name: 'nothing-listens',
      severity: 'error',
      comment: 'design §1.1: server APIs only in the embedded GitHub of the demo',
      from: { path: '^(daemon|commands)/', pathNot: '^daemon/demo/' },
      to: { path: '^(node:)?(http|https|http2|dgram|tls)$' },
    },
    {
      name: 'commands-call-app',
      severity: 'error',
      comment: 'a command parses flags, calls one use case and renders',
      from: { path: '^commands/' },
      to: { path: '^daemon/', pathNot: '^daemon/(app|core)/' },
    },
    {
      name: 'supervisor-is-small',
      severity: 'error',
      comment: 'the second process starts close to bare node: nothing but sys and core below it',
      from: { path: '^daemon/supervisor/' },
      to: { path: '^daemon/', pathNot: '^daemon/(supervisor|sys|core)/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.mjs', '.js', '.json'] },
  },
}
