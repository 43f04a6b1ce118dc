"""The command line without a terminal: pipes, files, errors."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pairseek as ps
from pairseek.cli import main
from pairseek.cli.items import read_items

# Printed when a machine uses the kernels for the first time.
NOTICE = re.compile("compiling numerical kernels;.*\n")


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder with keys from a pipe, and return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, keys=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(keys.encode())))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, NOTICE.sub("", captured.err)

    return run


class TestSimulation:
    def test_depends_only_on_the_seed(self, command):
        first, again, other = (command("demo", "--simulate", "--answers", 5, "--seed", seed) for seed in (3, 3, 4))
        assert first == again
        assert first[0] == 0
        assert "5 answers" in first[1]
        assert first[1] != other[1]

    def test_ends_closer_to_its_colour_than_a_random_colour(self, command):
        # A noisy person may mislead a single search; the median of eight is well within the nearest quarter.
        items = ps.datasets.colours()
        shares = []
        for seed in range(8):
            _, out, _ = command("demo", "--simulate", "--seed", seed)
            words = " ".join(out.split("After 15 answers:")[1].split())
            code = re.findall("#[0-9a-f]{6}", words)[1]
            place = items.coordinates[list(items.data["hex"]).index(code)]
            distances = np.linalg.norm(items.coordinates - place, axis=1)
            shares.append(np.mean(distances < float(re.search(r"favourite is ([\d.]+) away", words)[1])))
        assert np.median(shares) < 0.25

    def test_resumes_with_the_same_favourite(self, command):
        whole = command("demo", "--simulate", "--seed", 5, "--answers", 6)
        command("demo", "--simulate", "--seed", 5, "--answers", 3, "--save", "me.json")
        code, out, _ = command("demo", "--simulate", "--resume", "me.json", "--answers", 6)
        assert code == 0
        assert out.split("Saved")[0].split("After 6")[1].strip() == whole[1].split("After 6")[1].strip()


class TestTheResult:
    def test_shows_the_estimate_with_the_nearest_name_and_the_recommended_colours(self, command):
        code, out, err = command("demo", "--seed", 1, "--answers", 2, "--save", "me.json", keys="1\n2\n")
        assert (code, err) == (0, "")
        search = ps.Search.load("me.json")
        items, point = search.items, search.estimate().point
        nearest = min(range(items.n), key=lambda row: sum((items.coordinates[row] - point) ** 2))
        words = " ".join(out.split())
        assert f"Your colour, near {items.labels[nearest]} {ps.datasets.hex_from_oklab(point)}" in words
        assert f"the favourite is within {search.estimate().credible_radius(0.95):.3f} of the estimate" in words
        shown = [line for line in out.splitlines() if line.endswith(" %")]
        assert len(shown) == 5
        for line, colour in zip(shown, search.recommend(5), strict=True):
            name, code, probability = re.split(r"  +", line.strip())
            assert (name, code) == (colour.label, items.data["hex"][items.index(colour.id)])
            assert float(probability.split()[0]) == pytest.approx(100 * colour.probability, abs=0.051)

    @pytest.mark.parametrize("columns", [30, 40, 80, 200])
    def test_fits_in_any_width(self, command, monkeypatch, columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, _ = command("demo", "--simulate", "--seed", 1, "--answers", 3)
        assert code == 0
        assert max(map(len, out.splitlines())) <= columns

    @pytest.mark.parametrize(
        ("environment", "coloured"),
        [({}, True), ({"NO_COLOR": "1"}, False), ({"COLORTERM": ""}, False), ({"FORCE_COLOR": ""}, False)],
    )
    def test_and_questions_show_true_colours_or_none(self, command, monkeypatch, environment, coloured):
        terminal = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "NO_COLOR": ""}
        for name, value in (terminal | environment).items():
            monkeypatch.setenv(name, value)
        _, out, _ = command("demo", "--simulate", "--seed", 1, "--answers", 2)
        codes = re.findall("#([0-9a-f]{6})", out)
        assert len(codes) >= 2 * 2 + 2 + 5
        for code in codes:
            style = ";".join(str(int(code[i : i + 2], 16)) for i in (0, 2, 4))
            assert (f"48;2;{style}" in out) == coloured
        assert "48;5;" not in out


class TestKeysFromAPipe:
    def test_act_in_order(self, command):
        code, out, err = command("demo", "--seed", 1, "--save", "me.json", keys="1\n 2\nU\n=\r\n2\nq\n1\n1\n")
        assert (code, err) == (0, "")
        events = ps.Search.load("me.json").history
        assert [event.outcome for event in events] == ["answer", "tie", "answer"]
        assert events[0].winner == events[0].left
        assert events[2].winner == events[2].right
        assert "After 3 answers:" in out
        assert "Saved 3 answers in me.json. Resume:" in out
        assert "demo --resume me.json" in out
        assert [int(number) for number in re.findall("(?m)^([0-9]+) of 15:", out)] == [1, 2, 3, 2, 3, 4]

    def test_get_a_hint_and_are_ignored_if_they_mean_nothing(self, command):
        code, out, err = command("demo", "--seed", 1, keys="x\n\n12\n[/]\n\xfc\nu\nq\n")
        assert (code, err) == (0, "")
        assert out.count("Type one of these keys, then Enter.") == 5
        assert "There is nothing to undo yet." in out
        assert "There are no answers, so nothing was saved." in out
        assert not list(Path().iterdir())

    def test_stop_the_search_when_they_end_and_save_it_under_a_free_name(self, command):
        for name in ("pairseek-demo.json", "pairseek-demo-2.json"):
            code, out, _ = command("demo", "--seed", 1, keys="1\n2")
            assert code == 0
            assert f"Saved 2 answers in {name}." in out
            assert ps.Search.load(name).answers == 2
        assert len(list(Path().iterdir())) == 2

    def test_a_finished_search_leaves_no_file(self, command):
        code, out, _ = command("demo", "--seed", 1, "--answers", 2, keys="1\n2\n")
        assert code == 0
        assert "After 2 answers:" in out
        assert not list(Path().iterdir())

    def test_a_missing_standard_input_ends_the_search(self, command, monkeypatch, capsys):
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(SystemExit) as ended:
            main(["demo"])
        assert not ended.value.code
        assert "There are no answers" in capsys.readouterr().out


class TestSaving:
    def test_a_resumed_search_asks_the_same_pair_with_the_same_answers(self, command):
        _, first, _ = command("demo", "--seed", 2, "--save", "me.json", keys="1\n=\n")
        code, again, _ = command("demo", "--resume", "me.json", keys="")
        assert code == 0
        last, next_ = (out[out.index("3 of 15:") : out.index("After 2 answers")] for out in (first, again))
        assert next_ == last

    def test_every_answer_is_in_the_file_before_the_next_pair_is_shown(self, command, monkeypatch):
        seen = []
        ask = ps.Search.ask

        def watched(search):
            seen.append([event.outcome for event in ps.Search.load("me.json").history])
            return ask(search)

        monkeypatch.setattr(ps.Search, "ask", watched)
        command("demo", "--save", "me.json", keys="1\n=\nu\n")
        assert seen == [[], ["answer"], ["answer", "tie"], ["answer"]]

    def test_a_finished_search_shows_its_result_and_resumes_with_more_answers(self, command):
        command("demo", "--seed", 2, "--answers", 2, "--save", "me.json", keys="1\n2\n")
        before = Path("me.json").read_bytes()
        code, out, _ = command("demo", "--resume", "me.json")
        assert code == 0
        assert "Your colour" in out
        assert "--resume me.json --answers 17" in out
        assert Path("me.json").read_bytes() == before
        command("demo", "--resume", "me.json", "--answers", 3, keys="1\n")
        assert ps.Search.load("me.json").answers == 3
        assert ps.Search.load("me.json").finished == "3 answers were given"

    def test_resuming_into_another_file_leaves_the_first_alone(self, command):
        command("demo", "--seed", 2, "--save", "one.json", keys="1\n")
        before = Path("one.json").read_bytes()
        command("demo", "--resume", "one.json", "--save", "two.json", keys="2\n")
        assert Path("one.json").read_bytes() == before
        assert ps.Search.load("two.json").answers == 2

    def test_the_command_to_resume_works_in_the_shell(self, command, monkeypatch, tmp_path):
        monkeypatch.setattr(sys, "argv", ["env/bin/pairseek", "demo"])
        monkeypatch.setenv("PATH", str(tmp_path))
        _, out, _ = command("demo", "--save", "my search.json", keys="1\n")
        assert "  env/bin/pairseek demo --resume 'my search.json'\n" in out
        (tmp_path / "pairseek").touch(0o755)
        _, out, _ = command("demo", "--simulate", "--answers", 1, "--save", "me.json")
        assert "  pairseek demo --resume me.json --simulate --answers 16\n" in out


def disk_that_fills_up_after(saves):
    """Return an `os.fsync` that fails after this number of saves."""
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
            (["demo", "--answers", "-3"], "Invalid value for '--answers'"),
            (["demo", "--answers", "0"], "Invalid value for '--answers'"),
            (["demo", "--answers", "many"], "Invalid value for '--answers'"),
            (["demo", "--seed", "-1"], "Invalid value for '--seed'"),
            (["demo", "--seed", "1", "--resume", "x.json"], "the search in x.json already has a seed"),
            (["demo", "--resume", "x.json"], "there is no file x.json"),
            (
                ["demo", "--save", "no/where.json"],
                "cannot save to no/where.json: the folder 'no' does not exist; create it first",
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
        command("demo", "--seed", 2, "--save", "me.json", keys="1\n2\n")
        whole = Path("me.json").read_text()
        for damaged, words in [
            (whole[: len(whole) // 2], "is cut off or damaged"),
            (whole.replace('"seed": 2', '"seed": 3'), "was edited or damaged"),
            ("not a search", "is not a saved search"),
        ]:
            Path("me.json").write_text(damaged)
            code, out, err = command("demo", "--resume", "me.json", keys="1")
            assert (code, out) == (2, "")
            assert words in err
            assert err.count("\n") == 1
            assert Path("me.json").read_text() == damaged

    def test_a_search_over_other_items_is_not_resumed(self, command):
        ps.Search(ps.Items([[0.0], [1.0], [2.0]]), rng=0).save("other.json")
        code, _, err = command("demo", "--resume", "other.json")
        assert code == 2
        assert "is not a search over the named colours" in err

    def test_an_existing_file_is_not_overwritten(self, command):
        Path("me.json").write_text("dear diary")
        code, _, err = command("demo", "--save", "me.json", keys="1")
        assert code == 2
        assert "the file already exists; resume it with --resume, or give another name" in err
        assert Path("me.json").read_text() == "dear diary"

    @pytest.mark.parametrize("saves", [0, 2])
    def test_a_full_disk_leaves_the_last_complete_file(self, command, monkeypatch, saves):
        command("demo", "--seed", 2, "--save", "me.json", keys="1\n")
        monkeypatch.setattr("pairseek.core.files.os.fsync", disk_that_fills_up_after(saves))
        code, _, err = command("demo", "--resume", "me.json", keys="1\n2\n2\n")
        assert code == 2
        assert err == "pairseek: [Errno 28] No space left on device: 'me.json'\n"
        # The first save precedes the first pair; the second follows its answer.
        assert ps.Search.load("me.json").answers == (1 if saves == 0 else 2)
        assert [path.name for path in Path().iterdir()] == ["me.json"]

    def test_name_the_extra_that_is_missing(self):
        for missing in ("typer", "rich"):
            code = f"import sys; sys.modules[{missing!r}] = None; from pairseek.cli import main; main(['demo'])"
            result = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
            )
            assert result.returncode == 2
            assert result.stderr == "pairseek: the command line needs the extra 'cli': pip install 'pairseek[cli]'\n"


class TestTheProgram:
    def test_says_its_version(self, command):
        assert command("--version") == (0, f"pairseek {ps.__version__}\n", "")

    def test_help_of_the_demo_names_every_option_and_key(self, command):
        code, out, _ = command("demo", "--help")
        assert code == 0
        for word in ("--answers", "--seed", "--simulate", "--save", "--resume", "stop and save", "undo", "about equal"):
            assert word in out

    def test_prints_to_ascii_streams_and_survives_a_closed_pipe(self, tmp_path):
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
        result = subprocess.run(program, env=ascii_only, capture_output=True, timeout=60, check=False, cwd=tmp_path)
        assert (result.returncode, NOTICE.sub("", result.stderr.decode())) == (0, "")
        assert b"After 1 answer" in result.stdout
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as closing:
            closing.stdout.close()
            assert NOTICE.sub("", closing.stderr.read().decode()) == ""

    def test_a_saved_search_is_json_that_names_its_format(self, command):
        command("demo", "--seed", 2, "--save", "me.json", keys="1\n")
        record = json.loads(Path("me.json").read_text())
        assert record["format"] == "pairseek search"
        assert record["seed"] == 2
        assert len(record["events"]) == 1


def test_python_m_pairseek_runs_the_command_line():
    result = subprocess.run([sys.executable, "-m", "pairseek", "--help"], capture_output=True, text=True, check=True)
    assert "demo" in result.stdout


class TestItems:
    """All commands read the same items files as the service."""

    @pytest.fixture
    def wines(self, tmp_path):
        """Write a study's items file with display columns, and ratings and triplets of its items."""
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

    def test_uneven_scales_print_one_note(self, command, wines, tmp_path):
        lines = wines.read_text().splitlines()
        rows = [f"{line.split(',')[0]},{row % 7},{1000 * row}" for row, line in enumerate(lines[1:])]
        (tmp_path / "uneven.csv").write_text("\n".join(["id,sweet,price", *rows]) + "\n")
        code, _, err = command("fit-noise", "uneven.csv", "triplets.csv", "--folds", "0")
        columns, note = err.splitlines()
        assert (code, note.startswith("Note: "), "'price'" in note) == (0, True, True)
        assert columns == "Columns of uneven.csv: coordinates: sweet, price; choose with --coordinates."
