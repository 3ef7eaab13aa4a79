import type { FaultSpec } from './fault-classes.ts'

/** Faults of git, stores and clones. */
export const GIT_FAULTS = {
  'clone/missing': {
    class: 'infrastructure',
    message: '{repo} has no clone at {path}.',
    next: 'Clone it there: git clone {url} {target}',
  },
  'clone/not-a-repository': {
    class: 'infrastructure',
    message: '{path} is not a git repository.',
    next: 'Move it away and clone {repo} there.',
  },
  'clone/wrong-origin': {
    class: 'infrastructure',
    message: 'The clone {path} has origin {found}, not {repo} on {wanted}.',
    next: 'Correct it: git -C {target} remote set-url origin {url}',
  },
  'clone/no-origin': {
    class: 'infrastructure',
    message: 'The clone {path} has no remote named origin.',
    next: 'Add it: git -C {target} remote add origin {url}',
  },
  'git/failed': {
    class: 'infrastructure',
    message: 'git {operation} failed: {reason}',
    next: '',
  },
  'git/too-old': {
    class: 'config',
    message: 'git {found} is too old; {wanted} or newer is needed.',
    next: 'Install a newer git.',
  },
  'git/no-default-branch': {
    class: 'infrastructure',
    message: '{repo} has no default branch with a commit.',
    next: 'Push a first commit.',
  },
  'git/store-damaged': {
    class: 'infrastructure',
    message: 'The repository {path}, kept by the daemon, is damaged: {reason}.',
    next: 'Move it away; it is made again from the clone and its origin.',
  },
  'git/stored-form': {
    class: 'terminal',
    message:
      '{path} belongs to the filter "{filter}", and its new content is not in the form that is stored.',
    next: 'The work is kept at {tree}; commit that file by hand.',
  },
  'git/foreign-branch': {
    class: 'terminal',
    message: 'The branch {branch} on GitHub is at {found}, which is not our commit {expected}.',
    next: 'Decide what to keep of it; our commit is safe as {kept}.',
  },
  'git/push-rejected': {
    class: 'terminal',
    message: 'GitHub rejected the push of {branch}: {reason}',
    next: 'Look at the rules of the repository; our commit is safe as {kept}.',
  },
} as const satisfies Record<string, FaultSpec>
