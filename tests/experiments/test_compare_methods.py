"""The mathematics of the rivals beside brute force, so that a rival is not beaten by a mistake of ours."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.special import entr, expit

import pairseek as ps
from helpers.compared import rated
from pairseek.experiments.comparison.methods.factors import ComponentLogistic, factor_analysis
from pairseek.experiments.comparison.methods.gaussian import GaussianItems
from pairseek.experiments.comparison.methods.glis import PreferenceGlis, surrogate_weights
from pairseek.experiments.comparison.methods.linear_taste import LinearTaste, expected_logistic, information, laplace
from pairseek.experiments.comparison.methods.logistic import VectorLogistic
from pairseek.experiments.comparison.methods.neighbours import Ease, QuestionTree
from pairseek.experiments.comparison.methods.others import factor_of, log_odds_won, utility_moments, utility_table
from pairseek.experiments.comparison.methods.popularity import LikedAverage
from pairseek.experiments.comparison.methods.qdrant import qdrant_scores
from pairseek.experiments.comparison.simulated import SimulatedPeople


def begun(factors, offset=None, questions="random"):
    method = LinearTaste(questions=questions)
    method.set_prior(np.zeros(len(factors)) if offset is None else offset, factors)
    return method


class TestLinearTaste:
    @pytest.mark.parametrize("seed", range(4))
    def test_laplace_is_the_mode_and_the_curvature_there(self, seed):
        rng = np.random.default_rng(seed)
        # Long slopes, for which Newton's full steps overshoot.
        slopes, offsets = 4.0 * rng.normal(size=(12, 3)), 2.0 * rng.normal(size=12)

        def energy(w):
            return np.sum(np.logaddexp(0.0, -(offsets + slopes @ w))) + 0.5 * w @ w

        mode, covariance = laplace(slopes, offsets)
        assert mode == pytest.approx(scipy.optimize.minimize(energy, np.zeros(3), tol=1e-12).x, abs=1e-4)
        chance = expit(offsets + slopes @ mode)
        precision = np.eye(3) + sum(c * (1 - c) * np.outer(s, s) for c, s in zip(chance, slopes, strict=True))
        assert covariance == pytest.approx(np.linalg.inv(precision))

    @pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.3, 0.25), (-2.0, 4.0), (0.4, 0.0)])
    def test_expectations_are_those_of_quadrature(self, mean, variance):
        def average(f):
            if variance == 0.0:
                return f(mean)
            density = lambda z: np.exp(-0.5 * (z - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)  # noqa: E731
            return scipy.integrate.quad(lambda z: f(z) * density(z), mean - 30, mean + 30, points=[mean])[0]

        entropy = lambda p: entr(p) + entr(1 - p)  # noqa: E731
        chance = average(expit)
        given = np.array([mean]), np.array([variance])
        assert expected_logistic(*given)[0] == pytest.approx(chance, abs=2e-4)
        exact = entropy(chance) - average(lambda z: entropy(expit(z)))
        assert information(*given)[0] == pytest.approx(exact, abs=5e-4)

    def test_the_best_of_two_is_asked_by_eubo(self):
        rng = np.random.default_rng(0)
        method = begun(rng.normal(size=(6, 3)), rng.normal(size=6), "eubo")
        method.tell((0, 3), 3)
        pairs = np.array([(a, b) for a in range(6) for b in range(a + 1, 6)])
        drawn = rng.multivariate_normal(method._mean, method._covariance, 200_000) @ method.factors.T + method.offset
        best = pairs[np.argmax([np.maximum(drawn[:, a], drawn[:, b]).mean() for a, b in pairs])]
        assert tuple(method.ask(pairs)) == tuple(best)

    def test_predictions_depend_on_who_won_and_not_on_the_order_of_sides(self):
        rng = np.random.default_rng(1)
        factors = rng.normal(size=(5, 2))
        found = []
        for pair in ((1, 2), (2, 1)):
            method = begun(factors)
            method.tell(pair, 2)
            method.tell((0, 4), None)
            found.append(method.predict(np.array([[2, 1], [1, 2], [0, 3]])))
        assert np.array_equal(*found)
        assert found[0][0] > 0.5
        assert found[0][0] + found[0][1] == pytest.approx(1.0)


class TestOthers:
    def test_utilities_are_ratings_less_what_a_person_adds_to_all(self):
        rng = np.random.default_rng(0)
        taste, shift = np.arange(6.0), 3 * rng.normal(size=40)
        rows = [
            (f"p{p}", i, taste[i] + shift[p]) for p in range(40) for i in range(6) if i == p % 6 or rng.random() < 0.5
        ]
        table = utility_table(ps.Choices.from_ratings(rows, ids=range(6)))
        # Whoever rated the best items only is not taken for somebody who likes everything.
        expected_logistic = (taste - taste.mean()) / np.nanstd(np.where(np.isfinite(table), taste, np.nan))
        assert np.isnan(table).any()
        assert np.nanmax(np.abs(table - expected_logistic)) < 0.1
        assert np.nanmean(table**2) == pytest.approx(1.0)

    def test_utilities_of_pairs_are_in_the_order_of_wins(self):
        choices = ps.Choices.from_rankings({"u": ["b", "a", "c"], "v": ["c", "b"]})
        pairs = choices.rows(np.ones(len(choices), dtype=bool))
        table = utility_table(pairs)
        assert table[0, 1] > table[0, 0] > table[0, 2]
        assert np.isnan(table[1, 0])
        assert table[1, 2] > table[1, 1]

    def test_moments_are_those_of_the_people_who_rated_both(self):
        choices = rated(people=300, missing=0.2)
        mean, covariance = utility_moments(choices)
        table = utility_table(choices)
        both = np.isfinite(table[:, 0]) & np.isfinite(table[:, 8])
        naive = np.mean((table[both, 0] - mean[0]) * (table[both, 8] - mean[8]))
        assert mean == pytest.approx(np.nanmean(table, axis=0))
        # The eigenvalues below 0 that are cut off move an entry a little.
        assert covariance[0, 8] == pytest.approx(naive, abs=0.05)
        assert np.linalg.eigvalsh(covariance).min() > -1e-12
        root = factor_of(covariance)
        assert root @ root.T == pytest.approx(covariance, abs=1e-6)

    def test_popularity_counts_wins(self):
        choices = ps.Choices.from_pairs([("u", "a", "b"), ("v", "a", "b"), ("w", "b", "a")])
        assert log_odds_won(choices) == pytest.approx(np.log([3 / 2, 2 / 3]))


class TestFactors:
    def test_factor_analysis_recovers_a_covariance_of_two_factors(self):
        rng = np.random.default_rng(0)
        loadings = rng.normal(size=(10, 2))
        scores = rng.normal(size=(3000, 2)) @ loadings.T + 0.5 * rng.normal(size=(3000, 10)) + np.arange(10)
        seen = rng.random(scores.shape) < 0.8
        rows = [(f"p{p}", i, scores[p, i]) for p, i in zip(*np.nonzero(seen), strict=True)]
        rows = [(who, int(item), float(value)) for who, item, value in rows]
        choices = ps.Choices.from_ratings(rows, ids=range(10), most=3)
        mean, found, _ = factor_analysis(choices, 3)
        # What a person adds to all items is taken off: so is it from the truth.
        centre = np.eye(10) - 0.1
        truth = centre @ loadings @ loadings.T @ centre
        shape = found @ found.T
        shape, truth = shape / np.trace(shape), truth / np.trace(truth)
        assert np.linalg.norm(shape - truth) < 0.1 * np.linalg.norm(truth)
        assert np.corrcoef(mean, np.arange(10))[0, 1] > 0.99

    def test_all_components_together_are_the_covariance(self):
        choices = rated(people=200, missing=0.0)
        method = ComponentLogistic(components=9, scale=1.0)
        method.begin(choices.ids, None, choices)
        table = utility_table(choices)
        assert method.factors @ method.factors.T == pytest.approx(np.cov(table.T, bias=True))
        assert method.offset == pytest.approx(table.mean(axis=0))


class TestOneByOne:
    def test_the_gaussian_is_other_people_before_any_answer(self):
        data = SimulatedPeople("linear", people=400, items=8, appeal=1.5).dataset("x")
        method = GaussianItems()
        method.begin(data.choices.ids, None, data.choices)
        share = np.bincount(data.choices.winner, minlength=8) / np.bincount(data.choices.loser, minlength=8)
        pairs = np.stack(np.triu_indices(8, 1), axis=1)
        assert np.corrcoef(method.offset, np.log(share))[0, 1] > 0.98
        assert np.all((method.predict(pairs) > 0.5) == (method.offset[pairs[:, 0]] > method.offset[pairs[:, 1]]))

    def test_logistic_regression_is_the_penalized_fit(self):
        rng = np.random.default_rng(2)
        vectors = rng.normal(size=(7, 2))
        method = VectorLogistic(scale=0.5)
        method.begin(range(7), vectors, None)
        answers = [(0, 1), (2, 3), (0, 5), (6, 2)]
        for winner, loser in answers:
            method.tell((loser, winner), winner)
        z = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
        delta = np.array([z[a] - z[b] for a, b in answers])

        def loss(w):
            return np.sum(np.logaddexp(0, -delta @ w)) + np.sum(w**2) / (2 * 0.5**2)

        weights = scipy.optimize.minimize(loss, np.zeros(2), tol=1e-12).x
        chance = expit((z[4] - z[1]) @ weights)
        assert method.predict(np.array([[4, 1]])) == pytest.approx([chance], abs=1e-5)

    def test_the_average_of_liked_is_the_cosine_with_the_mean_of_winners(self):
        vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-1.0, 0.0]])
        method = LikedAverage(scale=2.0)
        assert method.knows == "vectors"
        method.begin(range(4), vectors, None)
        method.tell((0, 3), 0)
        method.tell((1, 3), 1)
        units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        assert method.utility == pytest.approx(2.0 * units @ ((units[0] + units[1]) / 2))

    def test_ease_is_the_regression_of_each_item_on_the_others(self):
        choices = rated(people=120, missing=0.0)
        weights = Ease(ridge=5.0).weights(choices)
        table = utility_table(choices)
        table = table - table.mean(axis=0)
        for item in range(9):
            rest = np.delete(table, item, axis=1)
            ridge = np.linalg.solve(rest.T @ rest + 5.0 * np.eye(8), rest.T @ table[:, item])
            assert np.delete(weights[:, item], item) == pytest.approx(ridge)

    def test_the_tree_asks_what_divides_two_groups_and_follows_the_answer(self):
        rows = [
            (f"p{p}", item, value if p % 2 else 6 - value) for p in range(20) for item, value in enumerate((5, 1, 3))
        ]
        choices = ps.Choices.from_ratings(rows)
        method = QuestionTree(error=0.1)
        method.begin(choices.ids, None, choices)
        pairs = np.array([[0, 1], [0, 2], [1, 2]])
        assert method.predict(pairs) == pytest.approx([0.5] * 3)
        assert tuple(method.ask(pairs)) == (0, 1)
        method.tell((0, 1), 0)
        assert method.predict(pairs) == pytest.approx([0.05 + 0.9 * 0.9, 0.05 + 0.9 * 0.9, 0.05 + 0.9 * 0.1])


class TestGlis:
    def begun(self, seed=0, answers=8):
        rng = np.random.default_rng(seed)
        vectors = rng.uniform(-1, 1, size=(14, 2))
        vectors[:4] = [[-1, -1], [-1, 1], [1, -1], [1, 1]]
        method = PreferenceGlis(width=1.3, exploration=0.7)
        method.begin(range(14), vectors, None)
        pairs = rng.permutation(np.stack(np.triu_indices(14, 1), axis=1))
        asked = []
        for _ in range(answers):
            pair = tuple(method.ask(pairs))
            pairs = pairs[np.any(pairs != pair, axis=1)]
            method.tell(pair, min(pair, key=lambda row: np.sum((vectors[row] - 0.3) ** 2)))
            asked.append(pair)
        return method, vectors, asked

    @pytest.mark.parametrize("seed", range(3))
    def test_the_surrogate_agrees_with_all_answers_that_agree_with_each_other(self, seed):
        method, vectors, asked = self.begun(seed)
        for pair in asked:
            winner = min(pair, key=lambda row: np.sum((vectors[row] - 0.3) ** 2))
            assert method.utility[winner] > method.utility[sum(pair) - winner]
        # After the random questions, each is about the best item so far.
        best = min({row for pair in asked for row in pair}, key=lambda row: np.sum((vectors[row] - 0.3) ** 2))
        assert best in asked[-1]

    def test_surrogate_and_acquisition_are_those_of_the_package(self, monkeypatch):
        pytest.importorskip("glis")
        pytest.importorskip("pyswarm")
        # The package imports `lhs` for initial samples, which a pool does not need, from a name that pydoe gave up.
        monkeypatch.setitem(sys.modules, "pyDOE", SimpleNamespace(lhs=None))
        from glis import solvers
        from glis.rbf import inverse_quadratic

        method, points, _ = self.begun(answers=6)
        shown = np.unique(method._answers)
        answers = np.searchsorted(shown, method._answers)
        theirs = solvers.GLISp((-np.ones(2), np.ones(2)), sepvalue=1.0)
        best = int(np.searchsorted(shown, method._best))
        basis = np.array([inverse_quadratic(points[shown], points[row], 1.3) for row in range(14)])
        weights = theirs.get_rbf_weights(basis[shown], len(shown), answers, np.empty((0, 2), int), best)
        own = surrogate_weights(basis[shown], answers, best)
        # The linear programme may have several minima, which have the same value.
        assert np.abs(own).sum() == pytest.approx(np.abs(weights).sum())
        assert method._surrogate == pytest.approx(basis @ own)
        spread = np.maximum(np.ptp(method._surrogate[shown]), 1e-4)
        for row in range(14):
            flags = np.ones(len(shown))
            value = solvers.facquisition_pref_surrogate(
                points[row], points[shown], basis[row], own, 0.7, spread, 0.0, 0.0, False, 6.0, 40.0, 0.0, False, False,
                flags, flags,
            )  # fmt: skip
            assert method.acquisition()[row] == pytest.approx(value)


def test_relevance_feedback_adds_the_pairs_of_examples_to_the_target():
    pytest.importorskip("qdrant_client")
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    answers = [(0, 1), (0, 2), (3, 0)]
    target = (2 * vectors[0] + vectors[3]) / 3
    share = {0: 2 / 3, 1: 0.0, 2: 0.0, 3: 1.0}
    naive = units @ target / np.linalg.norm(target)
    for a, first in share.items():
        for b, second in share.items():
            if first > second:
                naive += 0.4 * (first - second) * (units @ units[a] - units @ units[b])
    assert qdrant_scores(vectors, "feedback", 0.4)(answers) == pytest.approx(naive, abs=1e-5)
