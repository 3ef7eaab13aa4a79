import type { FaultSpec } from './fault-classes.ts'

/** Faults of what is around us: the system, GitHub, git and clones. */
export const OUTSIDE_FAULTS = {
  'sys/native-unavailable': {
    class: 'config',
    message: 'The native interface could not be loaded: {reason}.',
    next: 'Reinstall the package on this machine: npm ci',
  },
  'sys/unsupported-platform': {
    class: 'config',
    message: 'Caduceus runs on Linux and macOS, not on {platform}.',
    next: 'Run it on one of these.',
  },
  'sys/io': {
    class: 'infrastructure',
    message: '{operation} {path} failed: {reason}.',
    next: 'Check free space and permissions there.',
  },
  'sys/spawn-failed': {
    class: 'infrastructure',
    message: '{program} could not be started: {reason}.',
    next: 'Check that it is installed and executable.',
  },
  'sys/process-timeout': {
    class: 'infrastructure',
    message: '{program} did not finish within {seconds} s and was ended.',
    next: '',
  },
  'sys/process-aborted': {
    class: 'interrupted',
    message: '{program} was ended because it is no longer wanted.',
    next: '',
  },
  'sys/output-too-large': {
    class: 'infrastructure',
    message: '{program} printed more than {maxBytes} bytes.',
    next: '',
  },
  'sys/unkillable': {
    class: 'infrastructure',
    message: 'Processes of the run {run} could not be ended.',
    next: 'Look at them with ps; the run stays reserved until they are gone.',
  },
  'github/unreachable': {
    class: 'infrastructure',
    message: 'GitHub could not be reached for {request}: {reason}.',
    next: '',
  },
  'github/failed': {
    class: 'infrastructure',
    message: 'GitHub answered {status} to {request}: {reason}',
    next: '',
  },
  'github/bad-answer': {
    class: 'infrastructure',
    message: 'GitHub answered {request} with something unexpected: {reason}.',
    next: '',
  },
  'github/comments-unlisted': {
    class: 'infrastructure',
    message: 'GitHub lists {listed} comments of {issue}, which has {count}.',
    next: 'Nothing to do; after some more looks the list is taken as it is.',
  },
  'github/pull-unlisted': {
    class: 'infrastructure',
    message: 'GitHub says that {branch} has a pull request already, but does not list it.',
    next: 'Nothing at first: it is looked for again. When it stays, look for it on GitHub and close it.',
  },
  'github/foreign-pull': {
    class: 'terminal',
    message: 'Somebody else has opened pull request #{number} from the branch {branch}.',
    next: 'Finish the issue by hand with that one, or close it, so that another can be opened; our commit is safe as {kept}.',
  },
  'github/refused': {
    class: 'terminal',
    message: 'GitHub refused {request} ({status}): {reason}',
    next: 'Check the permissions of the token (contents, issues and pull requests: write).',
  },
  'github/moved': {
    class: 'terminal',
    message: 'GitHub says that {what} has moved, so {request} was not done.',
    next: 'Watch the repository under its new name, and correct the origin of its clone.',
  },
  'github/not-found': {
    class: 'infrastructure',
    message: '{what} was not found on GitHub.',
    next: 'Check its name and the token’s access to it.',
  },
  'github/too-many-pages': {
    class: 'infrastructure',
    message: '{request} has more than {pages} pages.',
    next: 'Raise discovery_max_pages.',
  },
  'github/rate-limited': {
    class: 'rate-limited',
    message: 'GitHub limits requests ({kind}) until {until}.',
    next: 'Nothing to do; work goes on by itself then.',
  },
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
    next: 'Rename or delete that branch once its commits are not needed there; our commit is safe as {kept}.',
  },
  'git/push-rejected': {
    class: 'terminal',
    message: 'GitHub rejected the push of {branch}: {reason}',
    next: 'Look at the rules of the repository; our commit is safe as {kept}.',
  },
} as const satisfies Record<string, FaultSpec>
