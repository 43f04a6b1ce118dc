"""The recipes of CONTRIBUTING.md, applied literally to a copy of the repository, and used there.

The copy is checked as by `make check`. Blocks that a checkout already contains, because somebody has followed the
recipe, are left as they are.

Each use runs in a process of its own that imports the copy. Kernels run there as plain Python, because compiling them
again would take longer than everything else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES: dict[str, str] = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", CONTRIBUTING, re.DOTALL | re.MULTILINE))
# Number of code blocks of each recipe; the other recipes have none.
WITH_CODE = {
    "A strategy": 4,
    "A noise kind": 4,
    "A stop rule": 4,
    "An item medium": 5,
    "A command": 4,
    "A format of choices": 3,
}
# A code block, and the paragraph before it that names its file.
BLOCK = re.compile(r"((?:[^\n]+\n)+)\n```(python|diff)\n(.*?)```", re.DOTALL)


def apply(recipe: str, root: Path) -> int:
    """Apply the code blocks of a recipe to the files below `root`, and return the number of blocks."""
    blocks = BLOCK.findall(RECIPES[recipe])
    for before, language, code in blocks:
        path = root / re.findall(r"`((?:src|docs|tests)/[^`]+|\.importlinter)`", before)[-1]
        above = re.search(r"above\s+`([^`]+)`", before)
        if language == "diff":
            path.write_text(patched(path.read_text(), code))
        elif above:
            text = path.read_text()
            assert text.count(f"\n{above[1]}") == 1
            if code not in text:
                path.write_text(text.replace(f"\n{above[1]}", f"\n{code}\n\n{above[1]}"))
        else:
            assert not path.exists() or path.read_text() == code, f"{path} exists already, with other content"
            path.write_text(code)
    return len(blocks)


def patched(text: str, diff: str) -> str:
    """Return the text with every hunk applied; hunks are separated by empty lines, and each must match once.

    Hunks that were applied before change nothing.
    """
    for hunk in re.split(r"\n\n(?=[-+ ])", diff.rstrip("\n")):
        lines = hunk.split("\n")
        old = "\n".join(line[1:] for line in lines if line[:1] != "+")
        new = "\n".join(line[1:] for line in lines if line[:1] != "-")
        if new in text:
            continue
        assert text.count(old) == 1, f"the recipe changes {old!r}, which occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """Copy the repository, and apply every recipe to the copy."""
    root = tmp_path_factory.mktemp("copy") / "pairseek"
    shutil.copytree(
        ROOT, root, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".git", ".venv", ".*_cache", "site")
    )
    # Twice, because the checkout may already contain them.
    for _ in range(2):
        assert {recipe: count for recipe in RECIPES if (count := apply(recipe, root))} == WITH_CODE
    add_language(root)
    return root


def add_language(root: Path) -> None:
    """Follow the recipe for a language as far as a program can: the messages stay English."""
    messages = root / "src" / "pairseek" / "core" / "messages"
    text = (messages / "en.json").read_text(encoding="utf-8")
    assert "`language.name`" in RECIPES["A language"]
    (messages / "eo.json").write_text(
        text.replace('"language.name": "English"', '"language.name": "Exemplary"'), "utf-8"
    )


def run(
    copy: Path, *arguments: str, folder: Path | None = None, seconds: float = 120, plain: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy and the tests' helpers on its path, and expect success."""
    paths = os.pathsep.join([str(copy / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": str(int(plain))},
        cwd=folder or copy,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done


def test_the_result_is_formatted_and_keeps_to_the_rules(copy) -> None:
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", ".")
    run(copy, "-m", "ruff", "check", "--no-cache", ".")
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    assert "0 broken" in run(copy, "-c", program).stdout


def test_the_docs_of_the_result_name_every_part(copy) -> None:
    names = "is_documented or list_every_limit or files_that or in_british or in_the_navigation or has_the_same"
    files = ("tests/docs/test_pages_of_docs.py", "tests/core/test_limits.py", "tests/web/test_pages.py")
    said = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *files, "-k", names).stdout
    assert re.search(r"^\d\d passed", said.splitlines()[-1]), said


@pytest.mark.long
def test_the_types_of_the_result_are_right(copy) -> None:
    run(copy, "-m", "mypy", "--no-incremental", seconds=600)


@pytest.mark.long
def test_the_contracts_of_the_new_parts_hold_and_these_tests_pass_there_too(copy) -> None:
    names = "uncertainty or rooted or patient or unknown_noise or (used or searched or found) and recipes"
    files = (
        "pairs/test_strategies",
        "model/test_responses",
        "search/test_stopping",
        "web/test_session_parts",
        "cli/test_help",
        "docs/test_recipes",
    )
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{name}.py" for name in files), "-k", names)
    run(copy, *command, seconds=900, plain=False)


USE = """
import numpy as np
import pairseek as ps
from pairseek.model.noise import NOISE_KINDS
from pairseek.pairs.strategies.uncertainty import Uncertainty
from pairseek.search import serialization

assert ps.__file__.startswith({copy!r})
points = np.random.default_rng(0).normal(size=(14, 2))
stop = serialization.decode("stop", {{"name": "patient_information", "bits": 0.9, "least": 3}})


def answered(search):
    assert search.forecast() == 3
    while search.finished is None:
        query = search.ask()
        search.tell(query, winner=query.left)
    return search


# By name, as in a study's file; as an instance, as in a program; and loaded from a saved file.
for strategy in (serialization.decode("strategy", {{"name": "uncertainty"}}), Uncertainty()):
    response = ps.Logistic(noise="rooted")
    search = answered(ps.Search(ps.Items(points), strategy=strategy, response=response, stop=stop, rng=1))
    assert search.history[0].query.info.strategy == "uncertainty"
    assert search.finished.startswith("the next answer would tell"), search.finished
    assert len(search.history) == 3
search.save("search.json")
again = ps.Search.load("search.json")
assert again.estimate().point.tolist() == search.estimate().point.tolist()
assert (again.strategy, again.stop, again.response) == (search.strategy, search.stop, search.response)

# The record and the kernel agree, and branch and bound finds the best of all pairs.
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.rest import Resting
from pairseek.numerics.pair_kernels import ROOTED, pair_constant, steepest_length
from pairseek.testing.scenes import random_belief

lengths = np.array([0.01, 1.0, 30.0])
kind = NOISE_KINDS["rooted"]
assert np.allclose(kind.pair_constant(2.0, lengths), [pair_constant(x, 2.0, ROOTED) for x in lengths], rtol=1e-15)
assert np.allclose([kind.steepness(x) for x in lengths], kind.pair_constant(1.0, lengths) * lengths)
assert kind.steepest_length(0.5, 3.0) == steepest_length(0.5, 3.0, ROOTED) == 3.0
belief = random_belief(np.random.default_rng(1), 50, 2)
for utility in (ps.InfoGain(), ps.GreedyMSE(), ps.MCMV(penalty=1.0)):
    context = SelectionContext(
        points, np.zeros(14), belief, ps.Logistic(2.0, "rooted"), utility, Resting.of(14, [], [])
    )
    tree, plain = (
        ps.AllPairs(listed=listed).choose(context, np.random.default_rng(0)) for listed in (0, 1000)
    )
    assert (tree.first, tree.second) == (plain.first, plain.second), utility
print("used")
"""


def test_a_strategy_a_noise_kind_and_a_stop_rule_are_searched_with_and_saved(copy, tmp_path) -> None:
    assert run(copy, "-c", USE.format(copy=str(copy)), folder=tmp_path).stdout == "used\n"


COMMANDS = """
import pairseek as ps
from pairseek.cli.app import run

run(["dimensions", "items.csv"])
print(ps.Choices.read("likes.csv").ids)
model = ["--strategies", "uncertainty", "--noise", "rooted"]
size = ["--queries", "2", "--trials", "1", "--jobs", "1"]
run(["simulate", "--data", "items.csv", *model, *size, "--out", "out"])
"""


def test_the_parts_have_names_in_commands_and_a_command_and_a_format_are_found(copy, tmp_path) -> None:
    (tmp_path / "items.csv").write_text("id,emoji,x,y\na,A,0,1\nb,B,1,0\nc,C,2,2\nd,D,-1,1\n")
    (tmp_path / "likes.csv").write_text("person,liked,disliked\np,a,b\nq,b,a\n")
    said = run(copy, "-c", COMMANDS, folder=tmp_path).stdout.splitlines()
    # Commands also treat the new medium as data, and not as a coordinate.
    assert said[:2] == ["4 items, 2 dimensions", "('a', 'b')"]
    assert "simulation,Uncertainty,0,2," in (tmp_path / "out" / "table.csv").read_text()


SERVE = """
import sys
from pathlib import Path
from pairseek.core.messages import words
from pairseek.web.results.codebook import meaning
from pairseek.web.routes.item_bodies import NewItem
from pairseek.web.studies.items import read_items
from helpers.serving import configuration, served

# The codebook and the HTTP API know the medium.
assert meaning(words(), "items", "emoji") == "Large character on the card."
assert meaning(words("de"), "items", "emoji") == "Großes Zeichen auf der Karte."
assert NewItem(id="a", coordinates=[0.0], emoji="A").media["emoji"] == "A"
assert "emoji" in NewItem.model_json_schema()["properties"]
items = read_items(Path("items.csv"))
stop = [{"name": "patient_information", "bits": 0.9, "least": 3}]
made = configuration(answers=4, strategy="uncertainty", response={"name": "logistic", "noise": "rooted"}, stop=stop)
with served("a.db", studies=[(made, items)]) as visitors:
    print(visitors.address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def study(copy, tmp_path):
    """Serve a study that uses the new parts from the copy, and yield its address."""
    rows = "".join(f"i{n},{letter},{n % 3},{n / 2}\n" for n, letter in enumerate("ΑΒΓΔΕΖ"))
    (tmp_path / "items.csv").write_text(f"id,emoji,x,y\n{rows}", encoding="utf-8")
    paths = os.pathsep.join([str(copy / "src"), str(ROOT / "tests")])
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        env={**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_medium_is_shown_on_the_page_of_a_study(study, visit) -> None:
    page = visit(f"{study}/s/which")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_url("**/run")
    page.locator("#left-show .emoji").wait_for()
    state = page.request.get(f"{study}/s/which/state").json()
    for side in ("left", "right"):
        shown = page.locator(f"#{side}-show .emoji").text_content()
        assert shown in "ΑΒΓΔΕΖ"
        assert state["query"][side]["media"] == {"emoji": shown}
    page.keyboard.press("f")
    page.locator("#left-show .emoji").wait_for()
