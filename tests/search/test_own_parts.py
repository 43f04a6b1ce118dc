"""Parts of a user's own beside all built-in ones: a search either works to its end or is refused when it is built."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest

import pairseek as ps
from helpers.own_parts import BestOfFew, Closest, InTurn, Laplace, Thompson, TwoHills, Weighted
from helpers.refusals import refused
from pairseek.core.types import Evidence
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.sources import ListedPairs, ProposedPairs, WeightedPairs
from pairseek.pairs.strategies import UTILITIES, Procedure
from pairseek.pairs.strategies.baselines import PROCEDURES
from pairseek.testing import StrategyContract

ITEMS = ps.Items(np.random.default_rng(0).normal(size=(12, 2)), ids=[f"item {i}" for i in range(12)])
OWN = {
    "response": Laplace(1.0, "constant"),
    "prior": TwoHills(),
    "posterior": Weighted(),
    "strategy": Closest(),
    "candidates": BestOfFew(),
}
BUILT_IN = {
    "response": (ps.Logistic(1.0), ps.Probit(1.0, "constant"), ps.Logistic(1.0, "constant", lapse=0.1, tie_width=0.5)),
    "prior": (ps.GaussianPrior(), ps.UniformBox(-2.0, 2.0)),
    "posterior": (ps.EP(), ps.Particles(60), ps.Grid(21)),
    "strategy": (
        *(kind() for kind in UTILITIES.values()),
        *(kind(*((1, 10) if name == "gausscloud" else ())) for name, kind in PROCEDURES.items()),
        Thompson(),
        InTurn(),
    ),
    "candidates": (
        None,
        ps.AllPairs(),
        ps.SampledPairs(rate=0.5),
        WeightedPairs(),
        ProposedPairs(),
        ListedPairs(tuple((i, j) for i in range(12) for j in range(i))),
    ),
}
# Parts that any part of one's own can be combined with.
OTHERS = {
    "response": ps.Logistic(1.0),
    "prior": ps.GaussianPrior(),
    "posterior": ps.Particles(60),
    "strategy": ps.InfoGain(),
    "candidates": None,
}


def combinations():
    """Every part of one's own with every built-in part of another kind, and all sets of parts of one's own."""
    for kind, part in OWN.items():
        for other, built_in in BUILT_IN.items():
            if other != kind:
                yield from ({**OTHERS, kind: part, other: one} for one in built_in)
    for size in range(2, len(OWN) + 1):
        for kinds in itertools.combinations(OWN, size):
            yield {**OTHERS, **{kind: OWN[kind] for kind in kinds}}
    for thompson in (Thompson(), InTurn()):
        yield {**OWN, "strategy": thompson, "candidates": None}


def named(parts):
    return " ".join(type(part).__name__ for part in parts.values() if part is not None)


def is_refused(parts):
    """Whether these parts have no meaning together: all others must work."""
    own_formulas = isinstance(parts["response"], Laplace) or isinstance(parts["prior"], TwoHills)
    chooses_itself = isinstance(parts["strategy"], Procedure) and parts["candidates"] is not None
    return chooses_itself or (own_formulas and isinstance(parts["posterior"], ps.EP))


def answer(search, query):
    search.tell(query, winner=min(query.left, query.right))


@pytest.mark.filterwarnings("ignore::pairseek.errors.AccuracyWarning")
@pytest.mark.parametrize("parts", list(combinations()), ids=named)
def test_a_search_with_a_part_of_ones_own_works_or_is_refused_when_it_is_built(parts, tmp_path):
    if is_refused(parts):
        with pytest.raises(Unsupported):
            ps.Search(ITEMS, **parts, rng=3)
        return
    search = ps.Search(ITEMS, **parts, rng=3)
    for _ in range(3):
        answer(search, search.ask())
    search.observe("item 0", "item 5", winner="item 5")
    asked = search.ask()
    answer(search, asked)
    following = search.ask()
    search.undo()
    assert search.ask() == asked
    answer(search, asked)
    assert search.ask() == following
    assert len(search.recommend(3)) == 3
    assert np.all(np.isfinite(search.estimate().point))
    told = search.expect("item 1", "item 2")
    assert 0.0 < told.probability_left < 1.0
    assert all(0.0 <= share <= 1.0 for share in search.choice_shares(ITEMS.ids[:2]))
    search.save(tmp_path / "me.json")
    own = {kind: part for kind, part in parts.items() if type(part).__module__ == "helpers.own_parts"}
    again = ps.Search.load(tmp_path / "me.json", **own)
    assert again.ask() == following
    assert np.array_equal(again.belief.mean, search.belief.mean)


@pytest.mark.parametrize("name", [*UTILITIES])
@pytest.mark.parametrize("posterior", [ps.Particles(60), ps.Grid(21), Weighted()], ids=repr)
def test_every_built_in_utility_asks_with_a_link_of_ones_own(name, posterior):
    search = ps.Search(ITEMS, response=Laplace(1.0), posterior=posterior, strategy=UTILITIES[name](), rng=1)
    for _ in range(3):
        query = search.ask()
        assert query.info.strategy == name
        answer(search, query)


class Steeper(ps.Logistic):
    """A link twice as steep: what Logistic is at twice the k."""

    name = "steeper"

    def link_function(self, logits):
        return super().link_function(2.0 * np.asarray(logits))

    def log_link(self, logits):
        return super().log_link(2.0 * np.asarray(logits))

    def slope(self, logits):
        return 2.0 * super().slope(2.0 * np.asarray(logits))


class Plain(ps.Logistic):
    """The logistic link by its own methods instead of compiled ones."""

    name = "plain"

    def link_function(self, logits):
        return super().link_function(logits)


@pytest.mark.parametrize("tie_width", [0.0, 0.7])
@pytest.mark.parametrize("lapse", [0.0, 0.1])
def test_expectations_by_methods_are_those_of_tables_and_kernels(tie_width, lapse):
    rng, belief = np.random.default_rng(0), ps.Search(ITEMS, response=ps.Logistic(1.0), rng=1).belief
    first, second = rng.integers(0, 6, 40), rng.integers(6, 12, 40)
    given = {"k": 1.3, "noise": "constant", "lapse": lapse, "tie_width": tie_width}
    appeal = rng.normal(size=12)
    compiled, own = (
        PairFeatures.of(ITEMS.coordinates, first, second, belief=belief, response=kind(**given), appeal=appeal)
        for kind in (ps.Logistic, Plain)
    )
    for name in ("margin", "constant", "variance"):
        assert getattr(own, name) == pytest.approx(getattr(compiled, name), rel=1e-9)
    # Tables are interpolated, with a relative error of up to a hundredth where there are lapses or ties.
    for name in ("probability", "information", "explained", "log_volume"):
        assert own.tabulated(name) == pytest.approx(compiled.tabulated(name), rel=0.02, abs=2e-3)
    for one, other in (
        (own.outcome_probabilities(), compiled.outcome_probabilities()),
        (own.sampled(belief), compiled.sampled(belief)),
        ([own.sampled_information(belief)], [compiled.sampled_information(belief)]),
        *zip(own.moments_by_outcome(belief), compiled.moments_by_outcome(belief), strict=True),
    ):
        for mine, theirs in zip(one, other, strict=True):
            assert mine == pytest.approx(theirs, abs=2e-3)


@pytest.mark.parametrize("strategy", [ps.InfoGain(), ps.EPMV(), ps.MCMV(), ps.GreedyMSE(), ps.GreedyVolume()], ids=repr)
def test_a_link_of_ones_own_is_asked_about_as_the_same_link_of_the_package(strategy):
    given = {"prior": ps.UniformBox(-3.0, 3.0), "posterior": ps.Grid(41), "strategy": strategy, "rng": 1}
    given["candidates"] = ps.AllPairs(rescore=66)
    steeper = ps.Search(ITEMS, response=Steeper(1.0, "constant"), **given)
    double = ps.Search(ITEMS, response=ps.Logistic(2.0, "constant"), **given)
    if strategy == ps.MCMV():
        return  # Its score has the k itself as a factor.
    for _ in range(4):
        mine, theirs = steeper.ask(), double.ask()
        assert steeper.belief.mean == pytest.approx(double.belief.mean, abs=1e-9)
        best = steeper.expect(theirs.left, theirs.right).information
        assert mine.info.information >= best - 0.05
        for search in (steeper, double):
            search.observe(theirs.left, theirs.right, winner=theirs.left)


def posterior_by_quadrature(prior, response, evidence, reach=4.0, points=401):
    axis = np.linspace(-reach, reach, points)
    cells = np.stack([part.ravel() for part in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    logs = prior.log_density(cells) + response.log_likelihood(evidence, cells)
    weights = np.exp(logs - logs.max())
    mean = weights @ cells / weights.sum()
    centred = cells - mean
    spacing, normal = (axis[1] - axis[0]) ** 2, np.exp(prior.log_density(cells)).sum()
    log_evidence = np.log(np.exp(logs).sum() * spacing) - np.log(normal * spacing)
    return mean, (centred.T * weights) @ centred / weights.sum(), log_evidence


SCENES = {
    "no answer": (ps.Logistic(1.0), 0),
    "two modes": (ps.Logistic(1.0), 2),
    "one mode": (ps.Logistic(2.0, "constant"), 8),
    "own link": (Laplace(1.0, "constant"), 5),
    "lapses and ties": (ps.Probit(1.0, lapse=0.1, tie_width=0.4), 6),
}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("posterior", [ps.Particles(4000), ps.Grid(101)], ids=repr)
def test_a_mixture_of_gaussians_as_prior_gives_the_posterior_of_quadrature(name, posterior):
    response, count = SCENES[name]
    rng = np.random.default_rng(len(name))
    slopes, offsets = response.planes(rng.normal(size=(count, 2)), rng.normal(size=(count, 2)))
    decided = (np.arange(count) % 5 != 4).astype(float) if name == "lapses and ties" else np.ones(count)
    evidence = Evidence(slopes, offsets, decided)
    mean, covariance, log_evidence = posterior_by_quadrature(TwoHills(), response, evidence)
    belief = posterior.infer(evidence, TwoHills(), response)
    deviation = np.sqrt(np.diag(covariance))
    # 4000 particles, a quarter of them tempered, have an error of about 0.03 deviations in a mean.
    assert np.abs(belief.mean - mean) / deviation == pytest.approx(np.zeros(2), abs=0.12)
    assert np.linalg.eigvals(np.linalg.solve(covariance, belief.covariance)) == pytest.approx(np.ones(2), abs=0.15)
    if isinstance(posterior, ps.Particles):
        assert belief.info.log_evidence == pytest.approx(log_evidence, abs=0.12)


def test_an_unknown_k_can_be_inferred_with_a_mixture_as_prior():
    search = ps.Search(
        ITEMS, response=ps.Logistic(ps.Unknown(), "constant"), prior=TwoHills(), posterior=ps.Particles(400), rng=1
    )
    for _ in range(3):
        answer(search, search.ask())
    assert search.estimate().reliability is not None


def test_residual_utilities_can_be_inferred_with_a_mixture_and_a_link_of_ones_own():
    response = Laplace(1.0, "constant", residual=1.0)
    search = ps.Search(ITEMS, response=response, prior=TwoHills(), posterior=ps.Particles(200), rng=1)
    for _ in range(2):
        answer(search, search.ask())
    assert search.belief.residuals.deviation == 1.0
    assert len(search.recommend(2)) == 2


def test_a_large_catalogue_stop_rules_and_goals_work_with_a_link_of_ones_own():
    items = ps.Items(np.random.default_rng(1).normal(size=(1500, 2)))
    given = {"response": Laplace(1.0), "posterior": ps.Particles(300), "rng": 1}
    search = ps.Search(items, stop=ps.RadiusBelow(0.8), **given)
    assert "drawn where good pairs are likely" in search.ask().info.candidates
    assert search.forecast() > 0
    for goal in ("best", "list"):
        answer(search, search.ask())
        assert ps.Search(items, goal=goal, stop=(), **given).ask().info.utility is not None
    everything_rests = ps.Search(items, strategy=ps.Random(), rest=ps.Rest(item=5), **given)
    assert everything_rests.ask().left in items.ids


def test_a_space_can_be_searched_with_a_link_of_ones_own():
    search = ps.Search(ps.Space([-1, -1], [1, 1]), response=Laplace(2.0), posterior=ps.Grid(41), rng=1)
    for _ in range(2):
        answer(search, search.ask())


def test_an_unknown_k_with_a_link_of_ones_own_is_refused_with_what_to_do():
    with pytest.raises(Unsupported):
        ps.Search(ITEMS, response=Laplace(ps.Unknown()), posterior=ps.Particles(60))


class Crooked(TwoHills):
    def sample(self, n, d, rng):
        return rng.standard_normal((n, 1))


class Scalar(TwoHills):
    def log_density(self, points):
        return float(np.sum(points))


@pytest.mark.parametrize(("prior", "words"), [(Crooked(), "sample(2, 2, rng) returned shape"), (Scalar(), "2 finite")])
def test_a_prior_with_other_shapes_is_refused(prior, words):
    with pytest.raises(InvalidParameter, match=re.escape(words)):
        ps.Search(ITEMS, prior=prior, posterior=ps.Particles(60))


def asked_by(seed, strategy, **given):
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=strategy, rng=seed, **given)
    pairs = []
    for _ in range(5):
        query = search.ask()
        pairs.append(frozenset((query.left, query.right)))
        answer(search, query)
    return pairs


def test_thompson_sampling_is_drawn_by_the_seed_the_events_and_the_purpose():
    assert asked_by(1, Thompson()) == asked_by(1, Thompson())
    assert len({tuple(map(tuple, map(sorted, asked_by(seed, Thompson())))) for seed in range(6)}) > 1
    # All pairs of one question are scored by the same draws, in one call or in many.
    listed = ListedPairs(tuple((i, j) for i in range(12) for j in range(i)))
    assert asked_by(1, Thompson()) == asked_by(1, Thompson(), candidates=listed)


def test_the_generator_of_a_score_is_in_the_same_state_in_every_call_about_a_question():
    states = []

    class Watching(Thompson):
        def score(self, candidates, belief, rng):
            states.append(rng.bit_generator.state["state"]["state"])
            return super().score(candidates, belief, rng)

    source = ps.AllPairs(listed=10**6)
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Watching(), candidates=source, rng=1)
    one = search.ask()
    first = set(states)
    answer(search, one)
    search.ask()
    search.undo()
    answer(search, one)
    search.ask()
    assert len(first) == 1
    assert len(set(states)) == 2


def test_several_questions_at_once_are_drawn_apart():
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Thompson(), rng=1)
    assert len(search.ask_many(3)) == 3


class Misnamed:
    name = "misnamed"

    def score(self, candidates, belief, generator):
        return generator.random(len(candidates))


class Narrow:
    name = "narrow"

    def score(self, candidates):
        return -candidates.length


@pytest.mark.parametrize("strategy", [Misnamed(), Narrow()], ids=lambda one: one.name)
def test_a_score_that_a_search_cannot_call_is_refused_when_it_is_built(strategy):
    words = "define score(candidates, belief) or, for a score that draws, score(candidates, belief, rng)"
    with refused("strategy") as caught:
        ps.Search(ITEMS, strategy=strategy)
    assert words in str(caught.value)


class TestThompson(StrategyContract):
    @pytest.fixture
    def strategy(self):
        return Thompson()

    def test_scores_depend_on_differences_of_appeal_alone(self):
        """It leaves appeal out."""


def warned(**given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = ps.Search(ITEMS, **given, rng=1)
    return search, [one for one in caught if one.category is ps.DefaultWarning]


@pytest.mark.parametrize("posterior", [ps.Grid(21), Weighted()], ids=repr)
def test_a_posterior_that_changes_the_default_response_says_so_once(posterior, tmp_path):
    search, caught = warned(posterior=posterior)
    assert search.response.residual is None
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert message.startswith(f"{type(posterior).__name__} cannot infer residual utilities")
    assert "noise: give response=ps.Logistic()" in message
    search.save(tmp_path / "me.json")
    assert ps.Search.load(tmp_path / "me.json", posterior=posterior).response == search.response


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"posterior": ps.EP(256)},
        {"posterior": ps.Particles(60)},
        {"posterior": ps.Grid(21), "response": ps.Logistic()},
        {"posterior": ps.Particles(60), "prior": ps.UniformBox(-2.0, 2.0)},
    ],
    ids=repr,
)
def test_nothing_is_said_where_the_default_response_is_the_usual_one(given):
    assert warned(**given)[1] == []


def test_a_space_has_one_default_response():
    ps.Search(ps.Space([0, 0], [1, 1]), posterior=ps.Grid(21))


def test_a_density_as_prior_that_changes_the_default_response_says_so():
    search, caught = warned(prior=TwoHills(), posterior=ps.Particles(500))
    assert search.response.residual is None
    assert [str(one.message).partition(",")[0] for one in caught] == ["TwoHills is a custom density"]
    assert caught[0].filename == __file__
    assert not warned(prior=TwoHills(), posterior=ps.Particles(500), response=ps.Logistic())[1]


def test_a_search_that_is_read_or_moved_warns_no_second_time(tmp_path):
    search, _ = warned(posterior=ps.Grid(21))
    search.save(tmp_path / "me.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Search.load(tmp_path / "me.json")
        ps.Search.from_dict(search.to_dict(), items=search.items)
        search.moved_to(ps.Items(search.items.coordinates[:-1]))
