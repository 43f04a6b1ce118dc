"""Compiled quizzes: every path agrees with the search, and failures leave nothing behind."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pairseek as ps
from helpers.quizzes import by_share
from helpers.refusals import refused
from helpers.searches import search_of
from helpers.serving import some_items
from pairseek.errors import InvalidItems, InvalidParameter, Unsupported
from pairseek.quiz.compilation import RECOMMENDATION_COUNT, CostProbe, compile_tree
from pairseek.quiz.compiler import compile_quiz
from pairseek.quiz.content import QuizSource
from pairseek.quiz.folder import TREE_PREFIX, staging_folder
from pairseek.quiz.plan import FOLLOWED_SETTINGS, IGNORED_SETTINGS, REFUSED_SETTINGS, QuizLimits, plan_quiz
from pairseek.quiz.sources import from_items_file, from_study_file
from pairseek.quiz.tree import grow
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.state import SearchState
from pairseek.web.studies.configuration import StudyConfiguration, configured

UNKNOWN = {"name": "logistic", "k": "unknown", "lapse": "unknown"}
PROCESSES = 2


def source(items=None, **settings_of_study):
    return QuizSource(configured({"title": "Which?", **settings_of_study}), some_items(40) if items is None else items)


def record_of(folder: Path) -> dict:
    text = (folder / "tree.js").read_text(encoding="utf-8")
    assert text.startswith(TREE_PREFIX)
    return json.loads(text.removeprefix(TREE_PREFIX))


class Reader:
    """Independent decoder of a quiz's tree, written from the documented format."""

    def __init__(self, record: dict) -> None:
        self.record = record
        self.pairs, self.results = (
            "".join(f"{byte:08b}" for byte in base64.b64decode(record[name])) for name in ("pairs", "results")
        )
        self.last = 2 ** record["answers"] - 1
        bits, best = record["bits"], record["recommended"]
        self.size = best * (bits + 16) + 64 + 32 * record["dimensions"]
        self.ends = [n for n in range(2 * self.last + 1) if not self.asks(n) and (n == 0 or self.asks((n - 1) // 2))]

    def pair(self, n: int) -> tuple[str, str]:
        bits, ids = self.record["bits"], self.record["items"]["id"]
        pair = [ids[int(self.pairs[(2 * n + i) * bits : (2 * n + i + 1) * bits], 2)] for i in (0, 1)]
        return pair[0], pair[1]

    def asks(self, n: int) -> bool:
        return n < self.last and self.pair(n)[0] != self.pair(n)[1]

    def result(self, n: int) -> dict:
        at = self.ends.index(n) * self.size

        def read(width):
            nonlocal at
            at += width
            return int(self.results[at - width : at], 2)

        record = self.record
        ids = [record["items"]["id"][read(record["bits"])] for _ in range(record["recommended"])]
        shares = [read(16) / 65535 for _ in ids]
        scaled = [low + step * read(16) for low, step in record["scales"]]
        point = np.array([read(32) for _ in range(record["dimensions"])], dtype=np.uint32).view(np.float32)
        return {"ids": ids, "shares": shares, "radius": scaled[0], "point": point}


def assert_agreement(record: dict, search: ps.Search, *, paths=None) -> None:
    """Assert that each path of the tree has the queries and the result of the search after the same answers."""
    reader, d = Reader(record), record["dimensions"]
    asked = 0
    for sides in itertools.product("LR", repeat=record["answers"]) if paths is None else paths:
        here, n = search.continued(()), 0
        for side in sides:
            if here.finished is not None:
                break
            query = here.ask()
            assert reader.pair(n) == (str(query.left), str(query.right))
            here.tell(query, winner=query.left if side == "L" else query.right)
            n = 2 * n + (1 if side == "L" else 2)
            asked += 1
        assert n in reader.ends
        result, estimate = reader.result(n), here.estimate()
        best = by_share(here, record["recommended"])
        assert result["ids"] == [str(item.id) for item, _ in best]
        np.testing.assert_array_equal(result["point"], np.float32(estimate.point[:d]))
        # Half a step of the 16-bit numbers.
        np.testing.assert_allclose(result["shares"], [share for _, share in best], atol=0.5001 / 65535)
        assert abs(result["radius"] - estimate.credible_radius()) <= 0.5001 * record["scales"][0][1] + 1e-15
    assert asked > 0


CASES = {
    "default": ({}, None),
    "colours": ({"answers": 3}, ps.datasets.colours()),
    "seed": ({"seed": 7}, None),
    "sampled": ({"strategy": "mcmv", "candidates": {"name": "sampled_pairs", "count": 50}}, None),
    "random": ({"strategy": "random"}, None),
    "procedure": ({"strategy": {"name": "actrank", "votes": 1}}, None),
    "unknown reliability": ({"response": UNKNOWN, "answers": 2}, None),
    "few items": ({"rest": {"pair": 100}}, some_items(3)),
    "no coordinates": ({}, ps.Items(ids=["tea", "water", "milk", "juice", "beer", "wine", "soup"])),
    "one dimension": ({}, some_items(20, d=1)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_path_agrees_with_the_search(case, tmp_path):
    given, items = CASES[case]
    quiz = source(items, **{"answers": 4, **given})
    plan = plan_quiz(quiz)
    compile_quiz(plan, tmp_path / "quiz")
    record = record_of(tmp_path / "quiz")
    assert (record["answers"], record["seed"]) == (given.get("answers", 4), given.get("seed", 0))
    if case == "few items":
        # A session ends when no pair is left; a search raises an error.
        assert len(Reader(record).ends) == 8
        paths = itertools.product("LR", repeat=3)
    else:
        paths = None
    assert_agreement(record, search_of(quiz.configuration.resolved(quiz.items), record["seed"]), paths=paths)


def test_a_stop_rule_ends_some_paths_early(tmp_path):
    whole = compile_tree(source().search(0), 3, seconds=0.0)
    radius = float(np.median([result.radius for result in whole.results.values()]))
    quiz = source(answers=4, stop=[{"name": "radius", "radius": radius}])
    compile_quiz(plan_quiz(quiz), tmp_path / "quiz")
    record = record_of(tmp_path / "quiz")
    assert 8 <= len(Reader(record).ends) < 16
    assert_agreement(record, search_of(quiz.search(0).configuration))


def test_processes_give_the_same_bits():
    search = source().search(3)
    alone = compile_tree(search, 7, seconds=0.0)
    together = compile_tree(search, 7, seconds=100.0, jobs=PROCESSES)
    assert alone.pairs == together.pairs
    assert alone.results.keys() == together.results.keys()
    for path, result in alone.results.items():
        other = together.results[path]
        assert result.recommended == other.recommended
        assert (result.point.tobytes(), result.covariance.tobytes()) == (
            other.point.tobytes(),
            other.covariance.tobytes(),
        )
        assert result.radius == other.radius


def test_the_search_is_not_modified():
    search = source().search(0)
    first = search.query()
    grow(search, "", 3, RECOMMENDATION_COUNT)
    assert (search.events, search.query()) == ((), first)


@pytest.mark.long
def test_all_4096_paths_of_949_colours(tmp_path):
    """The whole quiz of the docs, with the size that they state."""
    quiz = source(ps.datasets.colours(), answers=12)
    compiled = compile_quiz(plan_quiz(quiz, jobs=PROCESSES), tmp_path / "quiz")
    assert (compiled.pairs, compiled.results) == (4095, 4096)
    assert sum(compiled.sizes.values()) < 300_000
    reader, base = Reader(record_of(tmp_path / "quiz")), quiz.search(0)
    # Each position has its own search, built from the events that lead there.
    waiting = [(0, ())]
    for n, events in waiting:
        search = base.with_events(events)
        if len(events) == 12:
            result = reader.result(n)
            ids = [item.id for item in search.recommend(RECOMMENDATION_COUNT)]
            shares = dict(zip(ids, search.choice_shares(ids), strict=True))
            assert result["ids"] == sorted(ids, key=lambda name: -shares[name])
            np.testing.assert_array_equal(result["point"], np.float32(search.estimate().point))
            continue
        query = search.query()
        assert reader.pair(n) == (query.left, query.right)
        for side, winner in enumerate((query.left, query.right)):
            event = ps.Event(query.left, query.right, "answer", winner, query)
            waiting.append((2 * n + 1 + side, (*events, event)))
    assert len(waiting) == 8191


def test_a_quiz_uses_the_population(tmp_path):
    rng = np.random.default_rng(3)
    items = some_items(12)
    ids = list(items.ids)
    rows = [(f"p{p}", *rng.choice(ids, 2, replace=False)) for p in range(30) for _ in range(8)]
    population = ps.Population.fit(ps.Choices.from_pairs(rows, ids=items.ids), items=items)
    quiz = dataclasses.replace(source(items, answers=3), population=population)
    compile_quiz(plan_quiz(quiz), tmp_path / "quiz")
    assert_agreement(record_of(tmp_path / "quiz"), ps.Search(items, population=population, rng=0))


@pytest.mark.parametrize("name", sorted(StudyConfiguration.model_fields.keys() - {"offer"}))
def test_every_setting_of_a_study_is_kept_left_out_or_refused(name):
    known = FOLLOWED_SETTINGS | IGNORED_SETTINGS.keys() | REFUSED_SETTINGS.keys()
    assert name in known, "decide what a quiz does with this setting, in pairseek.quiz.plan"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offer.tie", {"offer": {"tie": True}}),
        ("offer.skip", {"offer": {"skip": True}}),
        ("repeated", {"repeated": 0.1}),
        ("random", {"random": 0.1}),
        ("attention", {"attention": {"pairs": [{"left": "i0", "right": "i1", "answer": "i0"}]}}),
        ("invited", {"invited": True}),
        ("result", {"result": False}),
    ],
)
def test_a_setting_that_no_quiz_can_follow_is_refused(name, value):
    with pytest.raises(InvalidParameter, match=f"the setting '{name}' cannot be compiled: .*; compile a study file"):
        plan_quiz(source(**value))


def test_settings_without_an_effect_are_noted():
    notes = plan_quiz(source(answers=2, consent="Yes?", retention={"days": 3})).notes
    assert [note.split(":")[0] for note in notes] == [
        "the setting 'consent' has no effect",
        "the setting 'retention' has no effect",
    ]


def test_sounds_videos_and_spaces_are_refused():
    items = some_items(5)
    sounds = ps.Items(items.coordinates, items.ids, data={"audio": ["https://a.example/x.ogg"] * 5})
    with pytest.raises(InvalidItems):
        plan_quiz(source(sounds))
    with pytest.raises(Unsupported):
        grow(SearchState(SearchConfiguration.resolved(ps.Space([0, 0], [1, 1])), 0), "", 1, RECOMMENDATION_COUNT)


def test_a_tree_beyond_the_limits_is_refused_with_its_cost():
    with refused("answers"):
        plan_quiz(source(), answers=22)
    with refused("answers"):
        plan_quiz(source(), answers=5, limits=QuizLimits(megabytes=0.001))
    with refused("minutes"):
        QuizLimits(minutes=0)


def test_the_expected_size_is_an_upper_bound(tmp_path):
    for items in (some_items(40), ps.datasets.colours(), some_items(300, d=8)):
        plan = plan_quiz(source(items, answers=5))
        compiled = compile_quiz(plan, tmp_path / str(items.n))
        assert 0.3 * plan.size < compiled.sizes["tree.js"] <= plan.size


def test_the_cost_of_a_tree_follows_from_its_nodes():
    cost = CostProbe(source().search(0), 3).cost(3)
    assert (cost.pairs, cost.results) == (7, 8)
    assert 0 < cost.seconds < 60
    assert cost.expected_time(1) == cost.expected_time(2) == cost.seconds  # too short for processes
    long = dataclasses.replace(cost, seconds=1000.0)
    assert long.expected_time(1) == 1000.0
    assert 500.0 < long.expected_time(2) < 520.0


# The folder


def test_a_folder_with_other_files_is_refused_and_kept(tmp_path):
    out = tmp_path / "quiz"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    for force in (False, True):
        with refused("out"), staging_folder(out, force=force):
            pytest.fail("the folder must be refused before the work")
    assert [path.name for path in tmp_path.rglob("*")] == ["quiz", "thesis.txt"]
    (tmp_path / "file").write_text("")
    with refused("out"), staging_folder(tmp_path / "file"):
        pass


def test_a_quiz_is_replaced_only_by_force(tmp_path):
    out = tmp_path / "quiz"
    plan = plan_quiz(source(answers=1))
    compile_quiz(plan, out)
    with refused("out"):
        compile_quiz(plan, out)
    compile_quiz(plan_quiz(source(answers=2)), out, force=True)
    assert record_of(out)["answers"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quiz"]


def test_a_failure_leaves_nothing_behind(tmp_path):
    def fail():
        with staging_folder(tmp_path / "quiz") as folder:
            (folder / "tree.js").write_text(TREE_PREFIX)
            raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_concurrent_compilations_into_a_folder_are_refused(tmp_path):
    with staging_folder(tmp_path / "quiz") as folder:
        (folder / "tree.js").write_text(TREE_PREFIX)
        with refused("out"):
            compile_quiz(plan_quiz(source(answers=1)), tmp_path / "quiz")
        assert not (tmp_path / "quiz").exists()
    assert (tmp_path / "quiz" / "tree.js").read_text() == TREE_PREFIX


def test_a_killed_compilation_leaves_no_quiz_and_does_not_block_the_next(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from pairseek.quiz.folder import staging_folder\n"
        "with staging_folder(Path('quiz')) as folder:\n"
        "    (folder / 'index.html').write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert killed.stdout.readline() == "ready\n"
    with refused("out"), staging_folder(tmp_path / "quiz"):
        pass
    killed.kill()
    killed.wait()
    killed.stdout.close()
    assert not (tmp_path / "quiz").exists()
    with staging_folder(tmp_path / "quiz") as folder:
        assert list(folder.iterdir()) == []
        (folder / "index.html").write_text("whole")
    assert (tmp_path / "quiz" / "index.html").read_text() == "whole"


# The command


def test_from_a_file_of_items_to_a_quiz(command, tmp_path):
    some_items(30).to_csv(tmp_path / "red-wines.csv")
    code, out, _ = command("compile", "red-wines.csv", "--answers", 3, "--out", "compiled/quiz", "--language", "de")
    assert code == 0
    assert "30 items in 2 dimensions, 3 answers: 7 pairs, 8 results" in out
    assert "Expected: " in out
    assert "Compiled in " in out
    assert "Written: " in out
    assert "Open compiled/quiz/index.html in a browser." in out
    files = sorted(path.name for path in Path("compiled/quiz").iterdir())
    assert files == ["index.html", "player.js", "quiz.js", "tree.js"]
    record = record_of(Path("compiled/quiz"))
    assert (record["title"], record["question"]) == ("Red wines", "Was ziehen Sie vor?")
    assert_agreement(record, ps.Search(from_items_file(Path("red-wines.csv")).items, rng=0))
    assert len((tmp_path / "compiled/quiz/quiz.js").read_bytes()) < 5000


def test_from_a_study_with_pictures_to_a_quiz_and_from_the_database_to_the_same(command, tmp_path):
    (tmp_path / "photos").mkdir()
    rows = []
    for k, (x, y) in enumerate(np.random.default_rng(1).normal(size=(6, 2))):
        Image.new("RGB", (400 + k, 500), (40 * k, 90, 90)).save(tmp_path / "photos" / f"{k}.png")
        rows.append(f"w{k},photos/{k}.png,A bottle {k},{x},{y}\n")
    (tmp_path / "wines.csv").write_text("id,image,alt,x,y\n" + "".join(rows))
    (tmp_path / "wine.yaml").write_text("title: Wine\nitems: wines.csv\nanswers: 3\nseed: 5\ninstructions: '*Sip*'\n")
    assert command("compile", "wine.yaml", "--out", "a")[0] == 0
    assert command("study", "create", "wine.yaml", "--database", "w.db")[0] == 0
    assert command("compile", "wine", "--out", "b", "--database", "w.db")[0] == 0
    for name in (path.relative_to("a") for path in Path("a").rglob("*") if path.is_file()):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes(), name
    record = record_of(Path("a"))
    assert_agreement(record, search_of(from_study_file(Path("wine.yaml")).search(5).configuration, 5))
    assert record["instructions"] == "<p><em>Sip</em></p>\n"
    name, *sizes = record["items"]["image"][0]
    assert len(sizes) == 4
    assert record["items"]["alt"][0].startswith("A bottle")
    for width, height in zip(sizes[::2], sizes[1::2], strict=True):
        with Image.open(f"a/pictures/{name}/{width}.webp") as picture:
            assert picture.size == (width, height)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.csv",), "nothing.csv"),
        (("nothing.yaml",), "there is no file nothing.yaml"),
        (("nothing",), "there is no database"),
        (("wines.csv", "--answers", 0), "the number of answers is 0"),
        (("wines.csv", "--seed", -1), "the seed is -1"),
        (("wines.csv", "--language", "xx"), "the setting 'language' is 'xx'"),
        (("wines.csv", "--megabytes", -1), "the limit megabytes is -1"),
        (("wines.csv", "--answers", 40), "at most 1"),
        (("tie.yaml",), "the setting 'offer.tie' cannot be compiled"),
        (("tie.yaml", "--population", "p.json"), "a study has its own population"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(command, tmp_path, arguments, message):
    some_items(30).to_csv(tmp_path / "wines.csv")
    (tmp_path / "tie.yaml").write_text("title: Wine\nitems: wines.csv\noffer: {tie: true}\n")
    code, _, err = command("compile", *arguments, "--out", "quiz")
    assert code == 2
    assert message in err
    assert not (tmp_path / "quiz").exists()
    assert not (tmp_path / ".quiz.part").exists()


@pytest.mark.slow
def test_a_signal_stops_a_compilation_and_leaves_nothing(tmp_path):
    some_items(200).to_csv(tmp_path / "wines.csv")
    program = "import sys; from pairseek.cli import main; main(sys.argv[1:])"
    arguments = ["compile", "wines.csv", "--answers", "14", "--out", "quiz", "--jobs", "2"]
    running = subprocess.Popen([sys.executable, "-c", program, *arguments], cwd=tmp_path, stdout=subprocess.PIPE)
    until = time.monotonic() + 120
    while not (tmp_path / ".quiz.part").exists():
        assert running.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGTERM)
    output, _ = running.communicate(timeout=120)
    assert running.returncode == 128 + signal.SIGTERM
    assert b"Stopped. Nothing was written." in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wines.csv"]
