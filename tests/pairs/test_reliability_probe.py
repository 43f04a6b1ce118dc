"""Unknown k and lapse: I(w; y) against nested sums, and the questions asked. The posterior: see test_mixture.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from helpers.reference import (
    naive_best_pair,
    naive_entropy,
    naive_logit,
    naive_probability,
    reliability_grid,
    reliability_information,
)
from helpers.refusals import refused
from helpers.situations import reliable_belief
from pairseek.numerics.mixtures import LAPSE_RATES, SPREADS, table
from pairseek.numerics.tables import interpolate
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import PairFeatures, typical_response
from pairseek.pairs.sources import ListedPairs, WeightedPairs
from pairseek.pairs.strategies import UTILITIES
from pairseek.pairs.strategies.reliability_probe import ReliabilityProbe

K = 3.0
UNKNOWN = ps.Unknown(ps.LogNormal(K, 1.0))
LAPSE = ps.Unknown(ps.Beta(1.0, 9.0))


def answers_of(rng, w, count, *, k=K, lapse=0.05, ties=False, appeal=False):
    """Return answers to random pairs in [-1, 1]^d."""
    out = []
    for _ in range(count):
        p, q = rng.uniform(-1, 1, size=(2, len(w))).tolist()
        shift = rng.normal() if appeal else 0.0
        chance = lapse / 2 + (1 - lapse) * naive_probability(naive_logit(w, p, q, k, "normalized", shift), "logistic")
        outcome = "first" if rng.random() < chance else "second"
        out.append((p, q, "tie" if ties and rng.random() < 0.2 else outcome, shift))
    return out


RESPONSES = {
    "k and lapse": ps.Logistic(UNKNOWN, lapse=LAPSE),
    "k alone": ps.Logistic(UNKNOWN),
    "k with a known lapse": ps.Logistic(UNKNOWN, lapse=0.1),
    "lapse alone": ps.Logistic(K, lapse=LAPSE),
    "constant noise": ps.Logistic(UNKNOWN, "constant", lapse=LAPSE),
    "decaying noise": ps.Logistic(UNKNOWN, "decaying", lapse=LAPSE),
    "probit": ps.Probit(UNKNOWN, lapse=LAPSE),
}


def grid_of(response, answers):
    """The posterior on a full grid."""
    k, lapse = response.k_prior, response.lapse_prior
    return reliability_grid(
        answers,
        K,
        response.noise,
        response.name,
        spread=None if k is None else k.spread,
        beta=None if lapse is None else (lapse.a, lapse.b),
        random=0.0 if lapse is None else lapse.random,
        lapse=0.0 if lapse is not None else response.lapse_rate,
    )


@pytest.fixture(scope="module", params=RESPONSES)
def one_dimension(request):
    """Return a response, its belief after 18 answers of all kinds, and the grid."""
    response = RESPONSES[request.param]
    answers = answers_of(np.random.default_rng(1), [0.3], 18, ties=True, appeal=True)
    return response, reliable_belief(response, answers), grid_of(response, answers)[:2]


class TestOneDimension:
    def test_the_information_is_about_the_point_alone(self, one_dimension):
        """h_b(E P) - E h_b(P) with P = P(y | w): k and lapse are integrated out given w."""
        response, belief, (axes, weights) = one_dimension
        rng = np.random.default_rng(2)
        points, appeal = rng.uniform(-1, 1, size=(8, 1)), 0.5 * rng.normal(size=8)
        i, j = np.triu_indices(8, 1)
        pairs = PairFeatures.of(points, i, j, belief=belief, response=typical_response(response, belief), appeal=appeal)
        exact, chance = ps.InfoGain().exact(pairs, belief), pairs.sampled(belief)[0]
        for row, (a, b) in enumerate(zip(i, j, strict=True)):
            shift = appeal[a] - appeal[b]
            bits, first = reliability_information(
                axes, weights, points[a], points[b], K, response.noise, response.name, shift
            )
            # 256 points, by systematic resampling: two standard errors of as many independent ones, for a probability
            # whose deviation over the belief is 0.35, are 0.045.
            assert chance[row] == pytest.approx(first, abs=0.045)
            assert exact[row] == pytest.approx(bits, abs=0.02)


@pytest.fixture(scope="module")
def three_dimensions():
    response = ps.Logistic(UNKNOWN, lapse=LAPSE)
    answers = answers_of(np.random.default_rng(3), [0.3, -0.4, 0.1], 20)
    return response, answers, reliable_belief(response, answers)


def test_information_agrees_with_nested_monte_carlo(three_dimensions):
    """Outer draws: samples of the belief. Inner: k and lapse from their priors, weighted by all answers at that w."""
    response, answers, belief = three_dimensions
    rng = np.random.default_rng(4)
    outer, inner = 400, 1500
    ks, lapses = K * np.exp(rng.normal(size=inner)), rng.beta(1.0, 9.0, size=inner)
    rows = rng.choice(len(belief.weights), size=outer, p=belief.weights)
    points = rng.uniform(-1, 1, size=(8, 3))
    chances = np.empty((outer, 4))
    for place, w in enumerate(belief.samples[rows].tolist()):
        logs = np.zeros(inner)
        for p, q, outcome, _ in answers:
            margin = naive_logit(w, p, q, 1.0, "normalized") * (1 if outcome == "first" else -1)
            logs += np.log(lapses / 2 + (1 - lapses) * expit(ks * margin))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        for pair in range(4):
            margin = naive_logit(w, points[2 * pair], points[2 * pair + 1], 1.0, "normalized")
            chances[place, pair] = weights @ (lapses / 2 + (1 - lapses) * expit(ks * margin))
    pairs = PairFeatures.of(
        points, np.arange(0, 8, 2), np.arange(1, 8, 2), belief=belief, response=typical_response(response, belief)
    )
    exact = ps.InfoGain().exact(pairs, belief)
    for pair in range(4):
        column = chances[:, pair]
        entropies = np.array([naive_entropy(p) for p in column])
        bits = naive_entropy(column.mean()) - entropies.mean()
        # Four standard errors of 400 outer draws and of the 256 samples.
        error = 4 * math.hypot(entropies.std() / 20, entropies.std() / 16) + 0.003
        assert exact[pair] == pytest.approx(bits, abs=error)
        # Information about k and lapse as well would be more, and does not count.
    joint = [
        naive_entropy(chances[:, pair].mean()) - told(belief, points[2 * pair], points[2 * pair + 1])
        for pair in range(4)
    ]
    assert np.all(np.array(joint) > exact)


def told(belief, p, q):
    """E h_b(P(y | w, k, lapse))."""
    known = belief.reliability
    gap = ((belief.samples - q) ** 2).sum(axis=1) - ((belief.samples - p) ** 2).sum(axis=1)
    chance = known.lapse / 2 + (1 - known.lapse) * expit(known.k / (2 * math.dist(p, q)) * gap)
    return float(belief.weights @ [naive_entropy(x) for x in chance])


class TestTables:
    def tabulated(self, m, s, spread, lapse):
        """Probability, information and explained variance of F(m + s u), by plain sums."""
        x, v = np.polynomial.hermite_e.hermegauss(60)
        u = np.linspace(-8, 8, 2001)
        w = np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum()
        f = lapse / 2 + (1 - lapse) * expit((m + s * u)[:, None] * np.exp(spread * x)) @ (v / v.sum())
        chance = w @ f
        bits = naive_entropy(chance) - w @ np.array([naive_entropy(p) for p in f])
        return chance, bits, (w @ (u * f)) ** 2 / (chance * (1 - chance))

    @pytest.mark.parametrize(("spread", "lapse"), [(0.3, 0.0), (0.63, 0.08), (1.0, 0.1), (0.0, 0.3), (0.1, 0.6)])
    def test_a_blend_is_near_the_integral(self, spread, lapse):
        for m, s in ((0.0, 0.1), (0.3, 0.5), (0.0, 2.0), (1.5, 1.0), (3.0, 2.0), (5.0, 6.0)):
            chance, bits, explained = self.tabulated(m, s, spread, lapse)
            found = [
                interpolate(table(0, name, spread, lapse), m, s) for name in ("probability", "information", "explained")
            ]
            assert found[0] == pytest.approx(chance, abs=0.003)
            assert found[1] == pytest.approx(bits, rel=0.03, abs=1e-4)
            assert found[2] == pytest.approx(explained, rel=0.03, abs=1e-4)

    @pytest.mark.parametrize("name", ["information", "explained", "log_volume"])
    def test_they_grow_with_s_and_fall_with_m_to_the_bit(self, name):
        values = table(0, name, 0.63, 0.08) * (-1 if name == "log_volume" else 1)
        assert np.all(np.diff(values, axis=0) >= 0)
        assert np.all(np.diff(values, axis=1) <= 0)

    def test_what_is_known_takes_the_tables_of_the_link(self):
        from pairseek.numerics.tables import tables

        assert table(0, "information") is tables(0).information
        for name in ("probability", "information"):
            near = table(0, name, 1e-9, 1e-9)
            assert np.max(np.abs(near - getattr(tables(0), name))) < 0.02

    def test_the_grid_of_parameters_begins_at_nothing(self):
        assert (SPREADS[0], LAPSE_RATES[0], LAPSE_RATES[-1]) == (0.0, 0.0, 1.0)


SOURCES = {
    "default": None,
    "all": ps.AllPairs(),
    "sampled": ps.SampledPairs(count=200),
    "weighted": WeightedPairs(count=300),
}


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(5)
    return ps.Items(rng.uniform(-1, 1, size=(60, 3)), appeal=0.2 * rng.normal(size=60))


class TestChoosing:
    @pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
    @pytest.mark.parametrize("strategy", ["infogain", "epmv", "mcmv", "greedy_mse", "greedy_volume"])
    def test_the_best_of_all_pairs_is_found_without_a_look_at_most(self, catalogue, strategy, noise):
        """The bound also holds for this score: with gap 0, the pair found is that of a full enumeration."""
        believed = ps.Logistic(UNKNOWN, noise, lapse=LAPSE)
        belief = reliable_belief(believed, answers_of(np.random.default_rng(3), [0.3, -0.4, 0.1], 20))
        rule = UTILITIES[strategy]()
        response = typical_response(believed, belief)
        scene = SelectionContext.of(catalogue, belief, response, rule)
        choice = ps.AllPairs().choose(scene, np.random.default_rng(0))
        i, j = np.triu_indices(60, 1)
        scores = dict(zip(zip(i.tolist(), j.tolist(), strict=True), scene.scores(scene.features(i, j)), strict=True))
        best = naive_best_pair(60, lambda a, b: scores[a, b], lambda a, b: True)
        assert choice.utility == pytest.approx(best[0], rel=1e-9)
        assert choice.gap == 0.0

    @pytest.mark.parametrize("source", SOURCES)
    @pytest.mark.parametrize("strategy", UTILITIES)
    def test_every_source_works_with_every_strategy(self, catalogue, source, strategy):
        search = ps.Search(
            catalogue,
            response=ps.Logistic(ps.Unknown(), lapse=ps.Unknown()),
            posterior=ps.EP(),
            strategy=UTILITIES[strategy](),
            candidates=SOURCES[source],
            rng=1,
        )
        for _ in range(3):
            query = search.ask()
            assert 0.0 <= query.info.information <= 1.0
            assert 0.0 < query.info.probability_left < 1.0
            search.tell(query, winner=query.left)
        certain = source in ("default", "all") and strategy != "random"
        assert ("k and lapse as independent" in query.info.candidates) == certain

    @pytest.mark.parametrize("strategy", [None, ps.EPMV()])
    def test_the_default_scores_the_best_pairs_again_if_k_is_unknown(self, strategy):
        items = ps.Items(np.random.default_rng(3).normal(size=(500, 3)))
        known, unknown = (ps.Search(items, response=ps.Logistic(k), strategy=strategy) for k in (None, ps.Unknown()))
        assert (known.candidates.name, known.candidates.rescore) == ("all_pairs", 0)
        assert (unknown.candidates.name, unknown.candidates.rescore) == ("proposed_pairs", 64)

    def test_people_who_answered_alike_are_asked_the_same_pair_of_a_shared_sample(self):
        items = ps.Items(np.random.default_rng(3).normal(size=(500, 3)))

        def asked(seed, **settings):
            search = ps.Search(
                items, response=ps.Logistic(ps.Unknown()), rng=seed, candidates=ps.SampledPairs(count=300, **settings)
            )
            pairs = []
            for _ in range(4):
                query = search.ask()
                pairs.append({query.left, query.right})
                search.tell(query, winner=min(pairs[-1]))
            return pairs

        assert asked(1, shared=True) == asked(2, shared=True)
        assert asked(1) != asked(2)
        assert len({frozenset(pair) for pair in asked(1, shared=True)}) == 4

    @pytest.mark.parametrize("strategy", ["infogain", "epmv", "mcmv", "greedy_mse", "random"])
    def test_a_continuous_space_works(self, strategy):
        space = ps.Space((-1.0, -1.0), (1.0, 1.0))
        search = ps.Search(
            space,
            response=ps.Logistic(ps.Unknown(), lapse=ps.Unknown()),
            posterior=ps.EP(),
            strategy=UTILITIES[strategy](),
            rng=1,
        )
        user = ps.SimulatedUser([0.5, -0.3], ps.Logistic(20.0), rng=1)
        for _ in range(12):
            query = search.ask()
            search.tell(query, winner=user.answer(space, query))
        if strategy != "random":
            assert np.linalg.norm(search.estimate().point - user.point) < 0.45
        if strategy == "epmv":
            # The offset is even over the samples; the probability told takes the logit for Gaussian, which a belief
            # with a share of people who answer at random is not.
            assert query.info.probability_left == pytest.approx(0.5, abs=0.1)

    def test_a_check_tells_of_k_what_a_sum_over_the_samples_says(self, three_dimensions):
        """I(k; y) by samples in ten groups of equal size by their k; the score takes point and k for independent.

        Somebody who always answers at random has no k: those samples are left out.
        """
        _, _, belief = three_dimensions
        known, rng = belief.reliability, np.random.default_rng(6)
        points = rng.uniform(-1, 1, size=(60, 3))
        response = typical_response(ps.Logistic(UNKNOWN, lapse=LAPSE), belief)
        pairs = PairFeatures.of(points, np.arange(30), np.arange(30, 60), belief=belief, response=response)
        score = ReliabilityProbe().score(pairs, belief)
        order = np.argsort(known.k)
        order = order[known.lapse[order] < 1.0]
        groups = np.array_split(order, 10)
        truth = []
        for p, q in zip(points[:30], points[30:], strict=True):
            gap = ((belief.samples - q) ** 2).sum(axis=1) - ((belief.samples - p) ** 2).sum(axis=1)
            chance = known.lapse / 2 + (1 - known.lapse) * expit(known.k / (2 * math.dist(p, q)) * gap)
            by_group = [np.average(chance[g], weights=belief.weights[g]) for g in groups]
            share = [belief.weights[g].sum() for g in groups]
            told = naive_entropy(np.average(by_group, weights=share))
            truth.append(told - np.average([naive_entropy(x) for x in by_group], weights=share))
        assert np.corrcoef(score, truth)[0, 1] > 0.85
        assert truth[np.argmax(score)] > 0.8 * max(truth)
        assert np.all(score >= -1e-12)

    def test_a_check_of_what_is_certain_tells_nothing(self):
        """Items 100,000 times farther away than the prior is wide: every plausible k makes answers certain."""
        points = 1e5 * np.random.default_rng(3).normal(size=(40, 2))
        search = ps.Search(ps.Items(points), response=ps.Logistic(UNKNOWN), prior=ps.UniformBox(), rng=1)
        belief = search.belief
        response = typical_response(search.response, belief)
        pairs = PairFeatures.of(points, np.arange(20), np.arange(20, 40), belief=belief, response=response)
        assert ReliabilityProbe().score(pairs, belief) == pytest.approx(np.zeros(20), abs=1e-6)

    def test_every_fourth_question_checks_where_the_lapse_is_unknown_and_no_strategy_given(self, catalogue):
        unknown, lapsing = ps.Logistic(ps.Unknown()), ps.Logistic(ps.Unknown(), lapse=ps.Unknown())
        for strategy, response, names in (
            (None, lapsing, ["infogain"] * 3 + ["reliability_probe"] + ["infogain"]),
            (ps.InfoGain(), unknown, ["infogain"] * 5),
            (ps.InfoGain(checks=2), unknown, ["infogain", "reliability_probe"] * 2 + ["infogain"]),
            (ps.InfoGain(checks=2), None, ["infogain"] * 5),
            (ps.InfoGain(checks="auto"), None, ["infogain"] * 5),
        ):
            search = ps.Search(catalogue, response=response, strategy=strategy, posterior=ps.EP(), rng=1)
            asked = []
            for _ in range(5):
                query = search.ask()
                asked.append(query)
                search.tell(query, winner=query.left)
            assert [query.info.strategy for query in asked] == names
            search.undo()
            assert search.ask() == asked[-1]
        assert ps.Search(catalogue, response=unknown).strategy == ps.InfoGain(checks="auto")
        several = ps.Search(catalogue, response=lapsing, posterior=ps.EP(), rng=1).ask_many(4)
        assert [query.info.strategy for query in several] == ["infogain"] * 3 + ["reliability_probe"]

    def test_a_check_is_asked_where_it_tells_more_of_k_than_any_question_of_the_point(self):
        """Contradictions make k small, and questions about the point uninformative."""
        points = np.random.default_rng(5).uniform(-1, 1, size=(12, 2))
        pairs = np.array([(i, j) for i in range(12) for j in range(i)])
        settings = {
            "response": ps.Logistic(ps.Unknown(ps.LogNormal(2.0))),
            "candidates": ListedPairs([tuple(pair) for pair in pairs.tolist()]),
            "posterior": ps.EP(),
            "rest": ps.Rest(pair=0),
        }
        asked = []
        for seed in (0, 5, 7):
            search = ps.Search(
                ps.Items(points), prior=ps.UniformBox(), rng=seed, strategy=ps.InfoGain(checks="auto"), **settings
            )
            for number in range(20):
                query, belief = search.ask(), search.belief
                alone = ps.Search(ps.Items(points), prior=ps.UniformBox(), rng=seed, strategy=ps.InfoGain(), **settings)
                for event in search.history:
                    alone.observe(event.left, event.right, winner=event.winner)
                assert np.array_equal(alone.belief.samples, belief.samples)
                other = alone.ask()
                response = typical_response(search.response, belief)
                every = PairFeatures.of(points, pairs[:, 0], pairs[:, 1], belief=belief, response=response)
                most = ReliabilityProbe().score(every, belief).max()
                assert (query.info.strategy == "reliability_probe") == (most > other.info.utility)
                assert query.info.utility == pytest.approx(max(most, other.info.utility))
                asked.append(query.info.strategy)
                search.tell(query, winner=query.left if number % 2 else query.right)
        # Rounding decides near ties and the path after them, so only check that both kinds of question occur.
        assert {"infogain", "reliability_probe"} == set(asked)

    def test_a_check_keeps_to_the_pairs_that_may_be_asked(self, catalogue):
        pairs = [(i, i + 1) for i in range(20)]
        search = ps.Search(
            catalogue,
            response=ps.Logistic(ps.Unknown()),
            strategy=ps.InfoGain(checks=2),
            candidates=ListedPairs(pairs),
            posterior=ps.EP(),
            rng=1,
        )
        for _ in range(6):
            query = search.ask()
            assert (min(query.left, query.right), max(query.left, query.right)) in pairs
            search.tell(query, winner=query.left)
        assert query.info.strategy == "reliability_probe"

    def test_checks_of_nothing_are_refused(self):
        for checks in (1, "often"):
            with refused("checks"):
                ps.InfoGain(checks=checks)

    def test_the_greedy_drops_are_those_of_the_samples_reweighted(self, catalogue, three_dimensions):
        _, _, belief = three_dimensions
        response = typical_response(ps.Logistic(UNKNOWN, lapse=LAPSE), belief)
        pair = SelectionContext.of(catalogue, belief, response).features(np.array([3]), np.array([7]))
        known, (p, q) = belief.reliability, catalogue.coordinates[[3, 7]]
        gap = ((belief.samples - q) ** 2).sum(axis=1) - ((belief.samples - p) ** 2).sum(axis=1)
        credit = (catalogue.appeal[3] - catalogue.appeal[7]) / response.typical_k
        z = known.k / (2 * math.dist(p, q)) * (gap + credit)
        chance = known.lapse / 2 + (1 - known.lapse) * expit(z)
        for (found, mean, _), by in zip(pair.moments_by_outcome(belief), (chance, 1 - chance), strict=True):
            weights = belief.weights * by
            assert found[0] == pytest.approx(weights.sum(), rel=1e-6)
            assert mean[0] == pytest.approx(weights @ belief.samples / weights.sum(), abs=1e-6)

    def test_a_grid_takes_a_known_lapse(self):
        items = ps.Items([[-0.8], [-0.1], [0.5], [0.9]])
        found = []
        for posterior in (ps.Grid(401), ps.Particles(4000)):
            search = ps.Search(
                items, response=ps.Logistic(4.0, lapse=0.2), prior=ps.UniformBox(), posterior=posterior, rng=1
            )
            search.observe(0, 2, winner=2)
            search.observe(3, 1, winner=1)
            found.append(
                (search.estimate().point[0], search.expect(0, 3).information, search.expect(0, 3).probability_left)
            )
        assert found[0] == pytest.approx(found[1], abs=0.02)
