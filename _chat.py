"""The chat commands: which words are understood, how the program is asked, what of its answer is shown.

Chat users are not the operator: what they type never becomes an option, and what they read holds no secret
and no path of the operator's home.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from typing import Optional

SECONDS = 15
SECONDS_TO_END = 2
MOST_BYTES = 32 * 1024

# Every one of them only reads.
WORDS = {
    ("status",): ["status"],
    ("doctor",): ["doctor", "--offline"],
    ("queue",): ["queue", "list"],
    ("queue", "list"): ["queue", "list"],
}
ISSUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}#[1-9][0-9]{0,9}")
HELP = """What you can ask here; nothing is changed by it:
/caduceus status – what is queued, running, waiting and in trouble
/caduceus doctor – whether everything is set up right
/caduceus queue – all issues, what needs a human first
/caduceus queue show owner/repo#12 – everything about one issue
The rest is done on the machine itself: hermes caduceus --help"""

MASK = "<redacted>"
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|_PAT$|CREDENTIAL|AUTHORIZATION", re.IGNORECASE)
SHORTEST_SECRET = 8
SECRETS = (
    # NAME=value, also with quotes around either
    (
        r"(?<![A-Za-z0-9_])([A-Za-z0-9_]*(?:TOKEN|_PAT|API_KEY|SECRET|PASSWORD|github_token)[A-Z0-9_]{0,40}"
        r"[\"']?[ \t]{0,9}[=:][ \t]{0,9})(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"',;]+)",
        rf"\1{MASK}",
    ),
    (r"(?i)(\bauthorization[\"']?[ \t]*[:=])[^\n]+", rf"\1 {MASK}"),
    (r"(?i)(\b(?:bearer|basic)[ \t]+)(?=[a-z+/_.~-]*[0-9])[a-z0-9+/_.~-]{16,}=*", rf"\1{MASK}"),
    (r"(://)[^\s/?#'\"]*@", rf"\1{MASK}@"),
    (r"gh[a-z]_[A-Za-z0-9][A-Za-z0-9_.-]{15,}|github_pat_\w{16,}", MASK),
    (r"(?<![A-Za-z0-9_])(?:sk-|glpat-|npm_|AKIA|xox[a-z]-)[A-Za-z0-9_-]{16,}", MASK),
)
# Colours, and whatever else moves a terminal's cursor
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def argv_of(text: str) -> Optional[list]:
    """The arguments for the program, None for everything that is not exactly one of the known forms."""
    words = text.split()
    lower = tuple(word.lower() for word in words)
    if lower[:2] == ("queue", "show") and len(words) == 3 and ISSUE.fullmatch(words[2]):
        return ["queue", "show", words[2]]
    return WORDS.get(lower)


async def capture(command: list, env: dict) -> str:
    """Both streams as one text, while the host's event loop goes on. Whatever was started is ended after
    the deadline, after too much output, and when nobody waits for the answer any more."""
    child = await asyncio.create_subprocess_exec(
        *command,
        env={**env, "NO_COLOR": "1", "TERM": "dumb"},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    taken = bytearray()
    is_whole = is_late = False
    try:
        is_whole = await asyncio.wait_for(read(child, taken), SECONDS)
    except asyncio.TimeoutError:
        is_late = True
    finally:
        if not is_whole:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(drain(child), SECONDS_TO_END)
    text = taken[:MOST_BYTES].decode("utf-8", "replace").strip()
    if is_late:
        return f"{text}\nCaduceus did not answer in full within {SECONDS} seconds.".strip()
    return f"{text}\n… and more" if not is_whole else text or f"Caduceus ended with {child.returncode}."


async def read(child: asyncio.subprocess.Process, taken: bytearray) -> bool:
    """Whether that was all of it, with the end of the process."""
    while len(taken) <= MOST_BYTES:
        piece = await child.stdout.read(MOST_BYTES)
        if not piece:
            await child.wait()
            return True
        taken += piece
    return False


async def drain(child: asyncio.subprocess.Process) -> None:
    """Lets go of the pipe and of the ended process."""
    while await child.stdout.read(MOST_BYTES):
        pass
    await child.wait()


def cleaned(text: str, folders: dict) -> str:
    """Without secrets, and with the given folders (name to path) shortened to their names."""
    values = {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST_SECRET:
            text = text.replace(value, MASK)
    text = CONTROLS.sub("", text)
    for pattern, mask in SECRETS:
        text = re.sub(pattern, mask, text)
    pairs = [(name, form) for name, path in folders.items() for form in {path, os.path.realpath(path)}]
    for name, path in sorted(pairs, key=lambda pair: len(pair[1]), reverse=True):
        if len(path) > 1:
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", lambda _: name, text)
    return text
