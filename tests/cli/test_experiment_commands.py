"""The commands reproduce, simulate and plan: output, files and errors."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from pairseek.cli.progress import PopulationFitProgress, RunProgress
from pairseek.experiments import SPECIFICATIONS, Progress, Results
from pairseek.people.population.fit import LearningStep

SPEC = """
data = "synthetic"
dimension = 2
subsample = 60
response = { k = "published" }
queries = 4
trials = 2
samples = 200
rate = 0.2
strategies = ["infogain", "random"]
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def wines(tmp_path):
    path = tmp_path / "wines.csv"
    rows = np.random.default_rng(0).uniform(0, 10, (30, 2))
    path.write_text("id,sweet,dry\n" + "".join(f"w{i},{a:.3f},{b:.3f}\n" for i, (a, b) in enumerate(rows)))
    return path


class TestSimulate:
    def test_a_file_gives_table_figure_and_report(self, command, spec, tmp_path):
        code, out, err = command("simulate", spec, "--jobs", 1)
        assert (code, err) == (0, "")
        folder = tmp_path / "pairseek-results" / "mine"
        assert "report.html" in out
        for name in ("table.csv", "durations.csv", "report.html", "specification.toml", "figures/mine-1.png"):
            assert (folder / name).exists(), name
        assert Results.read(folder).specification.trials == 2

    def test_flags_give_the_same_table_as_a_file(self, command, tmp_path):
        code, _, err = command(
            "simulate", "--data", "colours", "--k", 2, "--strategies", "random", "--queries", 3, "--trials", 2,
            "--samples", 100, "--metrics", "squared_error", "--truth", "noiseless", "--seed", 3, "--jobs", 1,
            "--out", tmp_path / "flags",
        )  # fmt: skip
        assert (code, err) == (0, "")
        (tmp_path / "same.toml").write_text(
            'data = "colours"\nresponse = { k = 2.0 }\nstrategies = ["random"]\nqueries = 3\ntrials = 2\n'
            'samples = 100\nmetrics = ["squared_error"]\ntruth = "noiseless"\nseed = 3\n'
        )
        assert command("simulate", "same.toml", "--jobs", 1, "--out", tmp_path / "file")[0] == 0
        tables = [(tmp_path / name / "table.csv").read_bytes() for name in ("flags", "file")]
        assert tables[0] == tables[1]

    def test_options_override_numbers_of_the_file_but_not_parts(self, command, spec, tmp_path):
        assert command("simulate", spec, "--trials", 1, "--table", "parquet", "--jobs", 1, "--lag-one")[0] == 0
        folder = tmp_path / "pairseek-results" / "mine"
        assert (folder / "table.parquet").exists()
        assert Results.read(folder).specification.trials == 1
        assert "Shown with a lag of 1" in (folder / "report.html").read_text()
        code, _, err = command("simulate", spec, "--data", "colours")
        assert code == 2
        assert "--data with" in err

    def test_it_shows_no_progress_without_a_terminal(self, command, spec):
        _, out, err = command("simulate", spec, "--jobs", 1)
        assert len(out.splitlines()) == 2
        assert "\x1b" not in out + err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["simulate"], "give a specification file, or at least --data and --strategies"),
            (["simulate", "none.toml"], "there is no file none.toml"),
            (["simulate", "mine.toml", "--jobs", "0"], "--jobs is 0: give a whole number, at least 1"),
            (["simulate", "mine.toml", "--jobs", "2", "--scheduler", "tcp://a:1"], "leave --jobs out"),
            (["simulate", "mine.toml", "--trials", "-3"], "trials is -3: give a whole number, at least 1"),
            (["simulate", "mine.toml", "--table", "xls"], "table is 'xls': use one of csv, parquet"),
            (["simulate", "--data", "food10k", "--dimension", "8", "--strategies", "random"], "use one of 2, 3, 4"),
            (["simulate", "--data", "colours", "--strategies", "randon"], "did you mean 'random'?"),
            (["simulate", "--data", "colours", "--strategies", "random", "--k", "x"], "response.k is 'x'"),
            (["reproduce", "figure3"], "figure is 'figure3': use one of figure1, figure2"),
            (["reproduce", "figure2", "--preset", "papers"], "did you mean 'paper'?"),
            (["reproduce", "figure2", "--strategies", "Randm"], "did you mean 'Random'"),
            (["reproduce", "figure2", "--trials", "0"], "trials is 0"),
            (["reproduce", "figure2", "--data", "colours"], "data is 'colours': use one of food10k, synthetic"),
            (["reproduce", "figure1", "--triplets", "x.csv"], "only the figure triplet-error uses it; add that figure"),
            (["plan", "--items", "none.csv"], "there is no file none.csv"),
            (["plan", "--items", "wines.csv", "--strategies", "infogian"], "did you mean 'infogain'?"),
            (["plan", "--items", "wines.csv", "--target-radius", "0"], "target radius is 0"),
            (["plan", "--items", "wines.csv", "--questions", "-1"], "--questions is -1"),
            (["plan", "--items", "wines.csv", "--noise", "loud"], "--noise is 'loud': use one of constant"),
            (["plan", "--items", "wines.csv", "--k", "-2"], "k is -2"),
            (["plan"], "Missing option '--items'"),
        ],
    )
    def test_bad_input_is_one_clear_line_and_exit_code_2(self, command, spec, wines, tmp_path, arguments, message):
        before = sorted(path.name for path in tmp_path.iterdir())
        code, out, err = command(*arguments)
        assert code == 2
        # A command that reads items first prints which columns are coordinates.
        *notes, line = err.splitlines()
        assert line.startswith("pairseek: ")
        assert message in line
        assert [note for note in notes if not note.startswith("Columns of wines.csv: ")] == []
        assert out == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == before

    def test_a_folder_with_another_specification_is_refused(self, command, spec):
        assert command("simulate", spec, "--jobs", 1, "--out", "here")[0] == 0
        code, _, err = command("simulate", spec, "--jobs", 1, "--out", "here", "--seed", 9)
        assert code == 2
        assert "holds results of another specification" in err

    def test_a_scheduler_that_does_not_reply_is_reported(self, command, spec, monkeypatch):
        monkeypatch.setattr("pairseek.experiments.runs.cluster.CONNECT_TIMEOUT", 1)
        code, _, err = command("simulate", spec, "--scheduler", "tcp://127.0.0.1:9")
        assert code == 2
        assert "the scheduler tcp://127.0.0.1:9 does not answer" in err

    def test_a_full_disk_is_reported_and_nothing_is_lost(self, command, spec, monkeypatch):
        fsync, calls = os.fsync, []

        def full(descriptor):
            calls.append(descriptor)
            if len(calls) == 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        code, _, err = command("simulate", spec, "--jobs", 1)
        monkeypatch.setattr(os, "fsync", fsync)
        assert code == 2
        assert "No space left on device; finished trials are kept" in err
        assert command("simulate", spec, "--jobs", 1)[0] == 0

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interruption_says_how_to_resume(self, spec, tmp_path, number):
        code = (
            "from pairseek.cli import main\nif __name__ == '__main__': main(['simulate', 'mine.toml', '--jobs', '1'])\n"
        )
        (tmp_path / "go.py").write_text(code)
        spec.write_text(SPEC.replace("queries = 4", "queries = 40").replace("trials = 2", "trials = 400"))
        process = subprocess.Popen([sys.executable, "go.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        journal = tmp_path / "pairseek-results" / "mine" / "trials.jsonl"
        end = time.monotonic() + 60
        while not (journal.exists() and journal.stat().st_size) and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert "Stopped. Finished trials are kept: run the same command again to resume." in out


class TestReproduce:
    def test_the_list_names_every_figure_with_its_size(self, command):
        code, out, _ = command("reproduce", "list")
        assert code == 0
        for name in ("figure1", "figure2", "dimensions", "triplet-error", "speed", "supplement", "bounds", "rivals"):
            assert name in out
        assert "1,000" in out

    def test_figures_share_one_report(self, command, tmp_path):
        code, out, err = command(
            "reproduce", "triplet-error", "bounds", "--trials", 1, "--strategies", "EPMV", "--jobs", 1, "--out", "out"
        )
        assert (code, err) == (0, "")
        text = (tmp_path / "out" / "report.html").read_text()
        assert text.count("<figure>") == 2
        assert "Triplet error against dimension" in text
        assert (tmp_path / "out" / "bounds" / "table.csv").exists()
        assert "bounds.svg" in out

    @pytest.fixture
    def short(self, monkeypatch):
        """Return a command for the figure of bounds, shortened to two settings and three answers."""
        bounds = SPECIFICATIONS["bounds"]("quick")
        bounds = replace(bounds, settings=bounds.settings[:2], queries=3)
        monkeypatch.setitem(SPECIFICATIONS, "bounds", lambda _: bounds)
        return ("reproduce", "bounds", "--strategies", "EPMV", "--jobs", 1, "--out", "out")

    def test_finished_trials_are_reported_without_running_any(self, command, tmp_path, short):
        assert command(*short, "--trials", 2)[0] == 0
        journal = tmp_path / "out" / "bounds" / "trials.jsonl"
        lines = sorted(journal.read_bytes().splitlines(keepends=True), key=lambda line: json.loads(line[9:])[2])
        journal.write_bytes(b"".join(lines[:3]))
        code, _, err = command(*short, "--trials", 2, "--finished")
        assert (code, err) == (0, "")
        assert (
            "Not finished: figures and numbers are for 1 of 2 users" in (tmp_path / "out" / "report.html").read_text()
        )
        assert journal.read_bytes() == b"".join(lines[:3])
        journal.write_bytes(b"".join(lines[:1]))
        assert command(*short, "--trials", 2, "--finished")[0] == 0
        assert "Not run yet" in (tmp_path / "out" / "report.html").read_text()


class TestPlan:
    def test_it_prints_how_many_questions_are_needed(self, command, wines, tmp_path):
        code, out, err = command(
            "plan", "--items", wines, "--k", 2, "--target-radius", 3, "--users", 3, "--questions", 8, "--jobs", 1,
            "--strategies", "infogain,random", "--out", "planned",
        )  # fmt: skip
        assert (code, err) == (0, "Columns of wines.csv: coordinates: sweet, dry; choose with --coordinates.\n")
        assert "30 items in 2 dimensions, k = 2, normalized noise" in out
        assert "InfoGain" in out
        assert "No strategy needs fewer than" in out
        assert (tmp_path / "planned" / "figures" / "plan.png").exists()
        assert "How many questions" in (tmp_path / "planned" / "report.html").read_text()

    def test_json_has_the_whole_plan(self, command, wines, tmp_path):
        code, out, _ = command(
            "plan", "--items", wines, "--users", 2, "--questions", 2, "--strategies", "random", "--json", "--jobs", 1
        )
        record = json.loads(out)
        assert code == 0
        assert record["items"]["n"] == 30
        assert record["strategies"][0]["answers"] == [0, 1, 2]
        assert record["bounds"]["fewest"] >= 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["wines.csv"]


class TestProgress:
    def progress(self, done):
        return Progress(("InfoGain", "Random"), done, 9)

    def test_a_terminal_shows_a_bar_for_each_strategy(self):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=True, width=100)
        with RunProgress(console, "A run") as show:
            show(self.progress((0, 0)))
            time.sleep(0.05)
            show(self.progress((3, 2)))
            show(self.progress((5, 9)))
            show._bars.refresh()
        text = screen.getvalue()
        assert "A run" in text
        for words in ("InfoGain", "Random", "5/9", "9/9"):
            assert words in text

    def test_learning_has_a_bar_for_each_stage(self):
        screen = io.StringIO()
        with PopulationFitProgress(Console(file=screen, force_terminal=True, width=100), "Learning") as show:
            show(LearningStep("cross-validation", 1.0, "fold 4 of 4"))
            show(LearningStep("fit", 0.5, "iteration 7"))
            show._bars.refresh()
        for words in ("Learning", "cross-validation", "100%", "fit", "50%", "iteration 7"):
            assert words in screen.getvalue()

    def test_other_consoles_show_nothing(self):
        screen = io.StringIO()
        with RunProgress(Console(file=screen), "A run") as show:
            show(self.progress((0, 0)))
            show(self.progress((9, 9)))
        assert screen.getvalue().strip() == ""


class TestMissingData:
    """Without Food-10k, commands fail before they compile, time or simulate anything."""

    @pytest.fixture(autouse=True)
    def nowhere(self, monkeypatch, tmp_path):
        from pairseek.experiments.simulation import _load_named_data

        monkeypatch.setenv("PAIRSEEK_DATA", str(tmp_path))
        monkeypatch.setenv("PAIRSEEK_FOOD10K_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        _load_named_data.cache_clear()

        def too_late(*_, **__):
            raise AssertionError("the data should have been required before")

        for place in ("experiments.reproduction.run", "experiments.runs.runner.run_plan"):
            monkeypatch.setattr(f"pairseek.{place}", too_late)
        monkeypatch.setattr("pairseek.experiments.simulation.run_plan", too_late)
        yield
        _load_named_data.cache_clear()

    @pytest.mark.parametrize(
        "given",
        [
            ["reproduce", "figure2", "--preset", "paper"],
            ["reproduce", "figure1"],
            ["reproduce", "bounds", "figure2"],
            ["reproduce", "triplet-error", "bounds", "--triplets", "triplets.csv"],
            ["simulate", "--data", "food10k", "--dimension", "4", "--strategies", "random"],
        ],
        ids=" ".join,
    )
    def test_a_command_fails_at_once(self, command, given, tmp_path):
        (tmp_path / "triplets.csv").write_text("0,1,2\n")
        code, out, err = command(*given)
        assert code == 2
        assert out == ""
        assert re.search(r"needs the extra 'data'|no local copy", err)
        assert re.search(r"put .*\.mat \(or .*\) into", err)
        assert "--data synthetic" in err

    def test_finished_trials_are_drawn_without_the_data(self, command, tmp_path):
        (tmp_path / "pairseek-results" / "quick").mkdir(parents=True)
        code, _, err = command("reproduce", "figure2", "--finished")
        assert (code, err) == (0, "")


def test_a_plan_of_items_without_coordinates_says_how_precise_the_ranking_will_be(command, tmp_path):
    path = tmp_path / "teas.csv"
    path.write_text("label\n" + "".join(f"tea {k}\n" for k in range(12)))
    code, out, _ = command("plan", "--items", path, "--people", 40, "--answers", 30)
    assert code == 0
    assert "12 items, 40 people, 30 answers each" in out
    assert "spans about 4 of 12 places" in out
    assert "Warning" not in out
    assert "cannot tell the items apart" in command("plan", "--count", 3000, "--people", 100, "--answers", 20)[1]
    code, _, err = command("plan", "--people", 100)
    assert code == 2
    assert "give either --items" in err
