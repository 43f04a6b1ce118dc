"""The demo in a real terminal: lines, signals, and a terminal that closes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import pexpect
import pytest

import pairseek as ps
from pairseek.cli.runs import Stopped, orderly_stop

PROGRAM = ["-c", "from pairseek.cli import main; main()", "demo"]
PROMPT = "q stop: "
# Kernels may have to be compiled first.
TIMEOUT = 60


@pytest.fixture
def terminal(tmp_path):
    """Start demos, each in a terminal of its own."""
    children = []

    def start(*arguments, **environment):
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        plain |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        child = pexpect.spawn(
            sys.executable, [*PROGRAM, *arguments], env=plain, cwd=tmp_path, timeout=TIMEOUT, encoding="utf-8"
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def asked(demo, number):
    """Wait for this question, and return the codes of its two colours."""
    demo.expect(f"{number} of .*{PROMPT}")
    return re.findall("#[0-9a-f]{6}", demo.after)[-2:]


def end(demo):
    """Wait for the end, and return the rest of the output and the exit code."""
    demo.expect(pexpect.EOF)
    demo.close()
    return demo.before, demo.exitstatus


def test_a_whole_search_with_undo_tie_stop_and_resume(terminal, tmp_path):
    demo = terminal("--seed", "6", "--answers", "4", "--save", "me.json")
    first = asked(demo, 1)
    assert "48;2;" in demo.after
    demo.sendline("2")
    second = asked(demo, 2)
    assert second != first
    demo.sendline("x")
    demo.expect("Type one of these keys")
    demo.sendline("u")
    assert asked(demo, 1) == first
    demo.sendline("2")
    assert asked(demo, 2) == second
    demo.sendline("=")
    third = asked(demo, 3)
    demo.sendline("q")
    rest, code = end(demo)
    assert code == 0
    assert "Saved 2 answers in me.json. Resume:" in rest
    events = ps.Search.load(tmp_path / "me.json").history
    assert [event.outcome for event in events] == ["answer", "tie"]
    assert events[0].winner == events[0].right

    again = terminal("--resume", "me.json")
    assert asked(again, 3) == third
    again.sendline("1")
    asked(again, 4)
    again.sendline("2")
    rest, code = end(again)
    assert code == 0
    assert "After 4 answers" in rest
    assert rest.count(" %") == 6
    assert ps.Search.load(tmp_path / "me.json").answers == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("saved", [(), ("--save", "pairseek-demo.json")], ids=["unsaved", "saved"])
def test_a_signal_shows_the_result_and_saves_the_search(terminal, tmp_path, number, saved):
    demo = terminal("--seed", "6", *saved)
    asked(demo, 1)
    demo.sendline("1")
    asked(demo, 2)
    if number == signal.SIGINT:
        demo.send("\x03")
    else:
        demo.kill(number)
    rest, code = end(demo)
    assert code == 128 + number
    assert "After 1 answer:" in rest
    assert "Your colour" in rest
    assert "Saved 1 answer in pairseek-demo.json. Resume:" in rest
    assert "Traceback" not in rest
    assert ps.Search.load(tmp_path / "pairseek-demo.json").answers == 1


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_before_the_first_answer_leave_nothing(terminal, tmp_path, key):
    demo = terminal("--seed", "6")
    asked(demo, 1)
    demo.send(key)
    rest, code = end(demo)
    assert code == (130 if key == "\x03" else 0)
    assert "There are no answers, so nothing was saved." in rest
    assert not list(tmp_path.iterdir())


def test_a_terminal_that_closes_loses_no_answer(terminal, tmp_path):
    demo = terminal("--seed", "6")
    asked(demo, 1)
    demo.sendline("1")
    asked(demo, 2)
    # The child may take a while to write its file: that is no error, as long as the file appears.
    with contextlib.suppress(pexpect.ExceptionPexpect):
        demo.close(force=False)
    saved = tmp_path / "pairseek-demo.json"
    deadline = time.monotonic() + 30
    while not saved.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ps.Search.load(saved).answers == 1


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"COLORTERM": ""}])
def test_without_true_colour_there_are_names_and_codes(terminal, environment):
    demo = terminal("--seed", "6", "--answers", "1", **environment)
    assert len(asked(demo, 1)) == 2
    assert "48;" not in demo.after
    demo.sendline("1")
    rest, code = end(demo)
    assert code == 0
    assert "Your colour" in rest
    assert "48;" not in rest


def test_an_unwritable_path_is_reported_before_the_first_pair(terminal, tmp_path):
    demo = terminal("--save", str(Path("no") / "where.json"))
    rest, code = end(demo)
    assert code == 2
    assert "pairseek: cannot save to no/where.json: the folder 'no' does not exist; create it first" in rest
    assert "1 of 15" not in rest
    assert not list(tmp_path.iterdir())


def test_a_signal_whose_exception_was_dropped_is_not_lost(capfd):
    class Callback:
        def __del__(self):
            # Python drops exceptions that are raised here.
            signal.raise_signal(signal.SIGTERM)

    hook = sys.unraisablehook
    with orderly_stop() as check:
        check()
        callback = Callback()
        del callback
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
        # A third signal is ignored, so that nothing interrupts the cleanup.
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped) as stopped:
            check()
    assert stopped.value.code == 128 + signal.SIGTERM
    assert sys.unraisablehook is hook
    assert capfd.readouterr() == ("", "")
