// The house's layer rules (daemon/ARCHITECTURE.md), from one table: a folder may import only folders of a lower rank.
const RANKS = [
  ['core'],
  ['sys'],
  ['config', 'state', 'github', 'git', 'supervision', 'host'],
  ['worker', 'publish', 'supervisor'],
  ['engine'],
  ['app'],
  ['doctor', 'demo'],
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
      comment: 'files, processes and timers are reached through daemon/sys',
      from: { path: '^daemon/', pathNot: '^daemon/sys/' },
      to: {
        path: '^(node:)?(fs|fs/promises|child_process|timers|timers/promises|worker_threads)$',
      },
    },
    {
      name: 'nothing-listens',
      severity: 'error',
      comment: 'server APIs belong to the embedded GitHub, which is a process of its own (I1)',
      from: { path: '^(daemon|commands)/' },
      to: { path: '^(node:)?(http|https|http2|dgram|tls)$' },
    },
    {
      name: 'commands-call-app',
      severity: 'error',
      comment: 'a command parses flags, calls one use case and renders',
      from: { path: '^commands/' },
      to: { path: '^daemon/', pathNot: '^daemon/(app|doctor|demo|core)/' },
    },
    {
      name: 'embedded-github-stands-alone',
      severity: 'error',
      comment:
        'the service that demo and tests talk to shares only vocabulary and the system with the daemon',
      from: { path: '^embedded-github/' },
      to: { path: '^(daemon|commands)/', pathNot: '^daemon/(sys|core)/' },
    },
    {
      name: 'embedded-github-is-reached-by-its-control-client',
      severity: 'error',
      comment: 'the program starts it as a process and speaks to it over HTTP',
      from: { path: '^(daemon|commands)/' },
      to: { path: '^embedded-github/', pathNot: '^embedded-github/control-client\\.ts$' },
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
