"""The demo on a real terminal: lines, signals, and a terminal that closes."""

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
from pairseek.cli.signals import Stopped, orderly_stop

PROGRAM = ["-c", "from pairseek.cli import main; main()", "demo"]
PROMPT = "q stop: "
# Kernels may have to be compiled first.
PATIENCE = 60


@pytest.fixture
def terminal(tmp_path):
    """Start a demo on a terminal of its own."""
    opened = []

    def open_(*arguments, **environment):
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        plain |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        child = pexpect.spawn(
            sys.executable, [*PROGRAM, *arguments], env=plain, cwd=tmp_path, timeout=PATIENCE, encoding="utf-8"
        )
        opened.append(child)
        return child

    yield open_
    for one in opened:
        one.close(force=True)


def asked(demo, number):
    """The codes of the two colours of this question."""
    demo.expect(f"{number} of .*{PROMPT}")
    return re.findall("#[0-9a-f]{6}", demo.after)[-2:]


def end(demo):
    """What it prints at the end, and its exit code."""
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
def test_a_signal_shows_what_was_learned_and_keeps_it(terminal, tmp_path, number, saved):
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
    # A child that takes a while to write its file is not an error here; that the file comes is what counts.
    with contextlib.suppress(pexpect.ExceptionPexpect):
        demo.close(force=False)
    kept = tmp_path / "pairseek-demo.json"
    deadline = time.monotonic() + 30
    while not kept.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ps.Search.load(kept).answers == 1


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


def test_an_unwritable_place_is_said_before_the_first_pair(terminal, tmp_path):
    demo = terminal("--save", str(Path("no") / "where.json"))
    rest, code = end(demo)
    assert code == 2
    assert "pairseek: cannot save to no/where.json: the folder 'no' does not exist; create it first" in rest
    assert "1 of 15" not in rest
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
