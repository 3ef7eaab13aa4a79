"""The plugin's Python side, with python3 alone: real parsers, real processes, a host of a few lines.

  test_shim.py                     runs all tests, those of test_shim_surroundings.py too
  test_shim.py module.Class.name   runs one
  test_shim.py --list              prints their names as JSON
  test_shim.py --host PLUGIN words…  is the host: `hermes words…` with the plugin at that path
"""

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ("__init__.py", "_chat.py", "plugin.manifest.json", "plugin-assets/skill/SKILL.md")
PYTHON = f"#!{sys.executable} -IB\n"
# Says how it was called, then ends as it is told to.
RECORDER = PYTHON + """
import json, os, signal, sys
record = {
    "argv": sys.argv[1:],
    "env": dict(os.environ),
    "stdin": sys.stdin.read() if os.environ.get("READ_STDIN") else None,
    "ignored": [n for n in (1, 2, 15) if signal.getsignal(n) is signal.SIG_IGN],
    "program": sys.argv[0],
}
with open(os.environ["RECORD"], "w") as file:
    json.dump(record, file)
print(os.environ.get("SAY", "said by the program"))
sys.stdout.flush()
end = int(os.environ.get("END", "0"))
os.kill(os.getpid(), -end) if end < 0 else sys.exit(end)
"""
# Waits for a signal, of which it says which one it was.
WAITER = PYTHON + """
import os, signal, sys
def end(number, frame):
    print("cleaned up after", number)
    sys.exit(40 + number)
for number in (1, 2, 15):
    signal.signal(number, end)
open(os.environ["RECORD"], "w").close()
while True:
    signal.pause()
"""


def load(plugin):
    """As the host does: by its file, below a package that exists in memory only."""
    sys.modules.setdefault("hermes_plugins", types.ModuleType("hermes_plugins"))
    name, file = "hermes_plugins.caduceus", Path(plugin) / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(plugin)]
    )
    module = importlib.util.module_from_spec(spec)
    for loaded in [key for key in sys.modules if key.startswith(name)]:
        del sys.modules[loaded]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Context:
    """What the host gives to register(); `broken` names the methods that fail."""

    def __init__(self, broken=()):
        self.broken, self.cli, self.commands, self.skills = broken, {}, {}, {}

    def check(self, method):
        if method in self.broken:
            raise RuntimeError(f"{method} is broken")

    def register_cli_command(self, name, help, setup_fn, handler_fn=None, description=""):
        self.check("register_cli_command")
        self.cli[name] = (help, setup_fn, handler_fn, description)

    def register_command(self, name, handler, description="", args_hint=""):
        self.check(f"register_command {name}")
        self.commands[name] = handler

    def register_skill(self, name, path, description=""):
        self.check("register_skill")
        if not path.exists():
            raise FileNotFoundError(path)
        self.skills[name] = path


def parser_with(context):
    parser = argparse.ArgumentParser(prog="hermes")
    parser.add_argument("--safe-mode", action="store_true")
    parser.add_argument("-z", "--oneshot")
    subparsers = parser.add_subparsers(dest="command")
    subparsers.add_parser("cron").add_argument("--all", action="store_true")
    for name, (help, setup_fn, handler_fn, description) in context.cli.items():
        child = subparsers.add_parser(
            name,
            help=help,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        setup_fn(child)
        if handler_fn is not None:
            child.set_defaults(func=handler_fn)
    return parser


def be_host(plugin, words):
    """Like the host of 0.19: what the handler returns is dropped, the end is always 0."""
    shim = load(plugin)
    shim.NODE_PLACES = tuple(filter(None, os.environ.get("NODE_PLACES", "").split(":")))
    context = Context()
    shim.register(context)
    args = parser_with(context).parse_args(words)
    args.func(args)
    sys.exit(0)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.01)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that was ended and not collected yet, perhaps never, is not alive.
    if Path("/proc").is_dir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return False
    state = subprocess.run(["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True)
    return state.stdout.strip()[:1] not in (b"", b"Z")


class Case(unittest.TestCase):
    """A plugin installed in a home of its own, with nothing on PATH but what a test puts there."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="caduceus-shim-")
        self.addCleanup(shutil.rmtree, folder)
        self.home = Path(os.path.realpath(folder))
        self.hermes_home = self.home / "hermes home"
        self.plugin = self.hermes_home / "plugins" / "caduceus"
        self.bin = self.home / "bin"
        self.record = self.home / "record"
        self.bin.mkdir()
        for name in SHIPPED:
            (self.plugin / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.plugin / name)
        (self.plugin / "bootstrap.mjs").write_text("")
        self.launcher = self.plugin / "bin" / "caduceus"
        self.env = {
            "HOME": str(self.home),
            "HERMES_HOME": str(self.hermes_home),
            "PATH": str(self.bin),
            "RECORD": str(self.record),
            "LC_ALL": "C.UTF-8",
        }

    def program(self, path, text=RECORDER, mode=0o755):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def build(self, text=RECORDER, mode=0o755):
        return self.program(self.launcher, text, mode)

    def node(self, text=RECORDER, mode=0o755):
        return self.program(self.bin / "node", text, mode)

    def words(self, words):
        host = [sys.executable, "-I", "-B", __file__, "--host", str(self.plugin)]
        return [*host, "caduceus", *words]

    def hermes(self, *words, stdin="", **env):
        end = subprocess.run(
            self.words(words),
            env={**self.env, **env},
            input=stdin.encode(),
            capture_output=True,
            timeout=50,
        )
        out, err = end.stdout.decode(), end.stderr.decode()
        self.assertNotIn("Traceback", err)
        return types.SimpleNamespace(code=end.returncode, out=out, err=err)

    def start(self, *words, **options):
        child = subprocess.Popen(
            self.words(words),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def recorded(self):
        return json.loads(self.record.read_text())

    def told_in_one_line(self, end, *parts):
        self.assertEqual(end.out, "")
        self.assertEqual(end.err.count("\n"), 1, end.err)
        for part in ("caduceus: ", "Next: ", *parts):
            self.assertIn(part, end.err)


class Registration(Case):
    def test_all_four_are_registered_and_the_skill_is_a_path(self):
        context = Context()
        load(self.plugin).register(context)
        self.assertEqual(list(context.cli), ["caduceus"])
        self.assertEqual(sorted(context.commands), ["caduceus", "caduceus-status"])
        self.assertEqual(context.skills["caduceus"], self.plugin / "plugin-assets/skill/SKILL.md")

    def test_one_that_fails_does_not_take_the_others_with_it(self):
        every = {"register_cli_command", "register_skill"}
        every |= {"register_command caduceus", "register_command caduceus-status"}
        for broken in every:
            context = Context((broken,))
            load(self.plugin).register(context)
            done = {"register_cli_command"} if context.cli else set()
            done |= {f"register_command {name}" for name in context.commands}
            done |= {"register_skill"} if context.skills else set()
            self.assertEqual(done, every - {broken})

    def test_a_host_that_knows_none_of_them_is_no_failure(self):
        load(self.plugin).register(object())

    def test_a_missing_skill_costs_only_the_skill(self):
        (self.plugin / "plugin-assets/skill/SKILL.md").unlink()
        context = Context()
        load(self.plugin).register(context)
        self.assertEqual((len(context.cli), len(context.commands), context.skills), (1, 2, {}))

    def test_registering_again_changes_nothing(self):
        shim, context = load(self.plugin), Context()
        shim.register(context)
        first = (dict(context.cli), dict(context.commands), dict(context.skills))
        shim.register(context)
        self.assertEqual((context.cli, context.commands, context.skills), first)

    def test_import_and_registration_print_start_and_write_nothing(self):
        self.build()
        self.node()
        code = f"""if True:
            import sys
            events = []
            wrong = ("subprocess.", "os.", "socket.", "shutil.", "signal.")
            def hook(event, args):
                is_write = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wxa+")
                if is_write or event.startswith(wrong) and event not in ("os.listdir", "os.scandir"):
                    events.append((event, str(args)))
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            import test_shim
            sys.addaudithook(hook)
            shim = test_shim.load({str(self.plugin)!r})
            context = test_shim.Context()
            shim.register(context)
            test_shim.parser_with(context)
            assert not events, events
        """
        before = sorted(self.home.rglob("*"))
        command = [sys.executable, "-I", "-B", "-c", code]
        end = subprocess.run(command, env=self.env, capture_output=True, text=True, cwd=self.home)
        self.assertEqual((end.returncode, end.stdout, end.stderr), (0, "", ""))
        self.assertEqual(sorted(self.home.rglob("*")), before)

    def test_the_record_is_read_when_a_command_is_called_and_not_before(self):
        (self.plugin / "plugin.manifest.json").write_text("{ broken")
        self.build()
        self.assertEqual(self.hermes("status").code, 0)

    def test_the_host_takes_it_for_a_plugin_of_its_own(self):
        for name in ("__init__.py", "_chat.py"):
            read = (ROOT / name).read_text(encoding="utf-8")[:8192]
            for word in ("register_memory_" + "provider", "Memory" + "Provider"):
                self.assertNotIn(word, read)
            self.assertFalse("register_" + "provider" in read and "Provider" + "Profile" in read)

    def test_the_host_s_record_has_exactly_the_nine_keys_it_knows(self):
        lines = (ROOT / "plugin.yaml").read_text(encoding="utf-8").splitlines()
        rows = dict(line.split(": ", 1) for line in lines if not line.startswith("#"))
        keys = "manifest_version name version description author kind"
        lists = "provides_tools provides_hooks requires_env"
        self.assertEqual(list(rows), f"{keys} {lists}".split())
        package = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
        self.assertEqual(json.loads(rows["version"]), package["version"])
        self.assertEqual(json.loads(rows["name"]), "caduceus")
        self.assertEqual((rows["manifest_version"], rows["kind"]), ("1", "standalone"))
        self.assertEqual({rows[name] for name in lists.split()}, {"[]"})


PASSED_THROUGH = (
    [],
    ["status"],
    ["--help"],
    ["-h"],
    ["status", "--help"],
    ["--json", "status"],
    ["status", "--json"],
    ["setup", "--help"],
    ["queue", "show", "owner/repo#12", "--json"],
    ["--", "--weird"],
    ["run", "--", "--help", "--"],
    ["-x"],
    ["--safe-mode", "-z", "cron"],
    ["", " ", "a b", "*", "$HOME", "`x`", "'\""],
    ["ünï", "🤖 auto-fix", "line\nbreak"],
    ["--option=value", "--all", "@file"],
)


class CommandLine(Case):
    def test_every_argument_reaches_the_program_as_it_was_typed(self):
        self.build()
        for words in PASSED_THROUGH:
            with self.subTest(words=words):
                self.record.unlink(missing_ok=True)
                end = self.hermes(*words)
                self.assertEqual((end.code, end.err), (0, ""))
                # Some versions of argparse take a leading -- for themselves.
                dropped = words[1:] if words[:1] == ["--"] else words
                self.assertIn(self.recorded()["argv"], (words, dropped))

    def test_an_argument_that_is_not_text_reaches_the_program_too(self):
        self.build()
        end = subprocess.run(self.words([b"\xff\xfe"]), env=self.env, capture_output=True)
        self.assertEqual(end.returncode, 0)
        self.assertEqual(self.recorded()["argv"], [os.fsdecode(b"\xff\xfe")])

    def test_a_parser_that_goes_round_the_method_still_has_the_words(self):
        self.build()
        shim, context = load(self.plugin), Context()
        shim.register(context)
        parser = argparse.ArgumentParser()
        context.cli["caduceus"][1](parser)
        args, _ = argparse.ArgumentParser.parse_known_args(parser, ["queue", "--json"])
        with mock.patch.object(shim, "run", return_value=4) as run:
            with self.assertRaises(SystemExit) as end:
                shim.run_cli(args)
        run.assert_called_once_with(["queue", "--json"])
        self.assertEqual(end.exception.code, 4)

    def test_preparing_a_parser_never_fails(self):
        load(self.plugin).set_up_parser(types.SimpleNamespace())

    def test_the_exit_code_is_the_program_s(self):
        self.build()
        for code in (0, 1, 2, 3, 126, 127, 255):
            self.assertEqual(self.hermes("run", END=str(code)).code, code)

    def test_death_by_a_signal_is_128_and_its_number(self):
        self.build()
        for number in (1, 9, 15):
            self.assertEqual(self.hermes("run", END=str(-number)).code, 128 + number)

    def test_the_streams_are_the_user_s(self):
        self.build()
        end = self.hermes("run", stdin="piped in", READ_STDIN="1", SAY="ünï")
        self.assertEqual((end.out, end.err), ("ünï\n", ""))
        self.assertEqual(self.recorded()["stdin"], "piped in")

    def test_the_environment_names_home_plugin_and_host(self):
        self.build()
        host = self.program(self.bin / "hermes")
        self.hermes("status", CADUCEUS_CONFIG="/c", SECRET_OF_USER="x")
        env = self.recorded()["env"]
        self.assertEqual(env["HERMES_HOME"], str(self.hermes_home))
        self.assertEqual(env["CADUCEUS_PLUGIN_ROOT"], str(self.plugin))
        self.assertEqual(env["CADUCEUS_HERMES_BIN"], host)
        self.assertEqual((env["CADUCEUS_CONFIG"], env["SECRET_OF_USER"]), ("/c", "x"))

    def test_the_host_that_was_called_is_the_one_named(self):
        called = self.program(self.home / "hermesx")
        self.program(self.bin / "hermes")
        shim = load(self.plugin)
        with mock.patch.dict(os.environ, self.env), mock.patch.object(sys, "argv", [called, "x"]):
            self.assertEqual(shim.environment("/r")["CADUCEUS_HERMES_BIN"], called)

    def test_without_a_host_on_path_none_is_named(self):
        self.build()
        self.hermes("status")
        self.assertNotIn("CADUCEUS_HERMES_BIN", self.recorded()["env"])

    def test_the_host_s_own_word_for_its_home_comes_first(self):
        shim = load(self.plugin)
        constants = types.ModuleType("hermes_constants")
        constants.get_hermes_home = lambda: Path("/profile/p")
        with mock.patch.dict(sys.modules, hermes_constants=constants):
            self.assertEqual(shim.hermes_home(), "/profile/p")
        with mock.patch.dict(os.environ, {"HOME": "/h"}):
            os.environ.pop("HERMES_HOME", None)
            self.assertEqual(shim.hermes_home(), os.path.join("/h", ".hermes"))

    def test_another_root_can_be_named(self):
        other = self.home / "other"
        shutil.copytree(self.plugin, other)
        self.program(other / "bin" / "caduceus")
        self.assertEqual(self.hermes("status", HERMES_CADUCEUS_ROOT=str(other)).code, 0)
        self.assertEqual(self.recorded()["env"]["CADUCEUS_PLUGIN_ROOT"], str(other))

    def test_ctrl_c_is_the_program_s_to_answer(self):
        self.build(WAITER)
        child = self.start("daemon")
        until(self.record.exists)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=30)
        self.assertEqual((child.returncode, out, err), (42, "cleaned up after 2\n", ""))

    def test_what_is_sent_to_the_host_alone_reaches_the_program(self):
        self.build(WAITER)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.record.unlink(missing_ok=True)
            child = self.start("daemon")
            until(self.record.exists)
            child.send_signal(number)
            out, err = child.communicate(timeout=30)
            self.assertEqual((child.returncode, err), (40 + number, ""))
            self.assertEqual(out, f"cleaned up after {int(number)}\n")

    def test_a_signal_before_the_start_is_passed_on_after_it(self):
        waiter = self.build("#!/bin/sh\nexec sleep 50\n")
        shim = load(self.plugin)

        def late_start(*args, **options):
            os.kill(os.getpid(), signal.SIGTERM)
            return subprocess.Popen(*args, **options)

        before = [signal.getsignal(number) for number in (1, 2, 15)]
        with mock.patch.object(shim, "Popen", late_start):
            self.assertEqual(shim.follow([waiter], dict(os.environ)), 128 + signal.SIGTERM)
        self.assertEqual([signal.getsignal(number) for number in (1, 2, 15)], before)

    def test_a_signal_that_is_ignored_stays_ignored(self):
        self.build()
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
        self.start("status", preexec_fn=ignore).communicate(timeout=30)
        self.assertEqual(self.recorded()["ignored"], [int(signal.SIGHUP)])

    def test_a_thread_of_the_host_may_call_it_too(self):
        self.build()
        shim, codes = load(self.plugin), []
        import threading

        with mock.patch.dict(os.environ, {**self.env, "SAY": "", "END": "6"}):
            work = threading.Thread(target=lambda: codes.append(shim.run(["status"])))
            work.start()
            work.join()
        self.assertEqual(codes, [6])


SUITES = ("test_shim", "test_shim_surroundings")


def names_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names_in(test)
        else:
            yield test.id()


def be_tester(words):
    sys.path.insert(0, str(Path(__file__).parent))
    is_list = words == ["--list"]
    suite = unittest.defaultTestLoader.loadTestsFromNames(SUITES if is_list or not words else words)
    if is_list:
        print(json.dumps(list(names_in(suite))))
        return 0
    return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--host"]:
        be_host(sys.argv[2], sys.argv[3:])
    sys.exit(be_tester(sys.argv[1:]))
