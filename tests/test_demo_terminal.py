"""The demo on a real terminal: keys, screen, signals, and the terminal as it was before."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
import time
from pathlib import Path

import pexpect
import pytest

import pairseek as ps
from pairseek.cli.terminal.tty import Stopped, orderly_stop

PROGRAM = [sys.executable, "-c", "from pairseek.cli import main; main()", "demo"]
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
RIGHT, LEFT = "\x1b[C", "\x1bOD"
ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
# Kernels may have to be compiled first.
PATIENCE = 60


class Terminal:
    """A demo on a terminal of its own."""

    def __init__(self, folder, *arguments, size=(24, 80), shell=None, **environment):
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        plain |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        program = [*PROGRAM, *arguments]
        if shell is not None:
            program = ["bash", "-c", shell.format(demo=shlex.join(program))]
        self.child = pexpect.spawn(
            program[0], program[1:], dimensions=size, env=plain, cwd=folder, timeout=PATIENCE, encoding="utf-8"
        )
        self.all = ""

    def frame(self, words):
        """The first screen that says this, as plain text; it has settled, so that a key counts."""
        self.child.expect(f"{words}.*?help\x1b")  # the last word of the last line, where its style ends
        text = self.child.before + self.child.after
        self.all += text
        time.sleep(0.25)
        return ANSI.sub("", text[text.rindex("\x1b[H") :] if "\x1b[H" in text else text)

    def pair(self, words):
        """The codes of the two colours on that screen."""
        return re.findall("#[0-9a-f]{6}", self.frame(words))[-2:]

    def press(self, keys):
        self.child.send(keys)

    def end(self):
        """What it prints after it has left the screen, and its exit code."""
        self.child.expect(pexpect.EOF)
        self.all += self.child.before
        rest = ANSI.sub("", self.child.before.rpartition(LEAVE_SCREEN)[2])
        self.child.close()
        return rest, self.child.exitstatus


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def open_(*arguments, **settings):
        opened.append(Terminal(tmp_path, *arguments, **settings))
        return opened[-1]

    yield open_
    for one in opened:
        one.child.close(force=True)


def test_a_whole_search_with_arrows_undo_tie_skip_quit_and_resume_on_a_smaller_terminal(terminal, tmp_path):
    demo = terminal("--seed", "6", "--answers", "5", "--save", "me.json", size=(24, 80))
    first = demo.pair("0 answers")
    demo.press(RIGHT)
    second = demo.pair(r"\b1 answer\b")
    assert second != first
    demo.press("x")
    assert "That key does nothing: ? shows help." in demo.frame("That key")
    demo.press("u")
    assert demo.pair("0 answers") == first
    demo.press(RIGHT)
    assert demo.pair(r"\b1 answer\b") == second
    demo.press("=")
    demo.frame("2 answers")
    demo.press("s")
    assert "Skipped." in demo.frame("Skipped")
    demo.press(LEFT)
    fourth = demo.pair("3 answers")
    demo.press("q")
    rest, code = demo.end()
    assert code == 0
    assert "Saved 3 answers in me.json. Resume:" in rest
    events = ps.Search.load(tmp_path / "me.json").history
    assert [event.outcome for event in events] == ["answer", "tie", "skip", "answer"]
    assert events[0].winner == events[0].right
    assert events[3].winner == events[3].left

    again = terminal("--resume", "me.json", size=(20, 40))
    assert again.pair("3 answers") == fourth
    again.press("1")
    again.frame("4 answers")
    again.press("2")
    rest, code = again.end()
    assert code == 0
    assert "Your colour" in rest
    assert rest.count(" %") == 6
    assert max(len(line.rstrip("\r")) for line in rest.split("\n") if "--resume" not in line) <= 40
    assert ps.Search.load(tmp_path / "me.json").answers == 5


def test_ctrl_c_keeps_and_gives_the_terminal_back(terminal, tmp_path):
    demo = terminal("--seed", "6", shell="stty -g; {demo}; echo code $?; stty -g")
    demo.frame("0 answers")
    demo.press("11")  # a double press is one answer
    demo.frame("Too fast")
    demo.press("?")
    demo.child.expect("Press any key to go back")
    demo.all += demo.child.before
    demo.press("q")  # any key
    demo.frame(r"\b1 answer\b")
    demo.child.setwinsize(20, 40)
    demo.frame(r"\b1 answer\b")
    demo.press("\x03")
    rest, _ = demo.end()
    assert "Saved 1 answer in pairseek-demo.json" in rest
    assert "code 130" in rest
    assert ps.Search.load(tmp_path / "pairseek-demo.json").answers == 1
    before, after = re.findall(r"^[0-9a-f:]{40,}", ANSI.sub("", demo.all), re.MULTILINE)
    assert before == after
    assert demo.all.count(ENTER_SCREEN) == demo.all.count(LEAVE_SCREEN) == 1
    assert demo.all.rindex(SHOW_CURSOR) > demo.all.rindex("\x1b[?25l")


def test_ctrl_c_before_the_first_pair_ends_without_a_word(terminal, tmp_path):
    demo = terminal("--seed", "6")
    demo.child.expect("Preparing")
    demo.press("\x03")
    rest, code = demo.end()
    assert code == 130
    assert "Traceback" not in rest
    assert ENTER_SCREEN not in demo.all
    assert demo.all.rindex(SHOW_CURSOR) > demo.all.find("\x1b[?25l")
    assert not list(tmp_path.iterdir())


def test_being_told_to_end_keeps_and_gives_the_terminal_back(terminal, tmp_path):
    demo = terminal("--seed", "6", "--save", "me.json")
    demo.frame("0 answers")
    demo.press("1")
    demo.frame(r"\b1 answer\b")
    demo.child.kill(signal.SIGTERM)
    rest, code = demo.end()
    assert code == 128 + signal.SIGTERM
    assert "Saved 1 answer in me.json" in rest
    assert demo.all.count(ENTER_SCREEN) == demo.all.count(LEAVE_SCREEN) == 1
    assert demo.all.rindex(SHOW_CURSOR) > demo.all.rindex("\x1b[?25l")
    assert ps.Search.load(tmp_path / "me.json").answers == 1


def test_a_terminal_that_closes_loses_no_answer(terminal, tmp_path):
    demo = terminal("--seed", "6")
    demo.frame("0 answers")
    demo.press("1")
    demo.frame(r"\b1 answer\b")
    # A child that takes a screen to write its file is not an error here; that the file comes is what counts.
    with contextlib.suppress(pexpect.ExceptionPexpect):
        demo.child.close(force=False)
    kept = tmp_path / "pairseek-demo.json"
    deadline = time.monotonic() + 30
    while not kept.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ps.Search.load(kept).answers == 1


def test_a_simulated_search_can_be_watched(terminal):
    demo = terminal("--simulate", "--seed", "6", "--answers", "2")
    demo.frame("0 answers")
    demo.frame(r"\b1 answer\b")
    rest, code = demo.end()
    assert code == 0
    assert "The simulated user's favourite" in rest
    assert demo.all.count(ENTER_SCREEN) == demo.all.count(LEAVE_SCREEN) == 1


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_true_colour_there_are_names_and_codes(terminal, environment):
    demo = terminal("--seed", "6", "--answers", "2", **environment)
    for words, key in ((r"\b0 answers\b", "2"), (r"\b1 answer\b", "1")):
        demo.child.expect(words)
        demo.all += demo.child.before + demo.child.after
        time.sleep(0.4)
        demo.press(key)
    rest, code = demo.end()
    assert code == 0
    assert "Your colour" in rest
    assert len(set(re.findall("#[0-9a-f]{6}", demo.all))) >= 4
    assert "48;2;" not in demo.all
    assert "48;5;" not in demo.all
    assert (ENTER_SCREEN in demo.all) == (environment.get("TERM") != "dumb")


def test_an_unwritable_place_is_said_before_the_first_pair(terminal, tmp_path):
    demo = terminal("--save", str(Path("no") / "where.json"))
    rest, code = demo.end()
    assert code == 2
    assert "pairseek: cannot save to no/where.json: there is no folder 'no'; make it first" in rest
    assert ENTER_SCREEN not in demo.all
    assert not list(tmp_path.iterdir())


def test_a_signal_whose_exception_was_dropped_is_not_lost(capfd):
    class Callback:
        def __del__(self):
            # Python drops what is raised here.
            signal.raise_signal(signal.SIGTERM)

    hook = sys.unraisablehook
    with orderly_stop() as check:
        check()
        one = Callback()
        del one
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
        # A third one is ignored, so that nothing interrupts the cleanup.
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped) as stopped:
            check()
    assert stopped.value.code == 128 + signal.SIGTERM
    assert sys.unraisablehook is hook
    assert capfd.readouterr() == ("", "")
