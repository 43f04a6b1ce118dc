"""Tests of residual utilities: inference against a dense Gaussian process, calibration, questions and results."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import pairseek as ps
from helpers.refusals import refused
from pairseek.errors import InvalidItems, NoPairLeft, Unsupported
from pairseek.numerics.jit import LOGISTIC
from pairseek.numerics.mixtures import WIDENED_TABLE_ERROR, table
from pairseek.numerics.tables import interpolate
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import residual_unit, typical_response
from pairseek.pairs.sources import ListedPairs
from pairseek.posteriors import gaussian
from pairseek.search.recommending import expected_utilities


def catalogue(n=12, d=2, seed=1):
    rng = np.random.default_rng(seed)
    return ps.Items(rng.normal(size=(n, d)), appeal=0.5 * rng.normal(size=n))


def answered(items, response, answers=25, seed=2, **settings):
    """Return a search after answers to random pairs of a simulated user whose point is the seed's."""
    rng = np.random.default_rng(seed)
    search = ps.Search(items, response=response, prior=ps.GaussianPrior(0.0, 0.7), rng=seed, **settings)
    user = ps.SimulatedUser(rng.normal(size=items.d) * 0.7**0.5, replace(search.response, tie_width=0.0), rng=seed)
    for number in range(answers):
        left, right = rng.choice(items.n, size=2, replace=False)
        query = ps.Query(f"q{number}", items.ids[left], items.ids[right])
        search.observe(query.left, query.right, winner=user.answer(items, query))
    return search


def dense(search, link=expit):
    """Return mean and covariance of all utilities by EP for a Gaussian process over all items, in its plainest form.

    The utility of an item but for a part common to all is g = appeal - k|x|² + 2k x·w + ε. Moments of an answer are by
    quadrature, and the whole covariance is inverted at every step.
    """
    items, response = search.items, search.response
    k, points = response.constant, items.coordinates
    centre, covariance = search.prior.moments(items.d)
    mean = items.appeal - k * np.sum(points**2, axis=1) + 2 * k * points @ centre
    prior = 4 * k * k * points @ covariance @ points.T + response.residual**2 * np.eye(items.n)
    rows = [(items.index(event.winner), items.index(event.loser)) for event in search.history]
    lines = np.zeros((len(rows), items.n))
    for line, (winner, loser) in zip(lines, rows, strict=True):
        line[winner], line[loser] = 1.0, -1.0
    sites = np.zeros((len(rows), 2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    precision = np.linalg.inv(prior)

    def whole():
        spread = np.linalg.inv(precision + np.einsum("m,mi,mj->ij", sites[:, 0], lines, lines))
        return spread @ (precision @ mean + lines.T @ sites[:, 1]), spread

    for _ in range(60):
        for j, line in enumerate(lines):
            middle, spread = whole()
            z, v = line @ middle, line @ spread @ line
            v0 = 1 / (1 / v - sites[j, 0])
            z0 = v0 * (z / v - sites[j, 1])
            places = z0 + np.sqrt(v0) * nodes
            mass = weights * link(places)
            tilted = mass @ places / mass.sum()
            variance = mass @ places**2 / mass.sum() - tilted**2
            sites[j] = 1 / variance - 1 / v0, tilted / variance - z0 / v0
    return whole()


@pytest.mark.parametrize(("kind", "link"), [(ps.Logistic, expit), (ps.Probit, norm.cdf)])
def test_the_belief_is_that_of_a_gaussian_process_over_all_items(kind, link):
    """Both ways of computing this approximation agree on the mean and variance of all logits, shown or not."""
    items = catalogue()
    search = answered(items, kind(0.6, "constant", residual=1.2), answers=9)
    mean, covariance = dense(search, link)
    first, second = np.triu_indices(items.n, 1)
    features = SelectionContext.of(items, search.belief, search.response).features(first, second)
    lines = np.eye(items.n)[first] - np.eye(items.n)[second]
    assert features.logit_mean == pytest.approx(lines @ mean, abs=2e-4)
    variance = np.einsum("mi,ij,mj->m", lines, covariance, lines)
    assert features.logit_deviation**2 == pytest.approx(variance, rel=2e-4)
    assert len(search.belief.residuals.rows) < items.n  # some were never shown


def test_the_reliability_scales_residual_utilities_with_the_rest_of_the_logit():
    items = catalogue()
    search = answered(items, ps.Logistic(0.6, "constant", residual=1.2, reliability=1.7), answers=9)
    same = ps.Search(
        ps.Items(items.coordinates, appeal=1.7 * items.appeal),
        response=ps.Logistic(1.7 * 0.6, "constant", residual=1.7 * 1.2),
        prior=search.prior,
        rng=1,
    ).continued(search.history)
    assert same.belief.mean == pytest.approx(search.belief.mean, abs=1e-6)
    for left, right in ((0, 1), (5, 9)):
        found, other = search.expect(left, right), same.expect(left, right)
        assert found.probability_left == pytest.approx(other.probability_left, abs=1e-6)
        assert found.information == pytest.approx(other.information, abs=1e-6)


@pytest.mark.parametrize("residual", [0.8, 2.5])
def test_ep_agrees_with_particles_in_the_joint_space(residual):
    """20,000 particles have errors of 1 % of a deviation and 2 % of a variance; EP has 3 % after sharp answers."""
    items = catalogue(9)
    by = {
        posterior.name: answered(
            items, ps.Logistic(1.5, "constant", residual=residual), answers=20, posterior=posterior
        ).belief
        for posterior in (ps.EP(), ps.Particles(20_000, sweeps=4))
    }
    ep, particles = by["ep"], by["particles"]
    assert ep.info.method == "ep"
    for found, other in ((ep, particles), (ep.residuals, particles.residuals)):
        deviation = np.sqrt(np.diag(other.covariance))
        assert np.abs(found.mean - other.mean) / deviation == pytest.approx(0, abs=0.06)
        assert np.diag(found.covariance) / deviation**2 == pytest.approx(1, abs=0.08)
    assert particles.residuals.samples.mean(axis=0) == pytest.approx(particles.residuals.mean, abs=0.1)
    assert ep.residuals.samples.std(axis=0) == pytest.approx(np.sqrt(np.diag(ep.residuals.covariance)), rel=0.12)


def test_the_truth_is_where_the_belief_says():
    """150 people with residual utilities, 25 answers each: logits of unseen pairs, in posterior deviations.

    Their mean square is 1 with a standard error below 0.1: each person gives five nearly independent values. Without
    the residual it is far above.
    """
    items = catalogue(14, seed=3)
    response = ps.Logistic(0.7, "constant", residual=1.0)
    squares = {1.0: [], 0.0: []}
    for person in range(150):
        rng = np.random.default_rng([5, person])
        point, residual = rng.normal(size=2) * 0.7**0.5, rng.normal(size=items.n)
        utility = items.appeal - 0.7 * np.sum((items.coordinates - point) ** 2, axis=1) + residual
        searches = {
            value: ps.Search(items, response=replace(response, residual=value), prior=ps.GaussianPrior(0.0, 0.7), rng=1)
            for value in squares
        }
        for _ in range(25):
            left, right = rng.choice(items.n, size=2, replace=False)
            won = left if rng.random() < expit(utility[left] - utility[right]) else right
            for search in searches.values():
                search.observe(int(left), int(right), winner=int(won))
        first, second = rng.permutation(items.n)[:10].reshape(2, 5)
        for value, search in searches.items():
            features = SelectionContext.of(items, search.belief, search.response).features(first, second)
            misses = (utility[first] - utility[second] - features.logit_mean) / features.logit_deviation
            squares[value].append(np.mean(misses**2))
    assert np.mean(squares[1.0]) == pytest.approx(1.0, abs=0.25)
    assert np.mean(squares[0.0]) > 2.0


def test_without_a_residual_nothing_changes():
    items = catalogue()
    plain, zero = (answered(items, ps.Logistic(0.6, **extra)) for extra in ({}, {"residual": 0.0}))
    assert plain.belief.residuals is None
    assert np.array_equal(plain.belief.mean, zero.belief.mean)
    assert plain.ask() == zero.ask()


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
@pytest.mark.parametrize("answers", [0, 8])
def test_the_best_of_all_pairs_is_the_best_of_a_list(noise, answers):
    """Among items not shown yet, branch and bound agrees with scoring every pair, to the stated gap."""
    items = ps.Items(np.random.default_rng(4).normal(size=(150, 2)))
    search = answered(items, ps.Logistic(2.0, noise, residual=1.0), answers, candidates=ps.AllPairs())
    query = search.ask()
    context = SelectionContext.of(items, search.belief, search.response, search.strategy)
    fresh = np.setdiff1d(np.arange(items.n), search.belief.residuals.rows)
    first, second = (fresh[rows] for rows in np.triu_indices(len(fresh), 1))
    best = context.scores(context.features(first, second)).max()
    assert query.info.gap == pytest.approx(WIDENED_TABLE_ERROR)
    assert query.info.utility >= best * (1 - 2 * WIDENED_TABLE_ERROR)
    assert ("not shown before" in query.info.candidates) == (answers > 0)


def test_a_table_with_a_variance_is_the_table_at_the_wider_deviation():
    rng = np.random.default_rng(1)
    values, wide = (table(LOGISTIC, "information", variance=variance) for variance in (0.0, 4.5))
    for m, s in zip(rng.uniform(0, 12, 400), rng.uniform(0, 20, 400), strict=True):
        exact = interpolate(values, m, np.sqrt(s * s + 4.5))
        assert interpolate(wide, m, s) == pytest.approx(exact, rel=WIDENED_TABLE_ERROR)
    assert np.all(np.diff(wide, axis=0) >= 0)
    assert np.all(np.diff(wide, axis=1) <= 0)


@pytest.mark.parametrize("noise", ["constant", "normalized"])
def test_the_best_item_is_that_of_brute_force(noise):
    """Against 40,000 joint draws. 1024 samples have a standard error of at most 0.016; three are allowed."""
    items = catalogue(10)
    search = answered(items, ps.Logistic(1.0, noise, residual=1.0), answers=12)
    belief, found = search.belief, search.belief.residuals
    size = items.d + len(found.rows)
    joint = np.empty((size, size))
    joint[: items.d, : items.d], joint[items.d :, items.d :] = belief.covariance, found.covariance
    joint[: items.d, items.d :], joint[items.d :, : items.d] = found.cross, found.cross.T
    rng = np.random.default_rng(3)
    drawn = rng.multivariate_normal(np.concatenate([belief.mean, found.mean]), joint, size=40_000, method="eigh")
    residual = rng.normal(size=(40_000, items.n))
    residual[:, found.rows] = drawn[:, items.d :]
    away = np.sum((drawn[:, None, : items.d] - items.coordinates) ** 2, axis=2)
    unit = residual_unit(items.coordinates, search.response)
    assert (unit == 1.0) == (noise == "constant")
    utility = items.appeal - away + unit * residual
    share = np.bincount(np.argmax(utility, axis=1), minlength=items.n) / 40_000
    chances = {item.id: item.probability for item in search.recommend(10)}
    assert [chances[name] for name in items.ids] == pytest.approx(share, abs=0.05)
    assert expected_utilities(items, belief, search.response) == pytest.approx(utility.mean(axis=0), abs=0.05)
    recommended = search.recommend(3)
    assert [item.id for item in recommended] == np.argsort(-utility.mean(axis=0))[:3].tolist()


def test_answers_about_an_item_are_about_this_item():
    """Someone who always takes item 0, against the coordinates, is predicted to take it again."""
    items = catalogue()
    away = [int(row) for row in np.argsort(-np.sum((items.coordinates - items.coordinates[0]) ** 2, axis=1))[:5]]
    by = {}
    for residual in (0.0, 1.5):
        search = ps.Search(items, response=ps.Logistic(0.5, "constant", residual=residual), rng=1)
        for row in away[:3]:
            search.observe(0, row, winner=0)
            search.observe(row, away[3], winner=row)
        by[residual] = search
    assert by[1.5].expect(0, away[3]).probability_left > by[0.0].expect(0, away[3]).probability_left
    assert by[1.5].recommend(1)[0].id == 0


class TestUnknowns:
    def test_an_unknown_k_is_inferred_beside_residual_utilities(self):
        """For people with a quarter and four times the typical reliability, k is inferred on the right side."""
        items = catalogue(14, seed=3)
        inferred = {}
        for factor in (0.25, 4.0):
            told = ps.Logistic(ps.Unknown(ps.LogNormal(0.7)), "constant", residual=1.0)
            person = ps.Logistic(0.7, "constant", residual=1.0, reliability=factor)
            ks = []
            for seed in range(6):
                search = answered(items, person, answers=40, seed=seed)
                other = ps.Search(items, response=told, prior=search.prior, rng=1).continued(search.history)
                ks.append(other.belief.reliability.typical_k)
            inferred[factor] = np.exp(np.mean(np.log(ks)))
        assert inferred[0.25] < 0.5 * 0.7
        assert inferred[4.0] > 1.5 * 0.7

    def test_lapses_leave_a_finite_belief_and_random_answers_are_recognised(self):
        items = catalogue(14, seed=3)
        response = ps.Logistic(ps.Unknown(ps.LogNormal(0.7)), "constant", lapse=ps.Unknown(), residual=1.0)
        search = ps.Search(items, response=response, rng=1)
        rng = np.random.default_rng(2)
        for _ in range(40):
            query = search.ask()
            search.tell(query, winner=query.left if rng.random() < 0.5 else query.right)
        assert np.all(np.isfinite(search.belief.covariance))
        assert search.estimate().reliability.agreement.median < 0.8
        assert search.belief.samples.shape[1] == items.d

    def test_a_typical_response_keeps_the_residual(self):
        told = ps.Logistic(ps.Unknown(ps.LogNormal(0.7)), "constant", residual=1.3, lapse=0.05)
        search = ps.Search(catalogue(), response=told, rng=1)
        assert typical_response(search.response, search.belief).residual == 1.3


class TestWithoutCoordinates:
    def test_a_search_finds_the_best_of_items_that_have_names_alone(self):
        """Among ten items, after 30 questions the pick is the best or second best for most simulated people."""
        items = ps.Items(ids=list("abcdefghij"))
        assert (items.n, items.d) == (10, 0)
        ranks = []
        for seed in range(20):
            utility = 2.0 * np.random.default_rng([7, seed]).normal(size=10)
            rng = np.random.default_rng([8, seed])
            search = ps.Search(items, rng=seed)
            for _ in range(30):
                query = search.ask()
                left, right = items.index(query.left), items.index(query.right)
                won = query.left if rng.random() < expit(utility[left] - utility[right]) else query.right
                search.tell(query, winner=won)
            ranks.append(int(np.sum(utility > utility[items.index(search.recommend(1)[0].id)])))
        assert np.mean(np.array(ranks) <= 1) > 0.7

    def test_the_belief_is_that_of_bradley_and_terry_with_a_gaussian_prior(self):
        items = ps.Items(ids=["x", "y", "z"])
        search = ps.Search(items, response=ps.Logistic(1.0, "constant", residual=1.5), rng=1)
        search.observe("x", "y", winner="x")
        search.observe("y", "z", winner="y")
        grid = np.linspace(-8, 8, 81)
        x, y, z = np.meshgrid(grid, grid, grid, indexing="ij")
        density = expit(x - y) * expit(y - z) * np.exp(-(x**2 + y**2 + z**2) / (2 * 1.5**2))
        density /= density.sum()
        assert search.belief.residuals.mean == pytest.approx([(density * u).sum() for u in (x, y, z)], abs=0.01)
        assert search.expect("x", "z").probability_left == pytest.approx((density * expit(x - z)).sum(), abs=0.01)

    def test_appeal_alone_orders_items_before_the_first_answer(self):
        items = ps.Items(ids=["a", "b", "c"], appeal=[0.0, 2.0, 1.0])
        search = ps.Search(items, rng=1)
        assert [item.id for item in search.recommend(3)] == ["b", "c", "a"]
        assert search.expect("b", "a").probability_left > 0.7

    def test_it_is_saved_copied_and_pickled(self, tmp_path):
        search = ps.Search(ps.Items(ids=["a", "b", "c", "d"]), rng=3)
        search.tell(search.ask(), winner=search.ask().left)
        search.save(tmp_path / "s.json")
        for same in (ps.Search.load(tmp_path / "s.json"), copy.copy(search), pickle.loads(pickle.dumps(search))):
            assert same.ask() == search.ask()
            assert np.array_equal(same.belief.residuals.mean, search.belief.residuals.mean)

    @pytest.mark.parametrize(
        ("response", "words"),
        [
            (ps.Logistic(1.0, residual=1.0), "normalized noise depends on them"),
            (ps.Logistic(1.0, "constant"), "no residual utilities"),
        ],
    )
    def test_items_without_coordinates_need_constant_noise_and_residual_utilities(self, response, words):
        with pytest.raises(Unsupported, match=words):
            ps.Search(ps.Items(ids=[1, 2]), response=response)

    @pytest.mark.parametrize("ids", [None, ["a"], "abc"])
    def test_items_without_coordinates_need_two_ids(self, ids):
        with refused("items", InvalidItems):
            ps.Items(ids=ids)


@pytest.mark.parametrize("residual", [-1, float("nan"), "1", ps.Unknown(), ps.Unknown(ps.LogNormal(1.0, 0.7))])
def test_an_invalid_residual_is_refused(residual):
    with refused("residual"):
        ps.Logistic(residual=residual)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ps.Search(ps.Space(-1, 1), response=ps.Logistic(1.0, residual=1.0)), "Space"),
        (lambda: ps.Search(catalogue(), response=ps.Logistic(1.0, residual=1.0), posterior=ps.Grid()), "Grid"),
        (
            lambda: ps.Search(ps.Items(np.eye(3)), response=ps.Logistic(noise=ps.Unknown(), residual=1.0)),
            "unknown noise kind",
        ),
    ],
)
def test_residual_utilities_that_cannot_be_inferred_are_refused(make, words):
    with pytest.raises(Unsupported, match=words):
        make()


def test_every_utility_asks_with_residuals_and_pairs_of_one_point_too():
    """Two items at one point differ in their residual utilities, so they may be compared."""
    points = np.random.default_rng(1).normal(size=(8, 2))
    items = ps.Items(np.concatenate([points, points[:2]]))
    for strategy in (ps.InfoGain(), ps.EPMV(), ps.MCMV(), ps.GreedyMSE(), ps.GreedyVolume(), ps.Random()):
        for response in (ps.Logistic(2.0, residual=1.0), ps.Logistic(2.0, "constant", residual=1.0, tie_width=0.5)):
            search = ps.Search(items, response=response, strategy=strategy, rng=1)
            for _ in range(3):
                query = search.ask()
                assert np.isfinite(query.info.information)
                assert query.info.information > 0
                search.tell(query, winner=query.left)
    only = ps.Search(
        items, response=ps.Logistic(2.0, "constant", residual=1.0), candidates=ListedPairs([(0, 8)]), rng=1
    )
    assert {only.ask().left, only.ask().right} == {0, 8}
    with pytest.raises(NoPairLeft):
        ps.Search(items, response=ps.Logistic(2.0, "constant"), candidates=ListedPairs([(0, 8)]), rng=1).ask()


def test_a_simulated_user_has_one_residual_utility_for_each_item():
    items = ps.Items(np.arange(40.0)[:, None])
    user = ps.SimulatedUser(np.zeros(1), ps.Logistic(1e-12, "constant", residual=20.0), rng=4)
    # Utilities this far apart leave no noise: answers are transitive, and differ between users.
    wins = np.zeros(40)
    for left in range(40):
        for right in range(left):
            wins[user.answer(items, ps.Query(f"{left}-{right}", left, right))] += 1
    assert len(set(wins)) > 25  # 40 if no two were near each other, about 14 if answers were random
    other = ps.SimulatedUser(np.zeros(1), ps.Logistic(1e-12, "constant", residual=20.0), rng=5)
    assert any(
        user.answer(items, ps.Query("q0", 0, row)) != other.answer(items, ps.Query("q0", 0, row)) for row in range(1, 9)
    )


def test_information_about_the_point_is_what_is_left_when_residual_utilities_are_integrated_out():
    """I(w; y) = h(E P) - E h(P(y | w)) by quadrature over both parts of the logit, which are independent here."""
    items = ps.Items([[-1.0], [1.0], [3.0]])
    search = ps.Search(
        items, response=ps.Logistic(0.5, "constant", residual=1.2), prior=ps.GaussianPrior(0.4, 0.8), rng=1
    )
    features = SelectionContext.of(items, search.belief, search.response).features(np.array([0]), np.array([1]))
    u = np.linspace(-7, 7, 281)
    weights = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
    # The logit is -2 w, and both residual utilities have standard deviation 1.2.
    z = -2.0 * (0.4 + np.sqrt(0.8) * u)[:, None] + 1.2 * np.sqrt(2) * u
    given = expit(z) @ weights

    def entropy(p):
        return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))

    exact = entropy(weights @ given) - weights @ entropy(given)
    assert features.point_information()[0] == pytest.approx(exact, rel=0.01)
    assert features.tabulated("information")[0] > 1.5 * exact


def test_a_stop_rule_by_information_is_about_the_point():
    """Every new pair of a large catalogue is informative about two more residual utilities, without end."""
    items = ps.Items(np.random.default_rng(2).normal(size=(400, 2)))
    response = ps.Logistic(3.0, residual=1.0)
    search = ps.Search(items, response=response, stop=ps.InformationBelow(0.02), rng=1)
    user = ps.SimulatedUser([0.3, -0.5], search.response, rng=2)
    while search.finished is None and search.answers < 150:
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    assert 5 < search.answers < 150
    assert "bits" in search.finished


def test_the_number_of_threads_changes_nothing(on_threads):
    items = catalogue(40, 3)

    def found():
        search = answered(items, ps.Logistic(0.8, "constant", residual=1.5), answers=30)
        belief = search.belief
        arrays = (belief.mean, belief.covariance, belief.samples, belief.residuals.covariance, belief.residuals.samples)
        return [array.tobytes() for array in arrays], search.ask(), search.recommend(5)

    assert on_threads(1, found) == on_threads(2, found)


def test_a_search_among_items_has_a_residual_by_default(tmp_path):
    items = ps.Items(np.random.default_rng(2).normal(size=(12, 2)))
    search = ps.Search(items, rng=1)
    assert search.response.residual == 1.5
    search.tell(search.ask(), winner=search.ask().left)
    search.save(tmp_path / "search.json")
    loaded = ps.Search.load(tmp_path / "search.json")
    assert loaded.response == search.response
    assert loaded.ask() == search.ask()
    assert ps.Search(items, response=ps.Logistic()).belief.residuals is None
    with pytest.warns(ps.DefaultWarning, match="Grid cannot infer residual utilities"):
        assert ps.Search(items, posterior=ps.Grid(9)).belief.residuals is None
    assert ps.Search(ps.Space([-1, -1], [1, 1])).response.residual is None


@pytest.mark.parametrize(("n", "answers", "residual"), [(200, 25, 1.5), (2000, 30, 1.0), (30, 20, 0.8)])
def test_residual_utilities_of_one_answer_are_integrated_out_without_a_change(monkeypatch, n, answers, residual):
    def inferred():
        rng = np.random.default_rng(3)
        items = ps.Items(rng.normal(size=(n, 3)))
        search = ps.Search(items, response=ps.Logistic(0.8, "constant", residual=residual), rng=1)
        for _ in range(answers):
            a, b = rng.choice(n, 2, replace=False).tolist()
            search.observe(a, b, winner=a if rng.random() < 0.7 else b)
        return search.belief

    found = inferred()
    without_private = gaussian.without_private

    def with_private_parts(slopes, unit, first, sites):
        assert first < len(unit)
        return without_private(slopes, unit, len(unit), sites)

    monkeypatch.setattr(gaussian, "without_private", with_private_parts)
    whole = inferred()
    assert not np.array_equal(found.mean, whole.mean)
    # Up to the tolerance of the sweeps.
    assert found.mean == pytest.approx(whole.mean, abs=1e-3)
    assert found.covariance == pytest.approx(whole.covariance, abs=1e-3)
    assert found.residuals.mean == pytest.approx(whole.residuals.mean, abs=2e-3)
    assert found.residuals.covariance == pytest.approx(whole.residuals.covariance, abs=2e-3)
    assert found.residuals.cross == pytest.approx(whole.residuals.cross, abs=1e-3)


def test_points_are_the_leading_coordinates_of_the_samples_with_their_residual_utilities():
    items = ps.Items(np.random.default_rng(0).normal(size=(50, 3)))
    search = ps.Search(items, response=ps.Logistic(0.8, "constant", residual=1.0), rng=1)
    for row in range(8):
        search.observe(row, row + 9, winner=row)
    belief = search.belief
    joint = belief.sample_source.joint
    assert len(joint.samples) == len(belief.samples)
    assert belief.samples == pytest.approx(joint.samples[:, :3], abs=1e-12)
    # The joint samples reproduce the covariance of points and residual utilities, up to the error of 2048 points.
    rows = [belief.residuals.rows.tolist().index(row) for row in (0, 9)]
    cross = np.cov(np.column_stack([belief.samples, belief.residuals.samples[:, rows]]), rowvar=False)[:3, 3:]
    assert cross == pytest.approx(belief.residuals.cross[:, rows], abs=0.05)


def test_an_answer_about_two_items_at_one_point_tells_of_their_residual_utilities():
    response = ps.Logistic(1.0, "constant", residual=1.5)
    beside = ps.Items([[0.0], [0.0], [1.0], [2.0]], ids=["a", "b", "c", "d"])
    found, alone = (ps.Search(items, response=response, rng=1) for items in (beside, ps.Items(ids=list(beside.ids))))
    for search in (found, alone):
        search.observe("a", "b", winner="a")
    assert alone.belief.residuals.mean[0] > 0.3
    assert found.belief.residuals.mean == pytest.approx(alone.belief.residuals.mean, abs=1e-3)
    assert found.belief.residuals.covariance == pytest.approx(alone.belief.residuals.covariance, abs=1e-3)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_credible_radius_is_that_of_many_draws(level):
    """1024 points with exact moments: the error was at most 2 % in 36 cases; 100,000 draws have below 1 %."""
    rng = np.random.default_rng(6)
    items = ps.Items(rng.standard_normal((200, 4)))
    response = ps.Logistic(0.5, "constant", residual=1.5, curvature=ps.Unknown())
    search = ps.Search(items, response=response, rng=1)
    user = ps.SimulatedUser(items.coordinates[3], ps.Logistic(2.0), rng=2)
    for _ in range(6):
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    estimate = search.estimate()
    drawn = rng.multivariate_normal(estimate.belief.mean, estimate.belief.covariance, 100_000)
    distances = np.linalg.norm(drawn[:, :4] - estimate.point, axis=1)
    assert estimate.credible_radius(level) == pytest.approx(np.quantile(distances, level), rel=0.05)


class OwnPrior:
    """A user's own prior: not hashable, with a centre that may be moved."""

    name = "own"
    __hash__ = None

    def __init__(self, centre):
        self.centre = centre

    def __getattr__(self, name):
        return getattr(ps.GaussianPrior(self.centre, np.eye(2)), name)


def test_a_prior_of_ones_own_needs_no_hash_and_may_change():
    items = ps.Items(np.random.default_rng(0).normal(size=(30, 2)))
    events = [ps.Event(0, 1, "answer", 0, None), ps.Event(2, 3, "answer", 2, None)]

    def point(prior):
        search = ps.Search(items, prior=prior, response=ps.Logistic(k=3.0, residual=0.5), rng=1)
        return search.continued(events).estimate().point

    prior = OwnPrior(np.zeros(2))
    before = point(prior)
    assert np.array_equal(before, point(ps.GaussianPrior(np.zeros(2), np.eye(2))))
    prior.centre = np.array([3.0, 3.0])
    assert np.array_equal(point(prior), point(ps.GaussianPrior(np.array([3.0, 3.0]), np.eye(2))))
    assert np.linalg.norm(point(prior) - before) > 1.0
