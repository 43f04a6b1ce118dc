"""The command line without a terminal: keys, layout, pipes, files, errors."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import pairseek as ps
from pairseek.cli import main
from pairseek.cli.items import read_items
from pairseek.cli.terminal import keys as _keys
from pairseek.cli.terminal.conversation import SimulatedTypist, converse
from pairseek.cli.terminal.frames import Frame, ScreenState
from pairseek.cli.terminal.keys import Key, PipeKeys, TerminalKeys, decode
from pairseek.cli.terminal.result import Result
from pairseek.cli.terminal.saving import resume_command
from pairseek.cli.terminal.swatches import Colour, bar, ink, luminance, swatch

NAMED = {"1": Key.LEFT, "2": Key.RIGHT, "=": Key.TIE, "s": Key.SKIP, "u": Key.UNDO, "q": Key.QUIT, "?": Key.HELP}
QUERY = ps.Query("q0", "a", "b")
NOTICE = re.compile("compiling numerical kernels;.*\n")  # on a machine's first use
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder, its keys from a pipe: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, keys=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(keys.encode())))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, NOTICE.sub("", captured.err)

    return run


class Unseen:
    """A view that shows nothing and remembers."""

    def __init__(self):
        self.moments = []

    def show(self, screen):
        self.moments.append(screen)

    def idle(self):
        raise AssertionError("nobody is idle here")


class TestKeys:
    @pytest.mark.parametrize(("character", "key"), NAMED.items())
    def test_characters_mean_what_the_help_says(self, character, key):
        assert decode(character.encode()) == ([key], b"")
        assert decode(character.upper().encode()) == ([key], b"")

    @pytest.mark.parametrize("right", [b"\x1b[C", b"\x1bOC", b"\x1b[1;5C"])
    def test_arrows_come_in_three_forms(self, right):
        assert decode(right) == ([Key.RIGHT], b"")
        assert decode(right.replace(b"C", b"D")) == ([Key.LEFT], b"")

    @pytest.mark.parametrize(
        "other", [b"\x1b[1~", b"\x1b[2~", b"\x1b[21~", b"\x1b1", b"\x1b[A", "ü".encode(), b"x", b"\r"]
    )
    def test_keys_that_hold_a_digit_or_two_bytes_are_one_press_that_means_nothing(self, other):
        assert decode(other) == ([Key.OTHER], b"")

    @given(
        st.lists(st.sampled_from([b"1", b"2", b"u", b"=", b"\x1b[C", b"\x1bOD", b"\x1b[3~", "é".encode()]), max_size=8),
        st.data(),
    )
    def test_however_the_bytes_are_split_the_keys_are_the_same(self, pieces, data):
        whole = b"".join(pieces)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
        keys, rest = [], b""
        for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            some, rest = decode(rest + whole[start:stop])
            keys += some
        assert (keys, rest) == decode(whole)
        assert len(keys) == len(pieces)

    def test_an_unfinished_sequence_at_the_end_means_nothing(self):
        assert decode(b"1\x1b[") == ([Key.LEFT], b"\x1b[")
        assert decode(b"\x1b", final=True) == ([Key.OTHER], b"")

    def test_a_pipe_gives_its_keys_without_white_space_and_then_ends(self):
        keys = PipeKeys(io.BytesIO(b"1 2\n=\r\n\x1b[C"))
        assert [keys.next(QUERY) for _ in range(6)] == [Key.LEFT, Key.RIGHT, Key.TIE, Key.RIGHT, Key.END, Key.END]
        assert PipeKeys(None).next(QUERY) is Key.END


class TestPressesOnATerminal:
    @pytest.fixture
    def pressed(self, monkeypatch):
        """A pair of a writing end and the keys read at the other, on a clock that is set by hand."""
        clock = types.SimpleNamespace(now=100.0, step=0.0)

        def monotonic():
            clock.now += clock.step
            return clock.now

        monkeypatch.setattr(_keys, "time", types.SimpleNamespace(monotonic=monotonic))
        reading, writing = os.pipe()
        yield clock, lambda data: os.write(writing, data), TerminalKeys(reading, lambda: None)
        os.close(reading)
        os.close(writing)

    def test_an_arrow_that_comes_in_pieces_is_an_arrow(self, pressed, monkeypatch):
        clock, press, keys = pressed
        pieces = [b"\x1b", b"[", b"C"]
        monkeypatch.setattr(_keys, "os", types.SimpleNamespace(read=lambda *_: pieces.pop(0)))
        press(b"!")  # something to read
        clock.step = 1.0
        assert keys.next(QUERY) is Key.RIGHT

    def test_escape_alone_means_nothing(self, pressed):
        clock, press, keys = pressed
        press(b"\x1b")
        clock.step = 1.0
        assert keys.next(QUERY) is Key.OTHER

    def test_an_answer_right_after_the_pair_appeared_is_hasty(self, pressed):
        clock, press, keys = pressed
        press(b"1")
        assert keys.next(QUERY) is Key.HASTY
        clock.now += 0.2
        press(b"1")
        assert keys.next(QUERY) is Key.LEFT
        press(b"1")
        assert keys.next(ps.Query("q1", "a", "b")) is Key.HASTY

    def test_a_key_held_down_is_hasty_for_as_long_as_it_repeats(self, pressed):
        clock, press, keys = pressed
        press(b"2" * 20)
        got = []
        for _ in range(20):
            got.append(keys.next(QUERY))
            clock.now += 0.03
        assert set(got) == {Key.HASTY}

    def test_quitting_is_never_too_soon(self, pressed):
        _, press, keys = pressed
        press(b"?q")
        assert [keys.next(QUERY), keys.next(QUERY)] == [Key.HELP, Key.QUIT]

    def test_a_terminal_that_goes_away_is_the_end(self, pressed):
        reading, writing = os.pipe()
        os.close(writing)
        assert TerminalKeys(reading, lambda: None).next(QUERY) is Key.END
        os.close(reading)


def relative_contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class TestSwatches:
    def test_luminance_is_that_of_the_standard(self):
        # WCAG 2's own extremes, and the weights of the three primaries.
        assert [luminance(code) for code in ("#000000", "#ffffff", "#ff0000", "#00ff00", "#0000ff")] == pytest.approx(
            [0.0, 1.0, 0.2126, 0.7152, 0.0722]
        )

    def test_every_name_is_readable_on_its_colour(self):
        for code in ps.datasets.colours().data["hex"]:
            assert relative_contrast(code, ink(code)) >= 4.5
            other = {"#000000": "#ffffff", "#ffffff": "#000000"}[ink(code)]
            assert relative_contrast(code, ink(code)) >= relative_contrast(code, other)

    @pytest.mark.parametrize("height", [2, 3, 4, 7, 13])
    @pytest.mark.parametrize("width", [10, 18, 37])
    def test_a_swatch_has_the_size_asked_for(self, width, height):
        for title in ("", "Found"):
            lines = swatch(Colour("Blue with a hint of purple", "#533cc6"), width, height, title=title)
            assert [line.cell_len for line in lines] == [width] * height

    def test_a_bar_is_as_long_as_its_share(self):
        assert [bar(share, 4) for share in (0, 0.5, 0.6, 1, 7)] == ["    ", "━━  ", "━━╸ ", "━━━━", "━━━━"]


def screen(**changes):
    left, right = Colour("Blue with a hint of purple", "#533cc6"), Colour("Light yellowish green", "#c2ff89")
    return ScreenState(
        **{"query": QUERY, "left": left, "right": right, "answers": 4, "radius": 0.3414, "remaining": 11, **changes}
    )


def drawn(renderable, columns, rows, colours="truecolor"):
    """What a terminal of this size gets: the lines without their styles, and all of it."""
    file = io.StringIO()
    console = Console(
        file=file, width=columns, height=rows, force_terminal=True, color_system=colours, legacy_windows=False,
        _environ={"TERM": "xterm"},
    )  # fmt: skip
    console.print(renderable)
    return ANSI.sub("", file.getvalue()).splitlines(), file.getvalue()


class TestTheScreen:
    @pytest.mark.parametrize("colours", ["truecolor", None])
    @pytest.mark.parametrize(("columns", "rows"), [(40, 14), (40, 20), (57, 16), (80, 24), (200, 60)])
    def test_fits_and_says_everything(self, columns, rows, colours):
        lines, _ = drawn(Frame(screen()), columns, rows, colours)
        text = " ".join(" ".join(lines).replace("│", " ").split())
        assert len(lines) <= rows
        assert max(map(len, lines)) <= columns
        for words in ("Which colour do you prefer?", "#533cc6", "#c2ff89", "← 1", "→ 2", "q quit and save", "? help"):
            assert words in text
        for words in ("4 answers", "95 % radius 0.341", "11 more expected", "Blue with", "Light"):
            assert words in text

    def test_shows_the_two_colours_as_they_are_and_nothing_of_them_without_true_colour(self):
        _, raw = drawn(Frame(screen()), 80, 24)
        assert raw.count("48;2;83;60;198") >= 8
        assert raw.count("48;2;194;255;137") >= 8
        for colours in ("256", None):
            lines, raw = drawn(Frame(screen()), 80, 24, colours)
            assert "48;" not in raw
            assert "No true colour: names only" in "".join(lines)

    @pytest.mark.parametrize(("columns", "rows"), [(40, 20), (80, 24)])
    def test_help_fits(self, columns, rows):
        for colours in ("truecolor", None):
            lines, _ = drawn(Frame(screen(help=True)), columns, rows, colours)
            assert len(lines) <= rows
            assert max(map(len, lines)) <= columns
            assert "Press any key to go back." in "".join(lines)

    def test_marks_what_was_chosen(self):
        assert "".join(drawn(Frame(screen(chosen=Key.RIGHT)), 80, 24)[0]).count("●") == 1
        assert "".join(drawn(Frame(screen(chosen=Key.TIE)), 80, 24)[0]).count("●") == 2
        assert "".join(drawn(Frame(screen()), 80, 24)[0]).count("●") == 0

    def test_the_line_of_progress_is_as_long_as_the_share_done(self):
        (line,) = [line for line in drawn(Frame(screen(answers=5, remaining=15)), 84, 24)[0] if "━" in line]
        assert line.strip() == "━" * 20 + "─" * 60
        assert not any("━" in line for line in drawn(Frame(screen(remaining=None)), 84, 24)[0])


@pytest.fixture(scope="module")
def answered():
    """A search after a few answers of the simulated user."""
    search = ps.Search(ps.datasets.colours(), stop=8, rng=11)
    assert converse(search, SimulatedTypist(search), Unseen(), lambda _: None)
    return search


class TestTheResult:
    @pytest.mark.parametrize("colours", ["truecolor", None])
    @pytest.mark.parametrize("columns", [40, 60, 80, 200])
    def test_names_the_five_nearest_with_their_probabilities_in_any_width(self, answered, columns, colours):
        items, point = answered.items, answered.estimate().point
        order = np.argsort([sum((place - point) ** 2) for place in items.coordinates])
        chances = {one.label: one.probability for one in answered.recommend(items.n)}
        names = [items.labels[row] for row in order[:5]]
        assert names != [one.label for one in answered.recommend(5)]
        lines, _ = drawn(Result(answered), columns, 24, colours)
        assert max(map(len, lines)) <= columns
        shown = [line for line in lines if line.endswith(" %")]
        assert len(shown) == 5
        for line, name in zip(shown, names, strict=True):
            label = re.split(r"  |[━╸…#]", line.strip())[0].strip()
            assert label == (name[: len(label)] if "…" in line else name)
            assert float(line.split()[-2]) == pytest.approx(100 * chances[name], abs=0.051)

    def test_shows_the_estimate_with_the_name_nearest_to_it(self, answered):
        lines, raw = drawn(Result(answered), 80, 24)
        point = answered.estimate().point
        code = ps.datasets.hex_from_oklab(point)
        items = ps.datasets.colours()
        nearest = min(range(items.n), key=lambda row: sum((items.coordinates[row] - point) ** 2))
        assert f"near {items.labels[nearest]}" in "".join(lines)
        assert code in "".join(lines)
        assert ";".join(str(int(code[i : i + 2], 16)) for i in (1, 3, 5)) in raw

    def test_says_how_close_a_simulated_search_came(self, answered):
        target = SimulatedTypist(answered).target
        text = " ".join(" ".join(drawn(Result(answered, target), 80, 24)[0]).split())
        items = ps.datasets.colours()
        place = items.coordinates[target]
        distance = float(np.sqrt(sum((answered.estimate().point - place) ** 2)))
        farther = sum(np.sqrt(sum((other - place) ** 2)) > distance for other in items.coordinates) / items.n
        assert f"favourite is {items.labels[target]} {items.data['hex'][target]}" in text
        assert f"within {distance:.3f} of it, closer than {100 * farther:.0f} % of the names" in text


class TestSimulation:
    def test_is_the_same_for_the_same_seed_and_another_for_another(self, command):
        first, again, other = (command("demo", "--simulate", "--answers", 5, "--seed", seed) for seed in (3, 3, 4))
        assert first == again
        assert first[0] == 0
        assert "5 answers" in first[1]
        assert first[1] != other[1]

    def test_ends_nearer_to_its_colour_than_a_random_colour_is(self):
        # A single search may be misled by a noisy person; the median of eight is well inside the nearest quarter.
        items = ps.datasets.colours()
        shares = []
        for seed in range(8):
            search = ps.Search(items, stop=15, rng=seed)
            person = SimulatedTypist(search)
            assert converse(search, person, Unseen(), lambda _: None)
            place = items.coordinates[person.target]
            distances = np.linalg.norm(items.coordinates - place, axis=1)
            shares.append(np.mean(distances < np.linalg.norm(search.estimate().point - place)))
        assert np.median(shares) < 0.25

    def test_goes_on_with_the_same_colour_in_mind(self, command):
        whole = command("demo", "--simulate", "--seed", 5, "--answers", 6)
        command("demo", "--simulate", "--seed", 5, "--answers", 3, "--save", "me.json")
        code, out, _ = command("demo", "--simulate", "--resume", "me.json", "--answers", 6)
        assert code == 0
        assert out.split("Saved")[0].split("Found")[1].strip() == whole[1].split("Found")[1].strip()


class TestKeysFromAPipe:
    def test_do_what_they_mean_in_order(self, command):
        code, out, err = command("demo", "--seed", 1, "--save", "me.json", keys="1 2u\n=s 2q11")
        assert (code, err) == (0, "")
        events = ps.Search.load("me.json").history
        assert [event.outcome for event in events] == ["answer", "tie", "skip", "answer"]
        assert events[0].winner == events[0].left
        assert events[3].winner == events[3].right
        assert "Saved 3 answers in me.json. Resume:" in out
        assert "demo --resume me.json" in out
        assert "undo the previous answer" in out
        assert "1 answer  ·  95 % radius" in out

    def test_that_mean_nothing_get_a_hint_and_are_ignored(self, command):
        _, out, _ = command("demo", "--seed", 1, keys="xu?q")
        assert "That key does nothing: ? shows help." in out
        assert "There is nothing to undo yet." in out
        assert out.count("s skip") == 2
        assert "There are no answers, so nothing was saved." in out
        assert not list(Path().iterdir())

    def test_that_end_are_like_quitting_and_kept_under_a_free_name(self, command):
        for name in ("pairseek-demo.json", "pairseek-demo-2.json"):
            code, out, _ = command("demo", "--seed", 1, keys="12")
            assert code == 0
            assert f"Saved 2 answers in {name}." in out
            assert ps.Search.load(name).answers == 2
        assert len(list(Path().iterdir())) == 2

    def test_finish_with_the_result(self, command):
        code, out, _ = command("demo", "--seed", 1, "--answers", 2, keys="12")
        assert code == 0
        assert "Your colour" in out
        assert "The nearest names, with their probability to be the best of 949" in out
        assert not list(Path().iterdir())


class TestKeeping:
    def test_a_resumed_search_asks_the_same_pair_with_the_same_answers(self, command):
        _, first, _ = command("demo", "--seed", 2, "--save", "me.json", keys="1=")
        code, again, _ = command("demo", "--resume", "me.json", keys="")
        assert code == 0
        last, next_ = first.split("\n\n")[-3], again.split("\n\n")[1]
        assert "2 answers" in next_
        assert next_ == last

    def test_every_answer_is_in_the_file_before_the_next_pair_is_shown(self, command):
        search = ps.Search(ps.datasets.colours(), stop=9, rng=0)
        seen = []

        class Looking(PipeKeys):
            def next(self, query):
                seen.append([e.outcome for e in ps.Search.load("me.json").history])
                return super().next(query)

        search.save("me.json")
        assert not converse(search, Looking(io.BytesIO(b"1s=u")), Unseen(), lambda one: one.save("me.json"))
        assert seen == [[], ["answer"], ["answer", "skip"], ["answer", "skip", "tie"], ["answer", "skip"]]

    def test_a_finished_one_shows_its_result_and_goes_on_with_more_answers(self, command):
        command("demo", "--seed", 2, "--answers", 2, "--save", "me.json", keys="12")
        before = Path("me.json").read_bytes()
        code, out, _ = command("demo", "--resume", "me.json")
        assert code == 0
        assert "Your colour" in out
        assert "--resume me.json --answers 17" in out
        assert Path("me.json").read_bytes() == before
        command("demo", "--resume", "me.json", "--answers", 3, keys="1")
        assert ps.Search.load("me.json").answers == 3
        assert ps.Search.load("me.json").finished == "3 answers were given"

    def test_resuming_into_another_file_leaves_the_first_alone(self, command):
        command("demo", "--seed", 2, "--save", "one.json", keys="1")
        before = Path("one.json").read_bytes()
        command("demo", "--resume", "one.json", "--save", "two.json", keys="2")
        assert Path("one.json").read_bytes() == before
        assert ps.Search.load("two.json").answers == 2


def disk_that_fills_up_after(saves):
    """An `os.fsync` that fails from then on."""
    left = [saves]

    def fsync(_):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fsync


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["demo", "--answers", "-3"], "--answers is -3: give a whole number, at least 1"),
            (["demo", "--answers", "0"], "--answers is 0: give a whole number"),
            (["demo", "--answers", "many"], "Invalid value for '--answers'"),
            (["demo", "--seed", "-1"], "--seed is -1: give a whole number, at least 0"),
            (["demo", "--seed", "1", "--resume", "x.json"], "the search in x.json has its own seed"),
            (["demo", "--resume", "x.json"], "there is no file x.json"),
            (
                ["demo", "--save", "no/where.json"],
                "cannot save to no/where.json: there is no folder 'no'; make it first",
            ),
            (["demo", "--fast"], "No such option"),
            (["dance"], "No such command 'dance'"),
        ],
    )
    def test_are_one_line_and_exit_code_2(self, command, arguments, words):
        code, out, err = command(*arguments, keys="1")
        assert code == 2
        assert out == ""
        assert err.startswith("pairseek: ")
        assert words in err
        assert err.count("\n") == 1
        assert not list(Path().iterdir())

    def test_a_damaged_file_is_named_and_left_as_it_is(self, command):
        command("demo", "--seed", 2, "--save", "me.json", keys="12")
        whole = Path("me.json").read_text()
        for damaged, words in [
            (whole[: len(whole) // 2], "is cut off or damaged"),
            (whole.replace('"seed": 2', '"seed": 3'), "its checksum does not fit"),
            ("not a search", "is not a saved search"),
        ]:
            Path("me.json").write_text(damaged)
            code, out, err = command("demo", "--resume", "me.json", keys="1")
            assert (code, out) == (2, "")
            assert words in err
            assert err.count("\n") == 1
            assert Path("me.json").read_text() == damaged

    def test_a_search_among_other_things_is_not_resumed(self, command):
        ps.Search(ps.Items([[0.0], [1.0], [2.0]]), rng=0).save("other.json")
        code, _, err = command("demo", "--resume", "other.json")
        assert code == 2
        assert "is not a search over the named colours" in err

    def test_an_existing_file_is_not_overwritten(self, command):
        Path("me.json").write_text("dear diary")
        code, _, err = command("demo", "--save", "me.json", keys="1")
        assert code == 2
        assert "the file exists already; resume it with --resume me.json, or give another name" in err
        assert Path("me.json").read_text() == "dear diary"

    @pytest.mark.parametrize("saves", [0, 2])
    def test_a_disk_that_fills_up_leaves_the_last_whole_file(self, command, monkeypatch, saves):
        command("demo", "--seed", 2, "--save", "me.json", keys="1")
        monkeypatch.setattr("pairseek.core.files.os.fsync", disk_that_fills_up_after(saves))
        code, _, err = command("demo", "--resume", "me.json", keys="122")
        assert code == 2
        assert err == ("pairseek: cannot save to me.json: No space left on device; the file is unchanged\n")
        # The first save is made before the first pair, the second after its answer.
        assert ps.Search.load("me.json").answers == (1 if saves == 0 else 2)
        assert [path.name for path in Path().iterdir()] == ["me.json"]

    def test_without_the_extra_say_what_to_install(self):
        for missing in ("typer", "rich"):
            code = f"import sys; sys.modules[{missing!r}] = None; from pairseek.cli import main; main(['demo'])"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 2
            assert done.stderr == "pairseek: the command line needs the extra 'cli': pip install 'pairseek[cli]'\n"


class TestHowToGoOn:
    def test_is_a_command_that_the_shell_finds(self, monkeypatch, tmp_path):
        monkeypatch.setattr(sys, "argv", ["env/bin/pairseek", "demo"])
        monkeypatch.setenv("PATH", str(tmp_path))
        assert resume_command(Path("my search.json")) == "env/bin/pairseek demo --resume 'my search.json'"
        installed = tmp_path / "pairseek"
        installed.touch(0o755)
        assert resume_command(Path("me.json"), ["--simulate"]) == "pairseek demo --resume me.json --simulate"


class TestTheProgram:
    def test_says_its_version(self, command):
        assert command("--version") == (0, f"pairseek {ps.__version__}\n", "")

    def test_help_of_the_demo_names_every_option_and_key(self, command):
        code, out, _ = command("demo", "--help")
        assert code == 0
        for word in (
            "--answers",
            "--seed",
            "--simulate",
            "--save",
            "--resume",
            "quit and save",
            "undo",
            "a tie",
            "skip",
        ):
            assert word in out

    def test_prints_to_a_stream_that_knows_only_ascii_and_to_one_that_closes(self, tmp_path):
        program = [
            sys.executable,
            "-c",
            "from pairseek.cli import main; main()",
            "demo",
            "--simulate",
            "--answers",
            "1",
        ]
        ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        done = subprocess.run(program, env=ascii_only, capture_output=True, timeout=60, check=False, cwd=tmp_path)
        assert (done.returncode, NOTICE.sub("", done.stderr.decode())) == (0, "")
        assert b"  > " in done.stdout
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as closing:
            closing.stdout.close()
            assert NOTICE.sub("", closing.stderr.read().decode()) == ""

    def test_a_saved_search_is_json_that_says_what_it_is(self, command):
        command("demo", "--seed", 2, "--save", "me.json", keys="1")
        record = json.loads(Path("me.json").read_text())
        assert record["format"] == "pairseek search"
        assert record["seed"] == 2
        assert len(record["events"]) == 1
        assert len(record["pending"]) == 1


def test_python_m_is_the_command():
    told = subprocess.run([sys.executable, "-m", "pairseek", "--help"], capture_output=True, text=True, check=True)
    assert "demo" in told.stdout


class TestItems:
    """All commands read the same items file as the service."""

    @pytest.fixture
    def wines(self, tmp_path):
        """A study's items file with display columns, and with ratings of the items."""
        rng = np.random.default_rng(0)
        names = [f"w{row}" for row in range(20)]
        lines = [
            f"{name},{name}.png,Wine {name},**{name}**,#aabbcc,a.mp3,v.mp4,a bottle,{x:.3f},{y:.3f}"
            for name, (x, y) in zip(names, rng.normal(size=(20, 2)), strict=True)
        ]
        header = "id,image,text,markdown,color,audio,video,alt,sweet,dry"
        (tmp_path / "wines.csv").write_text("\n".join([header, *lines]) + "\n")
        ratings = [f"p{person},{name},{rng.integers(1, 6)}" for person in range(8) for name in names]
        (tmp_path / "ratings.csv").write_text("\n".join(["person,item,rating", *ratings]) + "\n")
        triplets = [",".join(rng.choice(names, 3, replace=False)) for _ in range(60)]
        (tmp_path / "triplets.csv").write_text("\n".join(["anchor,near,far", *triplets]) + "\n")
        return tmp_path / "wines.csv"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["check", "wines.csv", "--k", "2", "--people", "1"],
            ["plan", "--items", "wines.csv", "--users", "2", "--questions", "2", "--strategies", "random",
             "--jobs", "1"],
            ["embed", "wines.csv", "--method", "pca", "-d", "2", "--out", "out.csv"],
            ["fit-noise", "wines.csv", "triplets.csv", "--folds", "0"],
            ["population", "fit", "ratings.csv", "--items", "wines.csv"],
            ["evaluate", "ratings.csv", "--items", "wines.csv", "--strategies", "random", "--answers", "0,2",
             "--people", "2", "--splits", "1", "--jobs", "1"],
        ],
        ids=lambda arguments: arguments[0],
    )  # fmt: skip
    def test_display_columns_are_data_and_not_coordinates(self, command, wines, arguments):
        assert read_items(wines).d == 2
        assert set(read_items(wines).data) == {"image", "text", "markdown", "color", "audio", "video", "alt"}
        code, out, err = command(*arguments)
        assert (code, "pairseek:" in err) == (0, False), err
        assert out

    def test_uneven_scales_are_one_note(self, command, wines, tmp_path):
        lines = wines.read_text().splitlines()
        rows = [f"{line.split(',')[0]},{row % 7},{1000 * row}" for row, line in enumerate(lines[1:])]
        (tmp_path / "uneven.csv").write_text("\n".join(["id,sweet,price", *rows]) + "\n")
        code, _, err = command("fit-noise", "uneven.csv", "triplets.csv", "--folds", "0")
        said, note = err.splitlines()
        assert (code, note.startswith("Note: "), "'price'" in note) == (0, True, True)
        assert said == "Columns of uneven.csv: coordinates: sweet, price; choose with --coordinates."
