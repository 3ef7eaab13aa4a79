"""The plugin where something is missing, and in chat. Run by test_shim.py."""

import asyncio
import contextlib
import io
import json
import os
import shutil
import sys
import time
import types
from pathlib import Path
from unittest import mock

from test_shim import Case, is_alive, load, until


class Surroundings(Case):
    def test_before_any_build_setup_and_doctor_are_the_bootstrap_s(self):
        node = self.node()
        for words in (["setup", "--dry-run"], ["doctor", "--json"], ["--json", "doctor"]):
            self.assertEqual(self.hermes(*words, END="2").code, 2)
            record, rest = self.recorded(), [word for word in words if word not in ("setup", "doctor")]
            verb = next(word for word in words if word not in rest)
            self.assertEqual(record["argv"], [str(self.plugin / "bootstrap.mjs"), verb, *rest])
            self.assertEqual(record["env"]["CADUCEUS_NODE"], node)

    def test_setup_is_the_bootstrap_s_for_ever_and_the_rest_is_the_launcher_s(self):
        node, launcher = self.node(), self.build()
        for verb, program in (("setup", node), ("doctor", launcher), ("status", launcher)):
            self.hermes(verb)
            self.assertEqual(self.recorded()["program"], program)

    def test_before_any_build_another_command_says_what_to_do(self):
        self.node()
        for words in ([], ["status"], ["cron-install"], ["queue", "list"], ["--weird"]):
            end = self.hermes(*words)
            self.assertEqual(end.code, 1)
            self.told_in_one_line(end, "Nothing is built yet", "hermes caduceus setup")
        end = self.hermes("status", "--json")
        self.assertEqual((end.code, end.err), (1, ""))
        self.assertEqual(json.loads(end.out)["error"]["next"], "run: hermes caduceus setup.")
        self.assertFalse(self.record.exists())

    def test_before_any_build_help_names_the_commands(self):
        for words in (["--help"], ["setup", "--help"], ["status", "-h"]):
            end = self.hermes(*words)
            self.assertEqual((end.code, end.err), (0, ""))
            for part in ("cron-install", "queue reset", "hermes caduceus setup"):
                self.assertIn(part, end.out)

    def test_node_is_the_named_one_then_of_path_then_of_the_usual_places(self):
        usual = self.program(self.home / "usual" / "node")
        self.hermes("setup", NODE_PLACES=f"/nowhere/node:{usual}")
        self.assertEqual(self.recorded()["program"], usual)
        on_path = self.node()
        self.hermes("setup", NODE_PLACES=usual)
        self.assertEqual(self.recorded()["program"], on_path)
        named = self.program(self.home / "named" / "node")
        self.hermes("setup", CADUCEUS_NODE=named, NODE_PLACES=usual)
        self.assertEqual(self.recorded()["program"], named)

    def test_node_is_never_taken_from_the_working_directory(self):
        self.node()
        shim = load(self.plugin)
        for path in ("", ".", ":", "bin", "::."):
            with mock.patch.dict(os.environ, {"PATH": path, "CADUCEUS_NODE": ""}):
                with contextlib.suppress(FileNotFoundError):
                    os.chdir(self.bin)
                self.addCleanup(os.chdir, "/")
                self.assertIsNone(shim.which("node"))

    def test_the_launcher_hears_of_node_only_what_the_user_named(self):
        self.build()
        self.node()
        self.hermes("status")
        self.assertNotIn("CADUCEUS_NODE", self.recorded()["env"])
        named = self.program(self.home / "named" / "node")
        self.hermes("status", CADUCEUS_NODE=named)
        self.assertEqual(self.recorded()["env"]["CADUCEUS_NODE"], named)
        self.assertEqual(self.recorded()["env"]["PATH"], str(self.bin))

    def test_the_launcher_finds_the_usual_places_at_the_end_of_path(self):
        self.build()
        usual = self.program(self.home / "usual" / "node")
        self.hermes("status", NODE_PLACES=usual)
        self.assertEqual(self.recorded()["env"]["PATH"], f"{self.bin}:{self.home / 'usual'}")

    def test_a_launcher_is_asked_even_where_no_node_is_seen(self):
        self.build()
        self.assertEqual(self.hermes("status").code, 0)

    def test_a_missing_node_is_127_with_its_variable_and_version(self):
        for verb in ("setup", "status"):
            end = self.hermes(verb)
            self.assertEqual(end.code, 127)
            self.told_in_one_line(end, "CADUCEUS_NODE", "20.19")

    def test_a_named_node_that_is_not_there_is_not_replaced_in_silence(self):
        self.node()
        for named in ("/nowhere/node", "node", str(self.bin)):
            end = self.hermes("setup", CADUCEUS_NODE=named)
            self.assertEqual(end.code, 127)
            self.told_in_one_line(end, f"CADUCEUS_NODE names {named}")

    def test_what_cannot_be_executed_is_126(self):
        plain = self.program(self.home / "plain", mode=0o644)
        end = self.hermes("setup", CADUCEUS_NODE=plain)
        self.assertEqual(end.code, 126)
        self.told_in_one_line(end, "not executable")
        self.build(mode=0o644)
        end = self.hermes("status")
        self.assertEqual(end.code, 126)
        self.told_in_one_line(end, "could not be started", "hermes caduceus setup")
        self.build("no program\0at all")
        self.assertEqual(self.hermes("status").code, 126)

    def test_doctor_makes_its_report_without_node(self):
        end = self.hermes("doctor")
        self.assertEqual((end.code, end.err), (2, ""))
        first, second = end.out.splitlines()
        self.assertTrue(first.startswith("[FAIL] Node — "))
        self.assertTrue(second.startswith("    next action: "))
        self.assertEqual(self.hermes("doctor", CADUCEUS_NODE="/nowhere/node").code, 2)
        report = json.loads(self.hermes("doctor", "--json").out)
        [check] = report["checks"]
        self.assertEqual((check["name"], check["status"], report["exitCode"]), ("Node", "fail", 2))

    def test_doctor_reports_a_launcher_without_its_node(self):
        self.build("#!/bin/sh\necho 'caduceus: Node was not found.' >&2\nexit 127\n")
        end = self.hermes("doctor")
        self.assertEqual((end.code, end.err), (2, "caduceus: Node was not found.\n"))
        self.assertTrue(end.out.startswith("[FAIL] Program — "))
        self.assertEqual(self.hermes("status").code, 127)

    def test_what_an_old_node_says_is_passed_on(self):
        self.node("#!/bin/sh\necho 'caduceus: too old' >&2\nexit 1\n")
        end = self.hermes("setup")
        self.assertEqual((end.code, end.err), (1, "caduceus: too old\n"))

    def test_an_incomplete_plugin_is_told(self):
        self.node()
        (self.plugin / "bootstrap.mjs").unlink()
        end = self.hermes("setup")
        self.assertEqual(end.code, 1)
        self.told_in_one_line(end, "bootstrap.mjs is missing", "install the plugin again")

    def test_a_stream_that_knows_few_characters_or_is_closed_is_no_failure(self):
        shim = load(self.plugin)
        narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        shim.say(narrow, "a — b")
        self.assertEqual(narrow.buffer.getvalue(), b"a \\u2014 b\n")
        narrow.close()
        shim.say(narrow, "a")
        shim.say(None, "")

    def test_a_fault_of_the_plugin_itself_is_one_line_too(self):
        shim, told = load(self.plugin), io.StringIO()
        with mock.patch.object(shim, "plan", side_effect=RuntimeError("odd")):
            with contextlib.redirect_stderr(told):
                self.assertEqual(shim.run(["status"]), 1)
        self.assertIn("RuntimeError: odd", told.getvalue())


class Chat(Case):
    def setUp(self):
        super().setUp()
        self.shim = load(self.plugin)
        patch = mock.patch.dict(os.environ, self.env, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def ask(self, text, command="chat", **env):
        with mock.patch.dict(os.environ, env):
            return asyncio.run(getattr(self.shim, command)(text))

    def test_each_known_form_starts_one_command_that_reads(self):
        self.build()
        forms = {
            "status": ["status"],
            " Status ": ["status"],
            "doctor": ["doctor", "--offline"],
            "queue": ["queue", "list"],
            "queue list": ["queue", "list"],
            "queue show owner/repo.js#12": ["queue", "show", "owner/repo.js#12"],
            "QUEUE Show Owner/Repo#1": ["queue", "show", "Owner/Repo#1"],
        }
        for text, argv in forms.items():
            self.assertEqual(self.ask(text), "said by the program")
            self.assertEqual(self.recorded()["argv"], argv)
            self.assertEqual(self.recorded()["env"]["NO_COLOR"], "1")

    def test_the_status_command_needs_no_word_and_heeds_none(self):
        self.build()
        for text in ("", "--help; queue reset o/r#1", None):
            self.assertEqual(self.ask(text, "chat_status"), "said by the program")
            self.assertEqual(self.recorded()["argv"], ["status"])

    def test_everything_else_is_answered_with_the_words_and_starts_nothing(self):
        self.build()
        hostile = ["", None, "help", "run", "setup", "queue reset o/r#1", "queue reprocess o/r#1"]
        hostile += ["status --json", "doctor --fix", "doctor --bundle=/x", "queue list --phase failed"]
        hostile += ["queue show", "queue show o/r#1 --json", "queue --help show o/r#1"]
        issues = "--help -o/r#1 o/r#0 o/r o/r#1;id o/r#$(id) ../r#1 o/r/x#1 o//r#1 o/r#1`id` o/r#\u0661"
        hostile += [f"queue show {issue}" for issue in issues.split()]
        hostile += [f"queue show {'a' * 40}/r#1", f"queue show o/r#{'1' * 11}", "x" * 100_000]
        for text in hostile:
            self.assertEqual(self.ask(text), self.shim._chat.HELP, text)
        self.assertFalse(self.record.exists())

    def test_a_program_that_does_not_end_is_ended_with_all_it_started(self):
        self.build('#!/bin/sh\n/bin/sleep 50 &\necho begun\necho $$ $! > "$RECORD"\nwait\n')
        self.shim._chat.SECONDS = 3
        answer = self.ask("status")
        self.assertEqual(answer, "begun\nCaduceus did not answer in full within 3 seconds.")
        for pid in self.record.read_text().split():
            until(lambda pid=pid: not is_alive(int(pid)))

    def test_one_that_leaves_somebody_with_the_pipe_does_not_hold_the_answer_for_ever(self):
        self.build('#!/bin/sh\n/bin/sleep 50 &\necho done\necho $! > "$RECORD"\n')
        self.shim._chat.SECONDS = 2
        self.assertTrue(self.ask("status").startswith("done\n"))
        until(lambda: not is_alive(int(self.record.read_text())))

    def test_endless_output_is_cut_and_its_program_ended(self):
        self.build('#!/bin/sh\necho $$ > "$RECORD"\nexec /usr/bin/yes "0123456789"\n')
        began = time.monotonic()
        answer = self.ask("status")
        self.assertLess(time.monotonic() - began, self.shim._chat.SECONDS)
        self.assertTrue(answer.endswith("… and more"))
        self.assertLess(len(answer), 33 * 1024)
        until(lambda: not is_alive(int(self.record.read_text())))

    def test_other_chats_go_on_meanwhile(self):
        self.build('#!/bin/sh\nuntil [ -e "$RECORD" ]; do /bin/sleep 0.02; done\necho over\n')

        async def both():
            answer = asyncio.ensure_future(self.shim.chat("status"))
            for _ in range(20):
                await asyncio.sleep(0.01)
            self.assertFalse(answer.done())
            self.record.touch()
            return await answer

        self.assertEqual(asyncio.run(both()), "over")

    def test_when_nobody_waits_any_more_the_program_is_ended(self):
        self.build('#!/bin/sh\necho $$ > "$RECORD"\nexec /bin/sleep 50\n')

        async def give_up():
            answer = asyncio.ensure_future(self.shim.chat("status"))
            while not (self.record.exists() and self.record.read_text().strip()):
                await asyncio.sleep(0.01)
            answer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await answer

        asyncio.run(give_up())
        until(lambda: not is_alive(int(self.record.read_text())))

    def test_no_secret_is_shown(self):
        self.build()
        shape = {name: name + "a1B2" * 10 for name in ("ghp_", "github_pat_", "sk-", "xoxb-")}
        value = "plain-looking words"
        texts = [f"it is {token} here" for token in shape.values()]
        texts += [f"GITHUB_TOKEN={value.split()[0]}", f'"API_KEY": "{value}"', f"MY_SECRET='{value}'"]
        texts += [f"Authorization: token {value}", f"https://user:{value.split()[0]}@github.com/o/r"]
        texts += [f"the value {value} of the environment", "Bearer " + "a1" * 20]
        for text in texts:
            answer = self.ask("status", SAY=text, CADUCEUS_GITHUB_TOKEN=value)
            self.assertIn("<redacted>", answer)
            for secret in (value, value.split()[0], "a1B2a1B2", "a1a1"):
                self.assertNotIn(secret, answer)

    def test_text_made_to_be_slow_is_not(self):
        began = time.monotonic()
        for piece in ("TOKEN", "://", "A_PAT_", "bearer ", "sk-", "\x1b[", 'X_TOKEN="'):
            self.shim._chat.cleaned(piece * (32 * 1024 // len(piece)), {"~": "/home/u"})
        self.assertLess(time.monotonic() - began, 5)

    def test_the_home_of_the_operator_is_not_shown(self):
        self.build()
        say = f"{self.hermes_home}/state {self.home}/x {self.home}. {self.home}y"
        self.assertEqual(self.ask("status", SAY=say), f"$HERMES_HOME/state ~/x ~. {self.home}y")
        self.assertEqual(self.shim._chat.cleaned("/a /", {"~": "/"}), "/a /")
        link = self.home / "link"
        link.symlink_to(self.bin)
        shown = self.shim._chat.cleaned(f"{link}/x {self.bin}/y", {"~": str(link)})
        self.assertEqual(shown, "~/x ~/y")

    def test_nothing_moves_the_cursor_of_a_terminal(self):
        self.build()
        self.assertEqual(self.ask("status", SAY="\x1b[31mred\x1b[0m\a\r\tline"), "red\tline")

    def test_a_failing_program_is_shown_with_its_words_or_its_code(self):
        self.build()
        self.assertEqual(self.ask("status", END="1"), "said by the program")
        self.assertEqual(self.ask("status", END="3", SAY=""), "Caduceus ended with 3.")

    def test_what_is_missing_is_said_with_the_next_step(self):
        self.shim.NODE_PLACES = ()
        self.assertIn("CADUCEUS_NODE", self.ask("status"))
        self.node()
        self.assertIn("hermes caduceus setup", self.ask("status"))
        answer = self.ask("status", CADUCEUS_NODE=str(self.home / "old" / "node"))
        self.assertIn("CADUCEUS_NODE names ~/old/node", answer)
        self.assertEqual(self.ask("doctor"), "said by the program")
        self.assertEqual(self.recorded()["argv"][1:], ["doctor", "--offline"])

    def test_an_answer_is_text_whatever_happens(self):
        self.build(mode=0o644)
        self.assertIn("PermissionError", self.ask("status"))
        (self.plugin / "plugin.manifest.json").write_text("[]")
        self.assertIn("PermissionError", self.ask("status"))
        self.build("#!/bin/sh\nprintf '\\377\\376'\n")
        self.assertEqual(self.ask("status"), "\ufffd\ufffd")
