"""The health check on catalogues with one problem each: its findings and advice."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pairseek as ps
from pairseek.embed import check as full_check
from pairseek.embed import simulate_triplets
from pairseek.embed.health_page import write_health
from pairseek.errors import InvalidFile, InvalidParameter, InvalidTriplets


def check(items, triplets=None, **settings):
    """Check with one simulated person, which is enough unless the test is about answers."""
    return full_check(items, triplets, **{"people": 1, **settings})


def normal(n=300, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def finding(health, name):
    return next(finding for finding in health.findings if finding.name == name)


def test_a_sound_catalogue_needs_no_action():
    health = check(ps.Items(normal()))
    assert health.good
    assert health.numbers["items"] == 300
    assert health.numbers["prior_covers_items"]
    assert finding(health, "near-duplicates").found == "none"
    assert 2 <= health.numbers["expected_answers"] <= 40
    assert json.loads(json.dumps(health.record()))["good"] is True


def test_near_duplicates_are_counted_and_named():
    points = normal()
    points[7] = points[5]
    points[9] = points[8] + 1e-6
    health = check(ps.Items(points, labels=[f"wine {i}" for i in range(300)]))
    assert np.flatnonzero(health.duplicates).tolist() == [5, 7, 8, 9]
    duplicates = finding(health, "near-duplicates")
    assert "such as wine 5 and wine 7" in duplicates.found
    assert duplicates.level == "note"
    assert "keep one of each" in duplicates.advice


def test_outliers_are_counted_and_named():
    points = normal()
    points[4] = [40.0, 0.0]
    health = check(ps.Items(points, labels=[f"wine {i}" for i in range(300)]))
    assert health.outliers[4]
    assert "wine 4" in finding(health, "outliers").found


def test_a_box_that_is_too_small_or_too_wide_is_found():
    items = ps.Items(normal())
    inside = np.all(np.abs(items.coordinates) <= 1, axis=1).mean()
    health = check(items, prior=ps.UniformBox(-1, 1))
    assert health.numbers["outside_prior"] == pytest.approx(1 - inside)
    assert not health.numbers["prior_covers_items"]
    assert "outside the box from -1 to 1" in finding(health, "prior").found
    wide = finding(check(items, prior=ps.UniformBox(-50, 50)), "prior")
    assert (wide.level, "three times as wide" in wide.found) == ("act", True)
    assert "without bounds" in finding(check(items, prior=ps.GaussianPrior()), "prior").found


def test_flat_and_narrow_directions_are_found():
    points = normal(d=3)
    flat = finding(
        check(ps.Items(np.column_stack([points[:, :2], points[:, :2].sum(axis=1)]))), "spread along each direction"
    )
    assert (flat.level, "PCA to 2 dimensions" in flat.advice) == ("act", True)
    with pytest.warns(ps.ScaleWarning):
        items = ps.Items(points * [1, 1, 0.01])
    narrow = finding(check(items), "spread along each direction")
    assert (narrow.level, "try 2 dimensions" in narrow.advice) == ("note", True)


def test_too_few_items():
    assert finding(check(ps.Items(normal(n=12, d=3))), "size").level == "act"


def test_hopeless_noise_makes_pairs_uninformative():
    health = check(ps.Items(normal()), response=ps.Logistic(0.01, "normalized"))
    assert finding(health, "informative pairs").level == "act"
    assert finding(health, "predicted agreement").level == "act"
    assert finding(health, "expected answers").level == "act"
    assert not health.good


def test_perfect_people_are_doubted():
    health = check(ps.Items(normal()), response=ps.Logistic(500.0, "normalized"))
    assert "rarely this reliable" in finding(health, "predicted agreement").advice


def test_information_and_agreement_match_a_naive_loop():
    items = ps.Items(normal(n=40))
    response = ps.Logistic(2.0, "normalized")
    health = check(items, response=response)
    prior = health.prior
    users = np.random.default_rng(1).multivariate_normal(*prior.moments(2), size=3000)
    rng = np.random.default_rng(2)
    bits, agree = [], []
    for _ in range(300):
        p, q = items.coordinates[rng.choice(40, 2, replace=False)]
        logits = 2.0 * (((users - q) ** 2).sum(1) - ((users - p) ** 2).sum(1)) / (2 * np.linalg.norm(p - q))
        chance = 1 / (1 + np.exp(-logits))
        h = lambda x: -(x * np.log2(x) + (1 - x) * np.log2(1 - x))  # noqa: E731
        bits.append(h(chance.mean()) - h(chance).mean())
        agree.append(np.maximum(chance, 1 - chance).mean())
    # 300 pairs against 4000: three standard errors of the smaller sample.
    assert health.information.mean() == pytest.approx(np.mean(bits), abs=3 * np.std(bits) / np.sqrt(300))
    assert health.numbers["agreeing_answers"] == pytest.approx(np.mean(agree), abs=3 * np.std(agree) / np.sqrt(300))


def test_triplets_determine_the_noise_and_the_observed_agreement():
    items = ps.Items(normal())
    triplets = simulate_triplets(items, 20_000, 1, response=ps.Logistic(2.5, "normalized"))
    health = check(items, triplets)
    assert (health.response.name, health.response.noise) == ("logistic", "normalized")
    assert health.response.k == pytest.approx(2.5, abs=3 * health.noise.standard_error)
    numbers = health.numbers
    assert numbers["triplet_error"] == pytest.approx(1 - numbers["predicted_triplet_agreement"], abs=0.01)
    assert finding(health, "agreement with the triplets").level == "good"
    assert health.calibration[:, 2].sum() == 20_000
    predicted, observed, counts = health.calibration.T
    assert np.all(np.abs(observed - predicted) < 4 * np.sqrt(0.25 / counts))


def test_triplets_that_do_not_belong_to_the_items():
    items = ps.Items(normal())
    other = simulate_triplets(ps.Items(normal(seed=9)), 5000, 1)
    agreement = finding(check(items, other), "agreement with the triplets")
    assert agreement.level == "act"
    assert "embed again" in agreement.advice or "k runs to zero" in agreement.advice.lower()


def test_separable_triplets_do_not_make_people_perfect():
    items = ps.Items(normal())
    health = check(items, simulate_triplets(items, 3000, 1))
    assert "k runs to infinity" in finding(health, "agreement with the triplets").advice.lower()
    assert health.response.k < 100


def test_items_with_few_triplets_are_named():
    items = ps.Items(normal(n=50), labels=[f"wine {i}" for i in range(50)])
    triplets = simulate_triplets(items, 3000, 1, response=ps.Logistic(2.0, "normalized"))
    few = triplets.take(~(triplets.rows == 13).any(axis=1))
    coverage = finding(check(items, few), "triplets")
    assert coverage.level == "note"
    assert (coverage.values["count"], coverage.values["names"]) == (1, "wine 13")
    assert "wine 13" in coverage.advice


def test_the_expected_answers_are_close_to_those_of_full_searches():
    items = ps.Items(normal(n=100))
    response = ps.Logistic(2.0, "normalized")
    health = check(items, response=response, radius=1.2, people=9)
    counts = []
    for person in range(5):
        point = health.prior.sample(1, 2, np.random.default_rng(person))[0]
        search = ps.Search(items, response=response, prior=health.prior, stop=ps.RadiusBelow(1.2), rng=person)
        user = ps.SimulatedUser(point, response, rng=person)
        while search.finished is None:
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
        counts.append(search.answers)
    # Counts differ by a third between people, and the medians of nine and five people by about a fifth.
    assert health.numbers["expected_answers"] == pytest.approx(np.median(counts), rel=0.5)


def test_a_radius_already_reached_needs_no_answers():
    health = check(ps.Items(normal()), radius=100.0)
    assert health.numbers["expected_answers"] == 0


def test_invalid_settings_and_triplets_are_refused():
    items = ps.Items(normal())
    with pytest.raises(InvalidParameter) as caught:
        check(items, radius=-1)
    assert caught.value.field == "radius"
    with pytest.raises(InvalidParameter) as caught:
        check(items, people=0)
    assert caught.value.field == "people"
    with pytest.raises(InvalidTriplets):
        check(items, [[0, 1, 300]])


@pytest.mark.parametrize("d", [1, 3])
def test_the_page_is_self_contained(tmp_path, d):
    items = ps.Items(normal(d=d), labels=[f"<wine {i}>" for i in range(300)])
    points = items.coordinates.copy()
    points[1] = points[0]
    items = ps.Items(points, labels=items.labels)
    triplets = simulate_triplets(items, 3000, 1, response=ps.Logistic(2.0, "normalized"))
    for number, health in enumerate((check(items), check(items, triplets))):
        page = write_health(health, tmp_path / f"{number}.html").read_text()
        assert "&lt;wine 0&gt;" in page
        assert "<wine" not in page
        assert "data:image/svg+xml;base64," in page
        assert "http" not in page
        for finding in health.findings:
            assert finding.name in page
    with pytest.raises(InvalidFile):
        write_health(health, tmp_path / "none" / "page.html")
