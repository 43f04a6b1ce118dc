"""The tutorial from triplets over dimension, embedding, noise and check to a search, run and measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.spatial

import pairseek as ps
from pairseek.embed import Triplets, read_provenance, simulate_triplets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "judgements.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def truth():
    return ps.Items(np.random.default_rng(3).normal(size=(80, 2)), ids=[f"wine {i:02d}" for i in range(80)]).scaled()


def test_the_tutorial_leads_from_judgements_to_a_person(truth, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    real = ps.Logistic(4.0, "normalized")
    simulate_triplets(truth, 12_000, 1, response=real).to_csv("judgements.csv")
    names: dict = {}
    exec(compile(BLOCKS[0], "tutorial.md", "exec"), names)
    assert names["choice"].chosen == 2
    items = names["items"]
    assert items.ids == truth.ids
    assert scipy.spatial.procrustes(truth.coordinates, items.coordinates)[2] < 0.05
    # The embedding is inexact, so people seem slightly less reliable than they are; `scaled` fixes the scale.
    best = names["noise"].best
    assert best.response.noise == "normalized"
    assert 2.5 < names["noise"]["logistic", "normalized"].k < 4.4
    held = names["held_out"]
    error = ps.metrics.triplet_error(items, held.among(items))
    assert error < ps.metrics.triplet_error(truth, held.among(truth)) + 0.03
    assert all(finding.level != "act" for finding in names["health"].findings)
    assert read_provenance("items.csv")["held_out_triplet_error"] == pytest.approx(error)

    exec(compile(BLOCKS[1], "tutorial.md", "exec"), names)
    estimate = names["search"].estimate()
    # The 95 % credible ball contains the person, and 40 answers have shrunk it to a third.
    before = ps.Search(items, rng=7).estimate().credible_radius()
    assert estimate.credible_radius() < before / 3
    assert np.linalg.norm(estimate.point - items.coordinates[3]) < 1.2 * estimate.credible_radius()
    assert "Recommendation" in capsys.readouterr().out

    names["vectors"] = np.random.default_rng(0).normal(size=(50, 200))
    exec(compile(BLOCKS[2], "tutorial.md", "exec"), names)
    assert names["items"].d == 4


def test_simulated_people_are_found_in_a_learned_embedding(truth):
    """The favourites of people in the true space come out on top in the learned embedding."""
    real = ps.Logistic(4.0, "normalized")
    train, held = simulate_triplets(truth, 12_000, 1, response=real).split(0.2, 0)
    items = ps.embed.CKL(n_components=2, random_state=0).fit(train).to_items(scaled=True)
    response = ps.embed.fit_noise(items, held, folds=None).response
    ranks = []
    for person in range(6):
        point = np.random.default_rng([person, 1]).uniform(-1, 1, 2)
        user = ps.SimulatedUser(point, real, rng=person)
        search = ps.Search(items, response=response, posterior=ps.Particles(1000), stop=ps.AfterAnswers(30), rng=person)
        while search.finished is None:
            query = search.ask()
            search.tell(query, winner=user.answer(truth, query))
        best = search.recommend(1)[0].id
        order = np.argsort(((truth.coordinates - point) ** 2).sum(axis=1))
        ranks.append(order.tolist().index(truth.index(best)))
    # By chance the mean of six ranks of 80 is 39.5 with a standard deviation of 9.4.
    assert np.mean(ranks) < 12


def test_triplets_by_id_round_trip_through_files(truth, tmp_path):
    triplets = simulate_triplets(truth, 50, 1)
    triplets.to_csv(tmp_path / "t.csv")
    back = Triplets.from_csv(tmp_path / "t.csv", ids=truth.ids)
    assert np.array_equal(back.rows, triplets.rows)
