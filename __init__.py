"""Caduceus as a plugin of the Hermes agent: hands `hermes caduceus …` and chat commands to the program.

Standard library only. To import this and to register does nothing else: no process is started, no file is
written or read, nothing is printed. What is missing is told when a command is called, in one line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import shutil
import signal
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any, NoReturn, Optional

from . import _chat

NAME = "caduceus"
SETUP = "hermes caduceus setup"
NODE_PLACES = ("/usr/local/bin/node", "/opt/homebrew/bin/node", "/usr/bin/node")
# In force when plugin.manifest.json cannot be read.
MANIFEST = {
    "version": "of unknown version",
    "description": "GitHub issues to pull requests",
    "minNode": "20.19",
    "launcher": "bin/caduceus",
    "bootstrap": "bootstrap.mjs",
    "commands": [],
}


class Refused(Exception):
    """Why the program cannot be started, what to do about it, and the exit code that says so."""

    def __init__(self, code: str, what: str, next_step: str, status: int) -> None:
        super().__init__(what)
        self.code, self.what, self.next_step, self.status = code, what, next_step, status


def register(ctx: Any) -> None:
    """Called by the host once for each process, and after a reload again. One failure costs one command."""
    skill = Path(os.path.abspath(__file__)).parent / "plugin-assets" / "skill" / "SKILL.md"
    brief = "GitHub issues to pull requests"
    about = "What Caduceus has queued, running, waiting and in trouble"
    hint = "status | doctor | queue | queue show owner/repo#12"
    registrations = (
        lambda: ctx.register_cli_command(
            name=NAME, help=brief, setup_fn=set_up_parser, handler_fn=run_cli, description=brief
        ),
        lambda: ctx.register_command(NAME, chat, description="Look at Caduceus", args_hint=hint),
        lambda: ctx.register_command(f"{NAME}-status", chat_status, description=about, args_hint=""),
        lambda: skill.is_file() and ctx.register_skill(NAME, skill, description="Operate Caduceus"),
    )
    for register_one in registrations:
        try:
            register_one()
        except Exception as error:
            logging.getLogger(__name__).info("caduceus: not registered: %s", error)


def set_up_parser(parser: argparse.ArgumentParser) -> None:
    """Has the parser pass everything through, --help and a leading option too. Never raises: the host
    would then leave out the commands of all other plugins."""

    def take_everything(args: Any = None, namespace: Any = None) -> tuple:
        namespace = argparse.Namespace() if namespace is None else namespace
        # The defaults of a parser are applied by the method that this one stands for.
        namespace.func = run_cli
        namespace.caduceus_argv = list(sys.argv[1:] if args is None else args)
        return namespace, []

    with contextlib.suppress(Exception):
        # Only for an argparse that parses subcommands in another way.
        parser.add_argument("caduceus_rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.parse_known_args = take_everything  # type: ignore[method-assign]


def run_cli(args: Any) -> NoReturn:
    """Some hosts drop what a handler returns, so the exit code is raised."""
    argv = getattr(args, "caduceus_argv", None)
    sys.exit(run(list(getattr(args, "caduceus_rest", None) or []) if argv is None else argv))


def run(argv: list) -> int:
    """Starts the program and returns its exit code; 128 + n when signal n ended it. Never raises."""
    try:
        if wants_help(argv) and not is_built():
            return tell_commands()
        command, env = plan(argv)
        status = follow(command, env)
        if status == 127 and verb_of(argv) == "doctor":
            what, next_step = "the program did not start, for the reason above", f"run: {SETUP}"
            return tell_failed_check("Program", what, next_step, argv)
        return status
    except Refused as refused:
        if refused.code == "plugin/no-node" and verb_of(argv) == "doctor":
            return tell_failed_check("Node", refused.what, refused.next_step, argv)
        return tell(refused, argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        what = f"the plugin failed ({type(error).__name__}: {error})"
        return tell(Refused("plugin/failed", what, "see whether it happens again", 1), argv)


def follow(command: list, env: dict) -> int:
    """Runs it with our streams until its end. Ctrl-C reaches it without us; what is sent to us alone is
    passed on."""
    child: Optional[Popen] = None
    early: list = []

    def pass_on(number: int, _frame: Any) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: pass_on, signal.SIGHUP: pass_on}
    before: dict = {}
    try:
        for number, handler in handlers.items():
            # One that is ignored, as under nohup, is meant to be ignored by the program too.
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # only the main thread may
                    before[number] = signal.signal(number, handler)
        try:
            child = Popen(command, env=env)
        except (OSError, ValueError) as error:
            what = f"{command[0]} could not be started ({getattr(error, 'strerror', None) or error})"
            raise Refused("plugin/not-started", what, f"run: {SETUP}", 126) from None
        for number in early:
            child.send_signal(number)
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    return status if status >= 0 else 128 - status


def plan(argv: list) -> tuple:
    """The command for these arguments and its environment; raises Refused when there is none."""
    root, about, verb = plugin_root(), manifest(), verb_of(argv)
    env = environment(root)
    node, is_named = find_node(str(about["minNode"]))
    if is_built() and (verb != "setup" or wants_help(argv)):
        # The launcher prefers the Node that setup has tried; ours is the last it looks at.
        if node is not None and not is_named:
            env["PATH"] = os.pathsep.join(filter(None, (env.get("PATH"), os.path.dirname(node))))
        return [os.path.join(root, about["launcher"]), *argv], env
    if node is None:
        what = f"Node {about['minNode']} or newer is needed and was not found"
        raise Refused("plugin/no-node", what, "install it, or name it with CADUCEUS_NODE", 127)
    if verb not in ("setup", "doctor"):
        raise Refused("plugin/not-built", "nothing is built yet", f"run: {SETUP}", 1)
    bootstrap = os.path.join(root, about["bootstrap"])
    if not os.path.isfile(bootstrap):
        what = f"the plugin is not complete ({bootstrap} is missing)"
        raise Refused("plugin/incomplete", what, "install the plugin again", 1)
    env["CADUCEUS_NODE"] = node
    rest = list(argv)
    rest.remove(verb)
    return [node, bootstrap, verb, *rest], env


def options_of(argv: list) -> list:
    return argv[: argv.index("--")] if "--" in argv else argv


def verb_of(argv: list) -> Optional[str]:
    return next((word for word in options_of(argv) if not word.startswith("-")), None)


def wants_help(argv: list) -> bool:
    return any(word in ("--help", "-h") for word in options_of(argv))


def plugin_root() -> str:
    return os.path.abspath(os.environ.get("HERMES_CADUCEUS_ROOT") or os.path.dirname(__file__))


def manifest() -> dict:
    """Our record of this plugin."""
    try:
        with open(os.path.join(plugin_root(), "plugin.manifest.json"), encoding="utf-8") as file:
            return {**MANIFEST, **json.load(file)}
    except (OSError, ValueError, TypeError):
        return MANIFEST


def is_built() -> bool:
    return os.path.isfile(os.path.join(plugin_root(), manifest()["launcher"]))


def is_program(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def which(name: str) -> Optional[str]:
    """From PATH, but never from the working directory."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, folders)))


def find_node(oldest: str) -> tuple:
    """An absolute path or None, and whether the user named it. Its version is judged by the program."""
    named = os.environ.get("CADUCEUS_NODE", "")
    if named and not is_program(named):
        is_there = os.path.isabs(named) and os.path.isfile(named)
        fault = "not executable" if is_there else "no absolute path of a program"
        what = f"CADUCEUS_NODE names {named}, which is {fault}"
        next_step = f"let it name Node {oldest} or newer, or unset it"
        raise Refused("plugin/no-node", what, next_step, 126 if is_there else 127)
    return named or which("node") or next(filter(is_program, NODE_PLACES), None), bool(named)


def hermes_home() -> str:
    """The host knows better than the environment, which lacks it unless somebody chose a profile."""
    try:
        from hermes_constants import get_hermes_home

        home = str(get_hermes_home())
    except Exception:
        home = os.environ.get("HERMES_HOME") or os.path.join("~", ".hermes")
    return os.path.abspath(os.path.expanduser(home))


def environment(root: str) -> dict:
    env = {**os.environ, "HERMES_HOME": hermes_home(), "CADUCEUS_PLUGIN_ROOT": root}
    called = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    is_host = os.path.basename(called).startswith("hermes") and not called.endswith(".py")
    programs = (env.get("CADUCEUS_HERMES_BIN", ""), called if is_host else "", which("hermes") or "")
    env["CADUCEUS_HERMES_BIN"] = next(filter(is_program, programs), "")
    return {name: value for name, value in env.items() if value or name != "CADUCEUS_HERMES_BIN"}


def tell(refused: Refused, argv: list) -> int:
    what = refused.what[0].upper() + refused.what[1:]
    if "--json" in options_of(argv):
        error = {"code": refused.code, "message": f"{what}.", "next": f"{refused.next_step}."}
        say(sys.stdout, json.dumps({"error": error}, indent=2))
    else:
        say(sys.stderr, f"caduceus: {what}. Next: {refused.next_step}.".replace("\n", " "))
    return refused.status


def tell_failed_check(name: str, detail: str, next_step: str, argv: list) -> int:
    """A report of `doctor` for when the program cannot make one."""
    if "--json" in options_of(argv):
        check = {"name": name, "subject": None, "status": "fail", "detail": detail, "next": next_step}
        say(sys.stdout, json.dumps({"checks": [check], "exitCode": 2}, indent=2))
    else:
        say(sys.stdout, f"[FAIL] {name} — {detail}\n    next action: {next_step}")
    return 2


def tell_commands() -> int:
    about = manifest()
    rows = [f"  {command['name']:<16} {command['summary']}" for command in about["commands"]]
    head = f"Caduceus {about['version']}: {about['description']}"
    tail = f"Nothing is built yet. Next: run: {SETUP}"
    say(sys.stdout, "\n".join([head, "", *rows, "", tail]))
    return 0


def say(stream: Any, text: str) -> None:
    """A closed or a narrow stream is no reason to fail."""
    try:
        print(text, file=stream, flush=True)
    except UnicodeError:
        say(stream, text.encode("ascii", "backslashreplace").decode("ascii"))
    except (OSError, ValueError):
        pass


async def chat(text: str = "") -> str:
    """`/caduceus …`: what is not among the words that only read is answered with what they are."""
    argv = _chat.argv_of(str(text or ""))
    return _chat.HELP if argv is None else await ask(argv)


async def chat_status(_text: str = "") -> str:
    return await ask(["status"])


async def ask(argv: list) -> str:
    """What the program says, fit for every reader of a chat. Never raises."""
    try:
        command, env = plan(argv)
        text = await _chat.capture(command, env)
    except Refused as refused:
        text = f"Caduceus: {refused.what}. Next: {refused.next_step}."
    except Exception as error:
        text = f"Caduceus could not be asked ({type(error).__name__}: {error})."
    return _chat.cleaned(text, {"$HERMES_HOME": hermes_home(), "~": os.path.expanduser("~")})
