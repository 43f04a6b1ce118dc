"""The code of the docs: the blocks of a page run one after the other, as a reader would paste them."""

import re
from pathlib import Path

import numpy as np
import pytest

import pairseek as ps
from pairseek import embed
from pairseek.experiments import SPECIFICATIONS, Task
from pairseek.experiments.paper import AUTHORS_SAMPLES
from pairseek.experiments.trial import _search

DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(page, names=None):
    names = {"ps": ps} if names is None else names
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    """Write the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    places = rng.random((12, 2))
    lines = [f"w{i},Wine {i},{i}.png,{x:.3f},{y:.3f}" for i, (x, y) in enumerate(places)]
    lines += ["merlot-7,Merlot,a.png,0.1,0.9", "riesling-2,Riesling,b.png,0.8,0.2"]
    Path("wines.csv").write_text("id,label,image,sweetness,body\n" + "\n".join(lines) + "\n")
    rows = []
    for person, taste in enumerate(rng.random((20, 2))):
        for _ in range(12):
            pair = rng.choice(12, 2, replace=False)
            winner, loser = sorted(pair, key=lambda item: np.linalg.norm(taste - places[item]))
            rows.append(f"p{person},w{winner},w{loser}")
    Path("choices.csv").write_text("person,winner,loser\n" + "\n".join(rows) + "\n")


@pytest.fixture
def items():
    return ps.Items.from_csv("wines.csv", keep=["image"])


def test_algorithm_1_configures_the_search_of_the_experiments(monkeypatch, shared):
    if shared is None:
        monkeypatch.setattr(ps.datasets, "food10k", ps.datasets.synthetic)
    else:
        monkeypatch.setenv("PAIRSEEK_DATA", str(shared))
    names = run("explanation/algorithm-1.md")
    search, items, figure = names["search"], names["items"], SPECIFICATIONS["figure2"]("paper")
    theirs = _search(figure, Task(0, 0, 0), items, 1)
    assert figure.labels[0] == "InfoGain"
    for part in ("prior", "response", "strategy", "rest"):
        assert getattr(search, part) == getattr(theirs, part)
    assert search.candidates.rate == theirs.candidates.rate
    # Every candidate is scored by samples.
    assert names["query"].info.considered == int(1e-3 * items.n * (items.n - 1) / 2) < search.candidates.rescore
    assert search.stop == (ps.AfterAnswers(figure.queries),)
    assert search.posterior == ps.Particles(AUTHORS_SAMPLES)
    usual = ps.Search(items)
    assert isinstance(usual.prior, ps.GaussianPrior)
    assert usual.response.noise == "constant"
    assert usual.response.residual == 1.5
    assert usual.response.curvature_prior is not None
    assert (usual.posterior, usual.strategy, usual.rest, usual.stop) == (ps.EP(), ps.InfoGain(), ps.Rest(), ())
    assert usual.candidates.name == "proposed_pairs"
    resolved = [ps.Search(items, strategy=kind()).strategy.penalty for kind in (ps.EPMV, ps.MCMV)]
    assert resolved == [pytest.approx(np.sqrt(np.trace(np.cov(items.coordinates.T)))), 1.0]


def test_run_a_search():
    names = run("how-to/search.md")
    assert names["again"].answers == 1


def test_tables():
    names = run("how-to/tables.md")
    assert names["items"].ids == (7, 12, 30)
    assert list(names["table"]["id"]) == [7, 12, 30]


def test_rank_items_for_a_group(items, capsys):
    names = run("how-to/ranking.md", {"ps": ps, "items": items.subset(np.arange(12))})
    assert len(capsys.readouterr().out.splitlines()) == 12
    assert names["segmentation"].membership.shape == (20, len(names["segmentation"]))


def test_make_items_from_judgements(items):
    triplets = embed.simulate_triplets(items, 50, rng=0)
    triplets.to_csv("judgements.csv")
    lines = Path("judgements.csv").read_text().splitlines()
    Path("judgements.csv").write_text("\n".join([f"{lines[0]},alg", *(f"{line},Test" for line in lines[1:])]) + "\n")
    Path("colours.zip").symlink_to("judgements.csv")
    block = re.search(r"```python\n(.*?)```", (DOCS / "how-to/embedding.md").read_text(), re.DOTALL)[1]
    exec(compile(block.replace("colours.zip", "judgements.csv"), "embedding.md", "exec"), {})


def test_run_a_similarity_study():
    names = run("how-to/similarity.md")
    assert names["items"].n == 5


def test_a_study_of_anything(capsys):
    names = run("tutorials/study-of-anything.md")
    assert names["search"].finished == "8 answers were given"
    assert "Recommendation" in capsys.readouterr().out


@pytest.mark.long
def test_learn_from_people_who_came_before(items):
    choices = ps.Choices.read("choices.csv", ids=items.ids[:12])
    names = run("explanation/population.md", {"ps": ps, "choices": choices, "items": items.subset(np.arange(12))})
    assert names["tomorrow"].items.n == 41


def test_the_model(capsys):
    names = run("explanation/model.md")
    assert names["tomorrow"].n == 1500
    assert names["search"].finished
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md")), ids=str)
def test_lines_of_programs_fit_the_page(page):
    """A column of the site fits 92 characters at 1280 px."""
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        assert [line for line in block.splitlines() if len(line) > 92] == []


def test_a_strategy_that_draws():
    assert run("explanation/strategies.md")["search"].answers == 1


def test_a_method_of_the_page_on_comparisons_takes_part(tmp_path):
    from pairseek.experiments import compare, read_comparison

    page = (DOCS / "benchmarks" / "compare.md").read_text(encoding="utf-8")
    (method,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (specification,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(method.splitlines()) < 34
    assert len([line for line in method.splitlines() if line.strip()]) < 30
    Path("elo.py").write_text(method)
    # The recorded people of the page may not be there.
    simulated = 'data = [{ name = "simulated", kind = "linear", people = 40, items = 8 }]'
    specification = re.sub(r"^data = .*$", simulated, specification, flags=re.MULTILINE)
    Path("mine.toml").write_text(specification)
    plan = read_comparison("mine.toml", people=6, answers=(0, 5, 15))
    results = compare(plan, tmp_path / "compared")
    assert results.methods == ("pairseek taste, others", "Gaussian, information", "Elo")
    assert not results.faults
    accuracy = results.scores("simulated", "Elo", "accuracy").mean(axis=0)
    assert accuracy[2] > accuracy[0]


def test_logged_sessions_are_compared_and_counted(capsys):
    names = run("how-to/compare-in-production.md")
    assert sum(record["kind"] == "question" for record in names["records"]) == 240
    assert {record["arm"] for record in names["asked"]} == {"taste", "best"}
    assert all(record["chance"] == 1.0 for record in names["asked"])
    assert 0.0 < names["error"] < 0.2
    shown = capsys.readouterr().out
    assert "best minus taste" in shown
    counted = sum(float(value) for value in re.findall(r"shop_questions_total\{.*\} (\S+)", shown))
    assert counted == 240
