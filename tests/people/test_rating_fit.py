"""The likelihoods of ratings and of ties: kernels against quadrature, and what is learned from simulated people."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit

import pairseek as ps
from helpers.populations import measured, rated
from pairseek.errors import InvalidChoices
from pairseek.people.population.data import PairData, Utilities
from pairseek.people.population.fit import data_of
from pairseek.people.population.rating_data import RatingData, to_levels
from pairseek.people.population.rating_kernels import QUADRATURE, tilted
from pairseek.people.population.shift import Shift


def gumbel(x):
    return np.exp(-np.exp(-x))


def chances(utility, cuts):
    """P(level) for each utility, levels last."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return np.diff(gumbel(ends - np.asarray(utility)[..., None]), axis=-1)


class TestTheKernels:
    @pytest.mark.parametrize("level", [0, 1, 2])
    @pytest.mark.parametrize(("mean", "deviation"), [(-1.3, 0.4), (0.2, 1.0), (1.5, 1.5)])
    def test_tilted_moments_agree_with_quadrature(self, level, mean, deviation):
        cuts = np.array([-0.4, 1.1])
        x = np.linspace(-9, 9, 20001)
        share = np.exp(-0.5 * x**2) * chances(mean + deviation * x, cuts)[:, level]
        total = share.sum()
        expected = [total / np.exp(-0.5 * x**2).sum(), share @ x / total]
        expected.append(share @ x**2 / total - expected[1] ** 2)
        out = np.zeros(6)
        ends = [(-1.0, np.exp(0.4)), (np.exp(0.4), np.exp(-1.1)), (np.exp(-1.1), 0.0)][level]
        tilted(mean, deviation, *ends, QUADRATURE, out)
        # Eleven nodes are off by up to 0.002 at a deviation of 1, and by 0.014 at 1.5.
        assert out[:3] == pytest.approx(expected, abs=3e-3 if deviation <= 1 else 2e-2)
        # E ∂log p/∂u = ∂log E p/∂mean.
        assert out[4] - out[3] == pytest.approx(expected[1] / deviation, abs=3e-2)

    def test_the_order_of_two_ratings_is_a_paired_choice(self):
        rng = np.random.default_rng(0)
        noise = rng.gumbel(size=(2, 200_000))
        # The share has a standard error of 0.001.
        assert np.mean(0.8 + noise[0] > noise[1]) == pytest.approx(expit(0.8), abs=0.004)

    def test_posteriors_and_evidence_agree_with_a_grid(self):
        rng = np.random.default_rng(1)
        base, factors, cuts = rng.normal(size=6), rng.normal(size=(6, 2)), np.array([-0.5, 0.9])
        rows = [(f"p{p}", f"i{i}", int(rng.integers(3))) for p in range(20) for i in range(6)]
        data = RatingData.of(ps.Choices.from_ratings(rows))
        model = Utilities(base, np.ascontiguousarray(np.column_stack([factors, np.ones(6)])), cuts)
        begin = data.prior(np.diag([1.0, 1.0, 0.5]))
        prior = Shift(0.3, np.zeros(2), np.zeros((2, 2)), 0.5).prior(np.eye(2), begin)
        posteriors = data.posteriors(model, *prior, begin, 30)
        x, weight = hermegauss(24)
        z = np.stack(np.meshgrid(x, x, 0.3 + np.sqrt(0.5) * x, indexing="ij"), axis=-1).reshape(-1, 3)
        weight = np.einsum("i,j,k->ijk", weight, weight, weight).ravel() / weight.sum() ** 3
        log_p = np.log(np.maximum(chances(base + z @ model.factors.T, cuts), 1e-300))
        for person in range(20):
            own = slice(data.starts[person], data.starts[person + 1])
            share = weight * np.exp(log_p[:, data.item[own], data.level[own]].sum(axis=1))
            mean = share @ z / share.sum()
            # EP of six ratings: the largest errors seen are 0.004, 0.01 and 0.02.
            assert posteriors.evidence[person] == pytest.approx(np.log(share.sum()), abs=0.01)
            assert posteriors.mean[person] == pytest.approx(mean, abs=0.03)
            covariance = (z - mean).T @ (share[:, None] * (z - mean)) / share.sum()
            assert posteriors.covariance[person] == pytest.approx(covariance, abs=0.05)

    def test_derivatives_are_those_of_the_evidence(self):
        rng = np.random.default_rng(2)
        rows = [(f"p{p}", f"i{i}", int(rng.integers(4))) for p in range(15) for i in range(5)]
        data = RatingData.of(ps.Choices.from_ratings(rows))
        base, factors, cuts = rng.normal(size=5), 0.6 * rng.normal(size=(5, 2)), np.array([-0.8, 0.3, 1.2])
        begin = data.prior(np.diag([1.0, 1.0, 0.4]))
        prior = Shift(0.0, np.zeros(2), np.zeros((2, 2)), 0.4).prior(np.eye(2), begin)
        column = np.ones((5, 1))

        def at(change, index, step):
            parts = [base.copy(), factors.copy(), cuts.copy()]
            parts[change][index] += step
            model = Utilities(parts[0], np.ascontiguousarray(np.hstack([parts[1], column])), parts[2])
            return model, data.posteriors(model, *prior, begin, 40)

        model, found = at(0, 0, 0.0)
        slopes = data.derivatives(model, found, np.ones(15), 3)
        pull = (cuts - data.thresholds()) / 100.0
        step = 1e-4
        for change, index, value in (
            (0, 2, slopes.slope[2, 0]),
            (1, (3, 0), slopes.slope[3, 1]),
            (1, (1, 1), slopes.slope[1, 2]),
            (2, 0, slopes.threshold_slope[0] + pull[0]),
            (2, 1, slopes.threshold_slope[1] + pull[1]),
        ):
            low, high = (at(change, index, sign * step)[1].evidence.sum() for sign in (-1.0, 1.0))
            # The quadrature with eleven nodes is off by up to 1 %.
            assert value == pytest.approx((high - low) / (2 * step), rel=0.03, abs=0.05)

    def test_points_agree_with_a_grid_where_the_shift_falls_with_the_square(self):
        rng = np.random.default_rng(7)
        base, factors, cuts = rng.normal(size=8), rng.normal(size=(8, 2)), np.array([1.4])
        rows = [(f"p{p}", f"i{i}", int(rng.random() < 0.25)) for p in range(30) for i in range(8)]
        data = RatingData.of(ps.Choices.from_ratings(rows))
        assert data.by_points
        model = Utilities(base, np.ascontiguousarray(np.column_stack([factors, np.ones(8)])), cuts)
        shift = Shift(0.3, np.array([0.2, -0.1]), np.array([[-1.2, 0.2], [0.2, -0.4]]), 0.1)
        found = data.prior(np.eye(3))
        for _ in range(4):
            found = data.weighted_posteriors(model, *shift.propose(data.people, np.eye(2), found.points), found)
        x, weight = hermegauss(30)
        z = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
        weight = np.einsum("i,j,k->ijk", weight, weight, weight).ravel() / weight.sum() ** 3
        z[:, 2] = shift.at(z[:, :2]) + np.sqrt(shift.variance) * z[:, 2]
        log_p = np.log(np.maximum(chances(base + z @ model.factors.T, cuts), 1e-300))
        evidence, mean, covariance = [], [], []
        for person in range(30):
            own = slice(data.starts[person], data.starts[person + 1])
            share = weight * np.exp(log_p[:, data.item[own], data.level[own]].sum(axis=1))
            evidence.append(np.log(share.sum()))
            mean.append(share @ z / share.sum())
            covariance.append((z - mean[-1]).T @ (share[:, None] * (z - mean[-1])) / share.sum())
        # 128 points: the largest errors seen are 0.04, 0.06 and 0.12.
        assert found.evidence == pytest.approx(np.array(evidence), abs=0.1)
        assert found.mean[:, :2] == pytest.approx(np.array(mean)[:, :2], abs=0.15)
        assert found.covariance[:, :2, :2] == pytest.approx(np.array(covariance)[:, :2, :2], abs=0.25)

    def test_derivatives_by_points_are_those_of_the_evidence(self):
        rng = np.random.default_rng(8)
        rows = [(f"p{p}", f"i{i}", int(rng.random() < 0.3)) for p in range(12) for i in range(6)]
        data = RatingData.of(ps.Choices.from_ratings(rows))
        parts = [rng.normal(size=6), 0.7 * rng.normal(size=(6, 2)), np.array([1.0])]
        shift = Shift(0.0, np.zeros(2), np.diag([-0.8, -0.3]), 0.2)
        proposed = shift.propose(data.people, np.eye(2), None)

        def at(change, index, step):
            base, factors, cuts = (part.copy() for part in parts)
            (base, factors, cuts)[change][index] += step
            model = Utilities(base, np.ascontiguousarray(np.column_stack([factors, np.ones(6)])), cuts)
            return model, data.weighted_posteriors(model, *proposed, data.prior(np.eye(3)))

        model, found = at(0, 0, 0.0)
        slopes = data.derivatives(model, found, np.ones(12), 3)
        pull = (parts[2] - data.thresholds()) / 100.0
        for change, index, value in (
            (0, 2, slopes.slope[2, 0]),
            (1, (3, 0), slopes.slope[3, 1]),
            (1, (1, 1), slopes.slope[1, 2]),
            (2, 0, slopes.threshold_slope[0] + pull[0]),
        ):
            low, high = (at(change, index, sign * 1e-4)[1].evidence for sign in (-1.0, 1.0))
            gradient = (high - low) / 2e-4
            assert value == pytest.approx(gradient.sum(), rel=1e-5, abs=1e-6)
            if change < 2:
                place = (index, 0, 0) if change == 0 else (index[0], 1 + index[1], 1 + index[1])
                assert slopes.fisher[place] == pytest.approx(np.sum(gradient**2), rel=1e-5)

    def test_a_newton_step_of_the_shift_raises_the_evidence(self):
        truth = rated(2, levels=2, people=150, newcomers=1)
        data = RatingData.of(truth.choices)
        factors = np.column_stack([data.first_factors(2), np.ones(data.n)])
        model = Utilities(np.zeros(data.n), np.ascontiguousarray(factors), data.thresholds())
        shift, evidence = Shift.none(2), []
        for _ in range(6):
            found = data.weighted_posteriors(model, *shift.propose(data.people, np.eye(2), None), data.prior(np.eye(3)))
            evidence.append(found.evidence.sum())
            slopes = data.shift_slopes(model, found.points)
            shift = shift.improved(found.points, *slopes, np.ones(data.people))
        assert np.all(np.diff(evidence) > -0.05)
        assert evidence[-1] > evidence[0] + 1.0

    def test_a_shift_in_other_coordinates_is_the_same(self):
        rng = np.random.default_rng(9)
        shift = Shift(0.4, rng.normal(size=2), np.array([[-1.0, 0.2], [0.2, 0.3]]), 0.5)
        centre, matrix = rng.normal(size=3), np.eye(3)
        matrix[:2, :2], matrix[2, :2] = rng.normal(size=(2, 2)), rng.normal(size=2)
        z = rng.normal(size=(5, 2))
        moved = (np.column_stack([z, shift.at(z)]) - centre) @ matrix.T
        assert shift.transformed(centre, matrix).at(moved[:, :2]) == pytest.approx(moved[:, 2])

    def test_a_shift_that_falls_with_the_square_is_found(self):
        rng = np.random.default_rng(3)
        z = rng.normal(size=(4000, 2))
        square = np.array([[-1.0, 0.3], [0.3, -0.4]])
        shift = 0.7 + z @ [0.5, -0.2] + 0.5 * np.einsum("pi,ij,pj->p", z, square, z) + 0.5 * rng.normal(size=4000)
        mean = np.column_stack([z, shift])
        found = PairData.of(ps.Choices.from_pairs([("u", "a", "b")])).prior(np.eye(3))
        found = type(found)(mean, np.tile(1e-6 * np.eye(3), (4000, 1, 1)), found.evidence, found.sites)
        fitted = Shift.of(found, np.ones(4000))
        # Standard errors are 0.5/sqrt(4000) = 0.008, and twice that for the coefficients of squares.
        assert fitted.constant == pytest.approx(0.7, abs=0.05)
        assert fitted.linear == pytest.approx([0.5, -0.2], abs=0.05)
        assert fitted.square == pytest.approx(square, abs=0.07)
        assert fitted.variance == pytest.approx(0.25, abs=0.03)


class TestLevels:
    def test_distinct_values_are_levels(self):
        level, count = to_levels(np.array([5.0, 1.0, 2.5, 5.0]))
        assert level.tolist() == [2, 0, 1, 2]
        assert count == 3

    def test_many_values_are_divided_into_twenty_levels(self):
        values = np.random.default_rng(0).normal(size=5000)
        level, count = to_levels(values)
        assert count == 20
        assert np.bincount(level) == pytest.approx(np.full(20, 250), abs=1)
        assert np.all(np.diff(level[np.argsort(values)]) >= 0)

    def test_ratings_are_fitted_as_ratings_and_rankings_as_pairs(self):
        rated_choices = ps.Choices.from_ratings([("u", "a", 2), ("u", "b", 1), ("v", "a", 1), ("v", "b", 1)])
        assert isinstance(data_of(rated_choices), RatingData)
        assert rated_choices.unusable == ()
        assert isinstance(data_of(ps.Choices.from_rankings({"u": ["a", "b"]})), PairData)
        assert data_of(rated_choices.only([1])).people == 1


class TestSimulatedRaters:
    @pytest.mark.parametrize("levels", [5, 3])
    def test_the_variance_of_people_and_the_intervals_of_newcomers_are_right(self, levels):
        truth = rated(1, levels=levels, people=400, newcomers=200)
        ratio, held, bias = measured(truth, ps.Population.fit(truth.choices, dimension=2), 1)
        # A variance of 400 people is known to 0.07, and of ratings with 3 levels to 0.15. Pairs without ties gave 1.7
        # and 3.3, and held 0.84 and 0.58.
        assert 0.75 < ratio < 1.35
        assert 0.89 < held < 0.98
        assert abs(bias) < 0.025

    def test_liked_or_not_finds_the_variance_of_people_and_knows_what_it_leaves_open(self, tmp_path):
        truth = rated(100, levels=2)
        population = ps.Population.fit(truth.choices, dimension=2)
        ratio, held, bias = measured(truth, population, 0)
        # Over 16 populations the ratio deviates by 0.2 and the share by 0.04. Gaussian posteriors gave 0.5 and 0.71.
        assert 0.65 < ratio < 1.5
        assert 0.85 < held < 0.99
        assert abs(bias) < 0.04
        assert population.utility_error is not None
        likes = np.bincount(truth.choices.ratings.item, truth.choices.ratings.value)
        rare = np.argsort(likes)
        # Items that few people like are known least.
        assert population.utility_error[rare[:6]].mean() > 1.2 * population.utility_error[rare[6:]].mean()
        population.save(tmp_path / "p.json")
        kept = ps.Population.load(tmp_path / "p.json")
        assert kept.utility_error == pytest.approx(population.utility_error)
        mean, deviation = kept.utility_belief(kept.mean, kept.covariance)
        assert mean.sum() == pytest.approx(0.0, abs=1e-9)
        assert np.all(deviation > 0.9 * kept.utility_error)

    def test_coordinates_cannot_be_learned_from_random_ratings(self):
        rng = np.random.default_rng(4)
        rows = [(p, i, int(np.clip(rng.integers(3) + p % 3, 0, 4))) for p in range(60) for i in range(10)]
        with pytest.raises(InvalidChoices):
            ps.Population.fit(ps.Choices.from_ratings(rows), dimension=2)

    def test_given_coordinates_and_ratings(self):
        rng = np.random.default_rng(5)
        points = rng.normal(size=(12, 2))
        who = rng.normal(size=(300, 2)) * [1.0, 0.6]
        score = 1.2 * who @ points.T - 0.6 * np.sum(points**2, axis=1) + rng.gumbel(size=(300, 12))
        level = np.digitize(score, [-2.0, 0.0, 1.5])
        rows = [(f"p{p}", f"i{i:02d}", level[p, i]) for p in range(300) for i in range(12)]
        choices = ps.Choices.from_ratings(rows)
        for settings in ({}, {"appeal": False}):
            population = ps.Population.fit(choices, ps.Items(points, choices.ids), residual=0.0, **settings)
            found = 4 * population.k**2 * np.asarray(population.covariance)
            # True: 1.44 and 0.52, each known to a tenth.
            assert np.diag(found) == pytest.approx([1.44, 0.52], rel=0.3)


class TestTies:
    def test_their_width_is_learned_and_kept(self, tmp_path):
        rng = np.random.default_rng(6)
        n, people, width = 10, 300, 0.8
        factors, base = rng.normal(size=(n, 2)), rng.normal(size=n)
        decided, tied = [], []
        for person in range(people):
            utility = base + factors @ rng.normal(size=2)
            for _ in range(25):
                a, b = rng.choice(n, 2, replace=False)
                logit = utility[a] - utility[b]
                draw = rng.random()
                if draw < expit(logit - width):
                    decided.append((person, a, b))
                elif draw < expit(logit - width) + expit(-logit - width):
                    decided.append((person, b, a))
                else:
                    tied.append((person, a, b))
        choices = ps.Choices.from_pairs(decided, tied=tied)
        population = ps.Population.fit(choices, dimension=2)
        # 7500 answers, a third of them ties, give a standard error of 0.02.
        assert population.tie_width == pytest.approx(width, abs=0.06)
        _, found = population.utilities()
        found = found - found.mean(axis=0)
        true = factors - factors.mean(axis=0)
        assert np.sum(found**2) / np.sum(true**2) == pytest.approx(1.0, abs=0.15)
        population.save(tmp_path / "p.json")
        assert ps.Population.load(tmp_path / "p.json").tie_width == population.tie_width
        assert population.response.tie_width == population.tie_width
        assert min(population.reliability(choices).values()) >= 0.0
        without = ps.Population.fit(ps.Choices.from_pairs(decided), dimension=2)
        assert without.tie_width == 0.0


@pytest.mark.long
@pytest.mark.parametrize("levels", [None, 5, 3, 2])
def test_many_populations_of_raters(levels):
    found = []
    for seed in range(8):
        truth = rated(seed, levels=levels)
        found.append(measured(truth, ps.Population.fit(truth.choices, dimension=2), seed))
    ratio, held, bias = np.mean(found, axis=0)
    # The means of two levels have standard errors of 0.07 and 0.014, of the others of 0.015 and 0.003.
    few = levels == 2
    assert (0.75 if few else 0.85) < ratio < 1.2
    assert (0.88 if few else 0.91) < held < 0.97
    assert abs(bias) < 0.02
