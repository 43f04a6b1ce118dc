"""The tutorials for ratings and for items only, which end in a running search."""

import re
from pathlib import Path

import numpy as np
import pytest

import pairseek as ps

DOCS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def run(page, names):
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    return names


def test_a_table_of_ratings_leads_to_a_search(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    taste, wine = rng.normal(size=(60, 2)), rng.normal(size=(10, 2))
    scores = np.digitize(taste @ wine.T + 0.3 * rng.normal(size=(60, 10)), [-1.5, -0.5, 0.5, 1.5]) + 1
    lines = [f"p{p},wine {i},{scores[p, i]}" for p in range(60) for i in range(10)]
    (tmp_path / "ratings.csv").write_text("person,item,rating\n" + "\n".join(lines) + "\n")
    names = run("ratings.md", {})
    assert names["search"].finished == "8 answers were given"
    assert isinstance(names["search"].prior, ps.GaussianPrior)
    assert "Recommendation" in capsys.readouterr().out


def test_nothing_but_items_leads_to_a_search(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    lines = [f"w{i},Wine {i},{x:.3f},{y:.3f}" for i, (x, y) in enumerate(rng.random((12, 2)))]
    (tmp_path / "wines.csv").write_text("id,label,sweetness,body\n" + "\n".join(lines) + "\n")
    names = run("items-only.md", {})
    assert names["search"].finished == "5 answers were given"
    assert names["population"].people == 3


@pytest.mark.parametrize("page", ["ratings.md", "items-only.md"])
def test_both_tutorials_end_with_recommendations(page):
    assert "search.recommend" in blocks(page)[-1]
