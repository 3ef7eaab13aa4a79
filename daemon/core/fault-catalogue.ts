// Every fault there is: what class it has, what it says, and what to do next.
// docs and tests walk this table; `{name}` is filled from the details given where it is made.

/** What a class of fault means for the attempt budget, the issue, and the exit code (design §6, §11). */
export const FAULT_CLASSES = {
  worker: { attempts: '+1', meaning: 'the worker failed; it counts against the retry budget' },
  infrastructure: { attempts: 'keep', meaning: 'something around us failed; tried again later' },
  'rate-limited': { attempts: 'keep', meaning: 'GitHub asked us to wait' },
  interrupted: { attempts: 'keep', meaning: 'the run was cut off by a signal, crash or reboot' },
  cancelled: { attempts: 'keep', meaning: 'the issue was withdrawn while we worked on it' },
  terminal: { attempts: 'keep', meaning: 'a human has to look; nothing is tried again by itself' },
  config: { attempts: 'keep', meaning: 'the configuration has to be mended first' },
  state: { attempts: 'keep', meaning: 'the stored state cannot be used as it is' },
  usage: { attempts: 'keep', meaning: 'the command was called wrongly' },
  internal: { attempts: 'keep', meaning: 'a fault of our own; please report it' },
} as const satisfies Record<string, { attempts: '+1' | 'keep'; meaning: string }>

export type FaultClass = keyof typeof FAULT_CLASSES

export type FaultSpec = Readonly<{ class: FaultClass; message: string; next: string }>

export const FAULTS = {
  // configuration
  'config/not-found': {
    class: 'config',
    message: 'No configuration was found (looked at {looked}).',
    next: 'Write one of these files, or name one with CADUCEUS_CONFIG.',
  },
  'config/unreadable': {
    class: 'config',
    message: 'The configuration {path} cannot be read: {reason}.',
    next: 'Mend the file or its permissions, then run: caduceus config validate',
  },
  'config/no-section': {
    class: 'config',
    message: '{path} has no section "{section}:".',
    next: 'Add the section with watched_repos, or write a configuration of its own.',
  },
  'config/invalid': {
    class: 'config',
    message: 'The configuration {path} has {count} problem(s): {problems}',
    next: 'Mend them, then run: caduceus config validate',
  },
  'config/environment': {
    class: 'config',
    message: 'The environment variable {name} is {found}; wanted: {wanted}.',
    next: 'Correct or unset it.',
  },
  'config/executor-unavailable': {
    class: 'config',
    message: 'executor_mode {mode} is not available in this version.',
    next: 'Set executor_mode: trusted_host, or wait for the container executor.',
  },
  'token/not-found': {
    class: 'config',
    message: 'No GitHub token was found ({tried}).',
    next: 'Set CADUCEUS_GITHUB_TOKEN, or github_token in the configuration, or log in with: gh auth login',
  },
  'token/rejected': {
    class: 'config',
    message: 'GitHub rejected the token ({status}).',
    next: 'Replace the token; it may have expired or been revoked.',
  },
  'token/malformed': {
    class: 'config',
    message:
      'The GitHub token holds a character that no token has (a space, a line break or the like).',
    next: 'Set it again, without surrounding text.',
  },

  // state
  'state/none': {
    class: 'state',
    message: 'There is no state yet in {path}.',
    next: 'Run one tick: caduceus run',
  },
  'state/corrupt': {
    class: 'state',
    message: '{path} is not readable as state: {reason}. {kept}',
    next: 'Restore the file from a backup, or move it away to begin with an empty state.',
  },
  'state/format-of-original': {
    class: 'state',
    message: '{path} has format {found}, written by the original implementation.',
    next: 'Use another state_dir, or move the file away to begin with an empty state.',
  },
  'state/format-newer': {
    class: 'state',
    message: '{path} has format {found}; this version knows {known}.',
    next: 'Install the newer version that wrote it.',
  },
  'state/stale-schema': {
    class: 'state',
    message: '{path} is a database with schema {found}; this version reads only {known}.',
    next: 'Use an empty state_dir; there is no migration from that schema.',
  },
  'state/directory-refused': {
    class: 'config',
    message: '{path} cannot be used to keep state: {reason}.',
    next: 'Set state_dir to a directory of your own.',
  },
  'state/lock-busy': {
    class: 'infrastructure',
    message: 'The lock {path} stayed taken for {seconds} s.',
    next: 'Another command is working on the state; try again.',
  },
  'state/claim-mismatch': {
    class: 'terminal',
    message: 'The run {run} no longer owns {issue} (found: {found}).',
    next: 'Look at: caduceus status',
  },
  'state/refused': {
    class: 'usage',
    message: 'An entry in phase {phase} does not accept "{event}" ({issue}).',
    next: 'Look at: caduceus status',
  },

  // system
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
    message: '{operation} of {path} failed: {reason}.',
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

  // GitHub
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
  'github/refused': {
    class: 'terminal',
    message: 'GitHub refused {request} ({status}): {reason}',
    next: 'Check the permissions of the token (contents, issues and pull requests: write).',
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

  // git and clones
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

  // worker
  'worker/command-missing': {
    class: 'infrastructure',
    message: 'The worker command {program} does not exist.',
    next: 'Set worker_command to an executable file.',
  },
  'worker/command-not-executable': {
    class: 'infrastructure',
    message: 'The worker command {program} is not an executable file.',
    next: 'Make it executable: chmod +x {program}',
  },
  'worker/exited': {
    class: 'worker',
    message: 'The worker ended with {ending}.',
    next: 'Its output is in {transcript}.',
  },
  'worker/timed-out': {
    class: 'worker',
    message: 'The worker was ended after {seconds} s, its time limit.',
    next: 'Its output is in {transcript}; raise worker_timeout_seconds if it needs longer.',
  },
  'worker/stalled': {
    class: 'worker',
    message: 'The worker was ended after {seconds} s without output or change.',
    next: 'Its output is in {transcript}; raise worker_stall_seconds if it needs longer.',
  },
  'worker/transcript-failed': {
    class: 'infrastructure',
    message: 'The output of the worker could not be written to {transcript}: {reason}.',
    next: 'Check free space there.',
  },
  'worker/supervisor-failed': {
    class: 'infrastructure',
    message: 'The supervisor of the worker failed: {reason}.',
    next: '',
  },
  'worker/reported-failure': {
    class: 'worker',
    message: 'The worker reported status "{status}": {summary}',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-missing': {
    class: 'worker',
    message: 'The worker left no worker-result.json.',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-unreadable': {
    class: 'worker',
    message: 'worker-result.json cannot be read: {reason}.',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-invalid': {
    class: 'worker',
    message: 'worker-result.json is not valid: {reason}.',
    next: 'The fields it may have are described in docs/the-bridge.md.',
  },
  'worker/tree-unusable': {
    class: 'worker',
    message: 'The worker left something in its tree that cannot be published: {reason}.',
    next: 'The tree is kept at {tree}.',
  },
  'worker/interrupted': {
    class: 'interrupted',
    message: 'The run was cut off before the worker finished ({reason}).',
    next: '',
  },
  'worker/prompt-too-large': {
    class: 'terminal',
    message: 'The prompt for {issue} would be {bytes} bytes; the limit is {maxBytes}.',
    next: 'Shorten the issue or worker_instruction, then label the issue again.',
  },
  'worker/context-too-large': {
    class: 'terminal',
    message: 'One event of {issue} alone exceeds the context limit of {maxBytes} bytes.',
    next: 'Shorten it on GitHub, then label the issue again.',
  },

  // publishing
  'publish/forbidden-word': {
    class: 'terminal',
    message: 'The {where} contains the forbidden word "{word}"; nothing was published.',
    next: 'The work is kept at {tree}. Change comment_forbidden_strings or the worker, then run: caduceus queue reset {issue}',
  },
  'publish/too-long': {
    class: 'terminal',
    message: 'The {where} has {found} {unit}; the limit is {limit}.',
    next: 'The work is kept at {tree}.',
  },
  'publish/no-changes': {
    class: 'terminal',
    message: 'The worker succeeded but changed nothing.',
    next: 'Read its summary on the issue; label the issue again to try once more.',
  },
  'publish/policy': {
    class: 'terminal',
    message: 'The change breaks a rule of this installation: {reason}.',
    next: 'The work is kept at {tree}.',
  },
  'publish/closed-unmerged': {
    class: 'terminal',
    message: 'Pull request #{number} was closed without being merged.',
    next: 'Label {issue} again to try once more.',
  },
  'publish/ambiguous': {
    class: 'terminal',
    message: '{what} exists more than once for this run.',
    next: 'Look at {where} and keep one.',
  },
  'publish/pending': {
    class: 'infrastructure',
    message: 'It is not known yet whether {stage} took effect; looked at again from {until}.',
    next: '',
  },

  // issues
  'issue/withdrawn': {
    class: 'cancelled',
    message: '{issue} was withdrawn: {reason}.',
    next: '',
  },

  // commands
  'usage/invalid': {
    class: 'usage',
    message: '{reason}',
    next: 'See: caduceus {command} --help',
  },
  'demo/failed': {
    class: 'internal',
    message: 'The demo did not reach its end: {reason}.',
    next: 'Everything is kept in {path}.',
  },
  'demo/refused': {
    class: 'internal',
    message: 'The embedded GitHub refused: {reason}.',
    next: '',
  },
  'internal/unexpected': {
    class: 'internal',
    message: 'Something unexpected happened: {reason}.',
    next: 'Please report it with the log.',
  },
} as const satisfies Record<string, FaultSpec>

export type FaultCode = keyof typeof FAULTS
