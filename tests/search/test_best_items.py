"""The probability that an item is the best: one number everywhere, and what is said against what is true."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from pairseek.search.best_items import best_items

K = {"constant": 0.6, "normalized": 3.0, "decaying": 10.0}


def claims(noise, appeal, users, *, asked, seed=0):
    """For each user, after 5 and 20 answers: the probability of the likeliest item, and whether it is the best.

    Users and reliabilities are drawn from the prior, so that what is said is right on average, whatever is asked.
    """
    rng = np.random.default_rng([seed, 3])
    n, d = 25, 2
    items = ps.Items(rng.normal(size=(n, d)), appeal=appeal * rng.normal(size=n))
    response = ps.Logistic(ps.Unknown(ps.LogNormal(K[noise], 1.0)), noise)
    out = np.empty((2, users, 2))
    for user in range(users):
        w = rng.normal(size=d)
        person = ps.Logistic(K[noise], noise, reliability=float(np.exp(rng.normal())))
        best = best_items(items, w[None], person)[0]
        search = ps.Search(items, response=response, prior=ps.GaussianPrior(0.0, 1.0), rng=user)
        for count in range(1, 21):
            query = search.ask() if asked else None
            i, j = rng.choice(n, 2, replace=False).tolist() if query is None else (query.left, query.right)
            pair = items.coordinates[[i]], items.coordinates[[j]], items.appeal[[i]] - items.appeal[[j]]
            slopes, offsets = person.planes(*pair)
            winner = i if rng.random() < person.probability(slopes @ w + offsets)[0] else j
            if query is None:
                search.observe(i, j, winner=winner)
            else:
                search.tell(query, winner=winner)
            if count in (5, 20):
                found = search.recommend(1)[0]
                out[int(count == 20), user] = found.probability, found.id == best
    return out


def assert_calibrated(out, deviations):
    for said, true in (part.T for part in out):
        error = np.sqrt(np.sum(said * (1 - said))) / len(said)
        assert abs(said.mean() - true.mean()) < deviations * error


def test_the_probability_of_the_best_item_is_right_for_an_unknown_k():
    # A standard error of 0.06 for 60 users; three of them have a chance of 3 in 1000 of being exceeded by chance.
    assert_calibrated(claims("normalized", 2.0, 60, asked=False), 3.0)


@pytest.mark.long
@pytest.mark.parametrize("appeal", [0.0, 2.0])
@pytest.mark.parametrize("noise", ["constant", "normalized"])
def test_the_probability_of_the_best_item_is_right_for_many_users(noise, appeal):
    # A standard error of about 0.02 for 500 users. Eight figures in all: beyond 3 errors with a chance of 2 in 100.
    assert_calibrated(claims(noise, appeal, 500, asked=False), 3.0)


@pytest.mark.long
def test_the_probability_of_the_best_item_is_right_where_the_search_asks():
    # Users are drawn from the prior, so that the choice of questions cannot mislead.
    assert_calibrated(claims("normalized", 2.0, 200, asked=True), 3.0)


@pytest.mark.parametrize("reliability", [0.1, 1.0, 10.0])
def test_the_best_item_does_not_depend_on_the_reliability(reliability):
    rng = np.random.default_rng(1)
    items, points = ps.Items(rng.normal(size=(30, 3)), appeal=rng.normal(size=30)), rng.normal(size=(50, 3))
    one, other = (best_items(items, points, ps.Logistic(0.7, reliability=r)) for r in (1.0, reliability))
    assert np.array_equal(one, other)


def test_the_expected_utility_is_that_of_the_reference_k():
    rng = np.random.default_rng(2)
    items = ps.Items(rng.normal(size=(12, 2)), appeal=rng.normal(size=12))
    search = ps.Search(items, response=ps.Logistic(ps.Unknown(ps.LogNormal(1.5, 1.0)), "constant"), rng=1)
    for winner, loser in ((0, 1), (2, 1), (0, 5), (7, 4)):
        search.observe(winner, loser, winner=winner)
    belief = search.belief
    for item in search.recommend(3):
        row = items.index(item.id)
        square = np.sum((items.coordinates[row] - belief.mean) ** 2) + np.trace(belief.covariance)
        assert item.expected_utility == pytest.approx(items.appeal[row] - 1.5 * square)


def test_in_many_dimensions_the_best_item_is_the_nearest_too():
    """Where distances are computed as products of matrices: far from zero, with and without appeal."""
    rng = np.random.default_rng(8)
    points = 100.0 + rng.normal(size=(300, 12))
    for appeal in (np.zeros(300), rng.normal(size=300)):
        items = ps.Items(points, appeal=appeal)
        people = 100.0 + rng.normal(size=(130, 12))
        away = np.sum((people[:, None] - points) ** 2, axis=2)
        expected = np.argmax(appeal - 0.4 * away, axis=1)
        assert np.array_equal(best_items(items, people, ps.Logistic(0.4, "constant")), expected)
    # Without noise constant only appeal counts, and the nearer of equals.
    level = np.round(rng.normal(size=300))
    best = best_items(ps.Items(points, appeal=level), people, ps.Logistic(0.0, "constant"))
    assert np.array_equal(best, np.argmin(np.where(level == level.max(), away, np.inf), axis=1))


@dataclass(frozen=True)
class Witness:
    """A stop rule that never stops, and keeps what `BestItemFound` would read."""

    seen: list = field(default_factory=list, compare=False)
    name: ClassVar[str] = "witness"

    def reached(self, progress):
        self.seen.append(progress.best_probability())

    def remaining(self, progress):
        return None


def scene(n=40, d=2, seed=0):
    return ps.Items(np.random.default_rng(seed).normal(size=(n, d)), [f"i{row}" for row in range(n)])


def chosen(items, people=30, seed=3):
    """Choices of people among these items."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(people):
        utility = -np.sum((rng.normal(size=items.d) - items.coordinates) ** 2, axis=1)
        for _ in range(12):
            a, b = rng.choice(items.n, 2, replace=False)
            wins = utility[a] > utility[b]
            rows.append((f"p{person}", items.ids[a if wins else b], items.ids[b if wins else a]))
    return ps.Choices.from_pairs(rows, ids=items.ids)


def told(search, answers=14):
    """Answer by the first coordinate of the items, or by their order where they have none."""
    for _ in range(answers):
        query, items = search.ask(), search.items
        rank = {side: items.coordinates[items.index(side)][0] if items.d else items.index(side) for side in items.ids}
        search.tell(query, winner=max((query.left, query.right), key=rank.get))
    return search


def replaced(search):
    """Move to a catalogue without some of the items shown, in another order and with new ones."""
    items, gone = search.items, {search.history[0].left, search.history[1].right}
    kept = [row for row in range(items.n - 1, -1, -1) if items.ids[row] not in gone]
    new = np.random.default_rng(5).normal(size=(6, items.d))
    points = np.concatenate([items.coordinates[kept], new])
    return search.moved_to(ps.Items(points, [*[items.ids[row] for row in kept], *[f"new{i}" for i in range(6)]]))


SEARCHES = {
    "default": lambda stop: told(ps.Search(scene(), stop=stop, rng=1)),
    "no answers": lambda stop: ps.Search(scene(), stop=stop, rng=1),
    "few items": lambda stop: told(ps.Search(scene(5), stop=stop, rng=1), 6),
    "two items": lambda stop: told(ps.Search(scene(2), stop=stop, rest=ps.Rest(pair=0), rng=1), 3),
    "no coordinates": lambda stop: told(ps.Search(ps.Items(ids=list(range(12))), stop=stop, rng=1)),
    "many items": lambda stop: told(ps.Search(scene(3000, 3), askable=100, stop=stop, rng=1), 5),
    "paper": lambda stop: told(ps.Search(scene(), response=ps.Logistic(1.0), stop=stop, rng=1)),
    "paper, unknown k": lambda stop: told(ps.Search(scene(), response=ps.Logistic(ps.Unknown()), stop=stop, rng=1)),
    "normalized residual": lambda stop: told(
        ps.Search(scene(), response=ps.Logistic(1.0, residual=0.8), stop=stop, rng=1)
    ),
    "particles": lambda stop: told(ps.Search(scene(), posterior=ps.Particles(400), stop=stop, rng=1)),
    "procedure": lambda stop: told(ps.Search(scene(), strategy=ps.ActRank(), stop=stop, rng=1)),
    "goal best": lambda stop: told(ps.Search(scene(), goal="best", stop=stop, rng=1)),
    "goal list": lambda stop: told(ps.Search(scene(), goal="list", stop=stop, rng=1)),
    "goal list, paper": lambda stop: told(ps.Search(scene(), goal="list", response=ps.Logistic(1.0), stop=stop, rng=1)),
    "population": lambda stop: told(
        ps.Search(scene(), population=ps.Population.fit(chosen(scene()), scene()), stop=stop, rng=1)
    ),
    "other catalogue": lambda stop: replaced(told(ps.Search(scene(), stop=stop, rng=1))),
    "other catalogue, goal best": lambda stop: replaced(told(ps.Search(scene(), goal="best", stop=stop, rng=1))),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_stop_rules_and_recommendations_have_one_probability(name):
    witness = Witness()
    search = SEARCHES[name]((witness,))
    n, best = search.items.n, search.recommend(1)[0]
    witness.seen.clear()
    assert search.finished is None
    assert witness.seen == [best.probability]
    # However many are asked for, an item has one probability, and those of all sum to 1.
    everything = {item.id: item.probability for item in search.recommend(n)}
    for found in (search.recommend(min(6, n)), search.recommend(min(4, n), diversity=0.3)):
        assert [everything[one.id] for one in found] == [one.probability for one in found]
    assert everything[best.id] == best.probability
    assert sum(everything.values()) == pytest.approx(1.0, abs=1e-9 if n < 2000 else 0.05)


def test_the_search_stops_at_the_probability_that_is_recommended():
    search = told(ps.Search(scene(5), rng=1), 4)
    probability = search.recommend(1)[0].probability
    for threshold, stops in ((probability - 1e-6, True), (probability + 1e-6, False)):
        again = ps.Search(scene(5), stop=ps.BestItemFound(threshold), rng=1)
        for event in search.history:
            again.observe(event.left, event.right, winner=event.winner)
        assert (again.finished is not None) == stops
        if stops:
            assert again.finished == f"one item is the best with probability {probability:.2f}"
