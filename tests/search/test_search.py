"""The search: ask, tell, undo, and what they promise."""

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import read_only, refused
from pairseek.errors import (
    AnswerConflict,
    InvalidAnswer,
    InvalidFile,
    InvalidParameter,
    NoPairLeft,
    SearchFinished,
    UnknownItem,
    UnknownQuery,
    Unsupported,
)
from pairseek.search import engine

FEW = ps.Particles(300)


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(11)
    return ps.Items(rng.normal(size=(40, 2)), ids=[f"i{n}" for n in range(40)])


def make(items, **settings):
    return ps.Search(items, **{"posterior": FEW, "rng": 5, **settings})


def run(search, user, answers):
    for _ in range(answers):
        query = search.ask()
        search.tell(query, winner=user.answer(search.items, query))
    return search


@pytest.fixture
def user(items):
    return ps.SimulatedUser(np.array([0.7, -0.4]), ps.Logistic(3.0), rng=2)


def same_state(a, b):
    assert a.history == b.history
    assert np.array_equal(a.belief.samples, b.belief.samples)
    assert np.array_equal(a.belief.weights, b.belief.weights)
    assert np.array_equal(a.belief.mean, b.belief.mean)
    assert a.ask() == b.ask()


def test_asking_twice_gives_the_same_query(items):
    search = make(items)
    assert search.ask() is search.ask()
    assert search.pending == (search.ask(),)


def test_the_same_seed_asks_the_same_questions_and_another_does_not(items, user):
    queries = [run(make(items, rng=seed), user, 6).history for seed in (3, 3, 4)]
    assert queries[0] == queries[1]
    assert queries[0] != queries[2]


def test_a_generator_gives_a_seed_and_no_rng_gives_a_fresh_one(items):
    assert make(items, rng=np.random.default_rng(1)).seed == make(items, rng=np.random.default_rng(1)).seed
    assert make(items, rng=None).seed != make(items, rng=None).seed


def test_sides_are_drawn_and_both_occur(items, user):
    search = run(make(items, strategy=ps.Random(), rng=0), user, 60)
    first_on_left = [items.index(e.left) < items.index(e.right) for e in search.history]
    # 60 fair coins: fewer than 15 of one side has probability under 1e-4.
    assert 15 < sum(first_on_left) < 45


def test_telling_the_same_answer_twice_is_harmless(items):
    search = make(items)
    query = search.ask()
    search.tell(query, winner=query.left)
    before = search.belief
    search.tell(query, winner=query.left)
    search.tell(query.id, winner=query.left)
    assert search.answers == 1
    assert search.belief is before


def test_another_answer_to_an_answered_query_is_a_conflict(items):
    search = make(items)
    query = search.ask()
    search.tell(query, winner=query.left)
    with pytest.raises(AnswerConflict):
        search.tell(query, winner=query.right)
    with pytest.raises(AnswerConflict):
        search.tell(query, tie=True)
    with pytest.raises(AnswerConflict):
        search.skip(query)
    assert search.answers == 1


def test_a_query_of_another_search_is_rejected(items):
    search = make(items)
    with pytest.raises(UnknownQuery):
        search.tell("q9", winner="i0")
    query = search.ask()
    changed = ps.Query(query.id, query.right, query.left)
    with pytest.raises(UnknownQuery):
        search.tell(changed, winner=query.left)


def test_a_winner_outside_the_query_is_rejected_and_nothing_changes(items):
    search = make(items)
    query = search.ask()
    other = next(i for i in items.ids if i not in (query.left, query.right))
    for winner in (other, "nobody", 3):
        with pytest.raises(InvalidAnswer):
            search.tell(query, winner=winner)
    with pytest.raises(InvalidAnswer):
        search.tell(query)
    with pytest.raises(InvalidAnswer):
        search.tell(query, winner=query.left, tie=True)
    assert search.history == ()
    assert search.ask() is query


def test_a_skip_teaches_nothing_is_recorded_and_the_pair_rests(items):
    search = make(items)
    query = search.ask()
    before = search.belief
    search.skip(query)
    assert np.array_equal(search.belief.samples, before.samples)
    assert np.array_equal(search.belief.weights, before.weights)
    assert [event.outcome for event in search.history] == ["skip"]
    assert search.answers == 0
    assert {search.ask().left, search.ask().right} != {query.left, query.right}


def test_a_tie_pulls_towards_the_plane(items):
    search = make(items, response=ps.Logistic(), posterior=ps.Grid())
    query = search.ask()
    p, q = (items.coordinates[items.index(side)] for side in (query.left, query.right))
    normal = (p - q) / np.linalg.norm(p - q)

    def spread():
        distance = (search.belief.samples - (p + q) / 2) @ normal
        return search.belief.weights @ distance**2

    before = spread()
    search.tell(query, tie=True)
    assert spread() < 0.95 * before
    assert search.answers == 1


def test_undo_is_exact_for_every_kind_of_event(items, user):
    search = run(make(items), user, 3)
    twin = run(make(items), user, 3)
    steps = [
        lambda s: s.tell(s.ask(), winner=s.ask().right),
        lambda s: s.tell(s.ask(), tie=True),
        lambda s: s.skip(s.ask()),
        lambda s: s.observe("i1", "i2", winner="i2"),
        lambda s: s.observe("i1", "i2", tie=True),
    ]
    for step in steps:
        step(search)
        search.ask()
    for _ in steps:
        search.undo()
    same_state(search, twin)


def test_undo_opens_the_query_again_and_another_answer_is_accepted(items):
    search = make(items)
    query = search.ask()
    search.tell(query, winner=query.left)
    following = search.ask()
    event = search.undo()
    assert event.query == query
    assert search.ask() == query
    with pytest.raises(UnknownQuery):
        search.tell(following, winner=following.left)
    search.tell(query, winner=query.right)
    assert search.history[0].winner == query.right


def test_undo_far_back_rebuilds_from_the_answers(items, user):
    search = run(make(items), user, 12)
    for _ in range(9):
        search.undo()
    same_state(search, run(make(items), user, 3))


def test_undo_of_nothing_says_so(items):
    with pytest.raises(UnknownQuery):
        make(items).undo()


def test_an_observation_leaves_the_open_query_open(items):
    search = make(items)
    query = search.ask()
    search.observe("i3", "i4", winner="i3")
    assert search.ask() is query
    search.tell(query, winner=query.left)
    assert [event.query is None for event in search.history] == [True, False]
    assert search.answers == 1


def test_an_observation_counts_like_an_answer(items):
    told, observed = make(items), make(items)
    query = told.ask()
    told.tell(query, winner=query.right)
    observed.observe(query.left, query.right, winner=query.right)
    assert np.array_equal(told.belief.weights, observed.belief.weights)


def test_invalid_observations_are_rejected_and_nothing_changes(items):
    search = make(items)
    with pytest.raises(UnknownItem):
        search.observe("nobody", "i1", winner="i1")
    with pytest.raises(InvalidAnswer):
        search.observe("i1", "i1", winner="i1")
    with pytest.raises(InvalidAnswer):
        search.observe("i1", "i2", winner="i3")
    assert search.history == ()


def test_every_answer_of_the_history_holds_winner_loser_and_sides(items, user):
    for event in run(make(items), user, 5).history:
        assert {event.winner, event.loser} == {event.left, event.right}
        assert event.query.info.considered > 0
        assert 0 <= event.query.info.information <= 1
        assert 0 <= event.query.info.probability_left <= 1


def test_the_info_of_a_query_agrees_with_the_belief(items, user):
    search = run(make(items, response=ps.Logistic()), user, 4)
    query = search.ask()
    left, right = (items.coordinates[[items.index(side)]] for side in (query.left, query.right))
    slopes, offsets = search.response.planes(left, right)
    # As if the logit were Gaussian, by quadrature.
    belief = search.belief
    deviation = np.sqrt(slopes[0] @ belief.covariance @ slopes[0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    f = search.response.probability(slopes[0] @ belief.mean + offsets[0] + deviation * nodes)
    weights = weights / weights.sum()
    p = weights @ f
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    conditional = -weights @ (f * np.log2(f) + (1 - f) * np.log2(1 - f))
    # To the interpolation of the tables.
    assert query.info.probability_left == pytest.approx(p, abs=1e-3)
    assert query.info.information == pytest.approx(entropy - conditional, abs=1e-3)


def test_the_estimate_is_the_posterior_mean_and_its_ball_holds_its_share(items, user):
    search = run(make(items), user, 8)
    estimate = search.estimate()
    assert np.array_equal(estimate.point, search.belief.mean[:2])
    distances = np.linalg.norm(search.belief.samples[:, :2] - estimate.point, axis=1)
    inside = search.belief.weights[distances <= estimate.credible_radius(0.8)].sum()
    assert 0.8 <= inside < 0.82
    for level in (1.0, "x", None):
        with refused("level"):
            estimate.credible_radius(level)


def test_recommendations_are_the_shares_of_nearest_items(items, user):
    search = run(make(items, response=ps.Logistic()), user, 10)
    nearest = np.argmin(((search.belief.samples[:, None] - items.coordinates) ** 2).sum(axis=2), axis=1)
    share = np.bincount(nearest, weights=search.belief.weights, minlength=items.n)
    recommended = search.recommend(5)
    assert [r.probability for r in recommended] == pytest.approx(sorted(share, reverse=True)[:5])
    assert recommended[0].id == items.ids[int(np.argmax(share))]
    everything = search.recommend(1000)
    assert len(everything) == items.n
    assert sum(r.probability for r in everything) == pytest.approx(1.0)
    for count in (0, 2.5, True, "5"):
        with refused("count"):
            search.recommend(count)
    assert len(search.recommend(np.int64(3))) == 3


def test_appeal_moves_recommendations_and_beliefs():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2))
    appeal = np.zeros(12)
    appeal[3] = 200.0
    plain = ps.Search(ps.Items(points), rng=1)
    liked = ps.Search(ps.Items(points, appeal=appeal), rng=1)
    assert liked.recommend(1)[0].id == 3
    # To prefer item 3 tells nothing when everybody does.
    prior = plain.belief.mean
    for search in (plain, liked):
        search.observe(3, 5, winner=3)
    assert np.linalg.norm(plain.belief.mean - prior) > 0.1
    assert liked.belief.mean == pytest.approx(prior, abs=1e-6)


def test_best_item_with_appeal_is_the_one_of_highest_utility():
    rng = np.random.default_rng(4)
    items = ps.Items(rng.normal(size=(30, 3)), appeal=rng.normal(size=30))
    response = ps.Logistic(0.8, "constant")
    search = ps.Search(items, response=response, posterior=FEW, rng=1)
    utility = items.appeal - 0.8 * ((search.belief.samples[:, None] - items.coordinates) ** 2).sum(axis=2)
    share = np.bincount(np.argmax(utility, axis=1), minlength=30) / FEW.n
    found = {r.id: r.probability for r in search.recommend(30)}
    assert [found[i] for i in range(30)] == pytest.approx(share.tolist())


def test_defaults_suit_items_of_any_scale_and_place(user):
    rng = np.random.default_rng(3)
    points = rng.uniform(size=(60, 2))
    results = []
    for scale, shift in ((1.0, 0.0), (1e4, 3e5), (1e-5, -2.0)):
        items = ps.Items(points * scale + shift)
        search = ps.Search(items, rng=9)
        target = ps.SimulatedUser(np.array([0.3, 0.8]) * scale + shift, search.response, rng=8)
        run(search, target, 12)
        results.append(((search.estimate().point - shift) / scale, [e.query.left for e in search.history]))
    for point, asked in results[1:]:
        assert asked == results[0][1]
        assert point == pytest.approx(results[0][0], abs=1e-6)


def test_defaults_survive_a_constant_coordinate_and_one_dimension():
    rng = np.random.default_rng(3)
    flat = ps.Items(np.column_stack([rng.normal(size=20), np.full(20, 7.0)]))
    search = ps.Search(flat, posterior=FEW, rng=1)
    search.tell(search.ask(), winner=search.ask().left)
    assert search.estimate().point[1] == pytest.approx(7.0, abs=0.01)
    line = ps.Search(ps.Items(rng.normal(size=(9, 1))), posterior=FEW, rng=1)
    line.tell(line.ask(), winner=line.ask().left)
    assert line.estimate().point.shape == (1,)


def test_two_items_make_one_question_again_and_again():
    search = ps.Search(ps.Items([[0.0], [1.0]]), posterior=FEW, rng=1)
    for _ in range(5):
        query = search.ask()
        assert {query.left, query.right} == {0, 1}
        search.tell(query, winner=1)
    assert search.estimate().point[0] > 0.6


def test_identical_points_are_never_asked_without_residual_utilities():
    points = np.array([[0.0, 0.0]] * 5 + [[1.0, 1.0]])
    search = ps.Search(ps.Items(points), response=ps.Logistic(), posterior=FEW, rng=1, rest=ps.Rest(pair=0))
    for _ in range(8):
        query = search.ask()
        assert 5 in (query.left, query.right)
        search.tell(query, winner=query.left)


def test_a_pair_does_not_return_before_all_others_by_default():
    search = ps.Search(ps.Items([[0.0, 0.1], [1.0, 0.0], [0.2, 1.0], [0.9, 0.9]]), posterior=FEW, rng=1)
    asked = []
    for _ in range(6):
        query = search.ask()
        asked.append(frozenset((query.left, query.right)))
        search.tell(query, winner=query.left)
    assert len(set(asked)) == 6
    seventh = search.ask()
    assert {seventh.left, seventh.right} != set(asked[-1])


def test_resting_items_are_respected_and_the_rule_is_named_when_nothing_is_left(items, user):
    search = make(items, rest=ps.Rest(item=3))
    shown = []
    for _ in range(10):
        query = search.ask()
        assert not {query.left, query.right} & {side for pair in shown[-3:] for side in pair}
        shown.append((query.left, query.right))
        search.tell(query, winner=query.left)
    few = ps.Search(ps.Items([[0.0], [1.0], [3.0]]), posterior=FEW, rng=1, rest=ps.Rest(item=1))
    few.tell(few.ask(), winner=few.ask().left)
    with pytest.raises(NoPairLeft) as e:
        few.ask()
    assert e.value.rule == "an item rests 1 question"
    pairs = ps.Search(ps.Items([[0.0], [1.0]]), posterior=FEW, rng=1, rest=ps.Rest(pair=2))
    pairs.tell(pairs.ask(), winner=0)
    with pytest.raises(NoPairLeft):
        pairs.ask()


@pytest.mark.parametrize("bad", [{"pair": -1}, {"item": -2}, {"pair": 1.5}, {"item": True}])
def test_rests_must_be_whole_numbers_from_0(bad):
    with pytest.raises(InvalidParameter, match="give a whole number of questions, at least 0"):
        ps.Rest(**bad)


def test_many_questions_at_once_share_no_item_and_may_be_told_in_any_order(items):
    search = make(items)
    queries = search.ask_many(5)
    sides = [side for query in queries for side in (query.left, query.right)]
    assert len(set(sides)) == 10
    assert search.ask() is queries[0]
    assert search.ask_many(5) == queries
    search.tell(queries[3], winner=queries[3].left)
    search.tell(queries[1], winner=queries[1].right)
    again = search.ask_many(5)
    assert [q.id for q in again[:3]] == [queries[i].id for i in (0, 2, 4)]
    assert len(again) == 5
    search.undo()
    assert queries[1] in search.pending
    assert len(search.ask_many(100)) <= items.n // 2
    for count in (0, 2.5, True, None):
        with refused("count"):
            search.ask_many(count)
    with pytest.raises(Unsupported):
        make(items, strategy=ps.GaussSearch()).ask_many(2)


def test_the_order_of_telling_many_gives_the_same_posterior_in_law(items):
    """Likelihoods commute: on a grid, where nothing is random, the order leaves only rounding."""
    beliefs = []
    for order in ((0, 1, 2), (2, 0, 1)):
        search = make(items, response=ps.Logistic(), posterior=ps.Grid())
        queries = search.ask_many(3)
        for i in order:
            search.tell(queries[i], winner=queries[i].left)
        beliefs.append(search.belief)
    assert np.allclose(beliefs[0].weights, beliefs[1].weights, atol=1e-14)


def test_the_same_bits_on_one_and_two_threads(items, user):
    beliefs = []
    try:
        for threads in (1, 2):
            ps.set_thread_count(threads)
            search = run(make(items, posterior=ps.Particles(1500)), user, 6)
            beliefs.append((search.belief, search.ask()))
    finally:
        ps.set_thread_count(None)
    assert np.array_equal(beliefs[0][0].samples, beliefs[1][0].samples)
    assert np.array_equal(beliefs[0][0].covariance, beliefs[1][0].covariance)
    assert beliefs[0][1] == beliefs[1][1]


@pytest.mark.parametrize("strategy", [ps.ActRank(), ps.GaussCloud(2, 12), ps.GaussSearch()], ids=lambda s: s.name)
def test_procedures_choose_themselves_and_bring_their_own_estimate(items, user, strategy):
    search = run(make(items, strategy=strategy), user, 6)
    own = search.strategy.estimate(items, search.history)
    assert np.array_equal(search.estimate().point, own)
    assert not np.array_equal(own, search.belief.mean)
    assert search.ask().info.utility is None
    twin = run(make(items, strategy=strategy), user, 6)
    same_state(search, twin)
    search.undo()
    search.tell(search.ask(), winner=twin.history[-1].winner)
    same_state(search, twin)


def test_a_procedure_that_is_done_finishes_the_search(user):
    items = ps.Items(np.random.default_rng(2).normal(size=(4, 2)))
    search = ps.Search(items, strategy=ps.ActRank(), posterior=FEW, rng=1)
    for _ in range(20):
        if search.finished:
            break
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    assert search.finished == "actrank has no more pairs to ask"
    with pytest.raises(SearchFinished):
        search.ask()


def test_a_strategy_of_ones_own_is_an_object_with_a_score(items):
    class Longest:
        name = "longest"

        def score(self, candidates, belief):
            return candidates.length

    query = make(items, response=ps.Logistic(), strategy=Longest(), candidates=ps.AllPairs()).ask()
    distances = np.linalg.norm(items.coordinates[:, None] - items.coordinates, axis=2)
    i, j = np.unravel_index(np.argmax(distances), distances.shape)
    assert {query.left, query.right} == {items.ids[i], items.ids[j]}


def test_a_strategy_that_scores_nan_or_the_wrong_shape_is_named(items):
    class Broken:
        name = "broken"

        def __init__(self, value):
            self.value = value

        def score(self, candidates, belief):
            return self.value(len(candidates))

    with pytest.raises(InvalidParameter):
        make(items, strategy=Broken(lambda m: np.full(m, np.nan))).ask()
    with pytest.raises(InvalidParameter, match=r"Broken.score returned shape \(3,\)"):
        make(items, strategy=Broken(lambda m: np.zeros(3))).ask()


def test_parts_that_do_not_fit_the_items_are_rejected(items):
    with refused("strategy"):
        make(items, strategy=object())
    with refused("posterior") as caught:
        ps.Search(ps.Items(np.random.default_rng(0).normal(size=(5, 4))), posterior=ps.Grid())
    assert "a Grid takes at most 3 dimensions and the items have 4" in str(caught.value)
    with pytest.raises(InvalidParameter):
        make(items, prior=ps.UniformBox((0, 0, 0), (1, 1, 1)))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "give either rate or count"),
        ({"rate": 0.1, "count": 3}, "give either rate or count"),
        ({"rate": 0.0}, "above 0 and up to 1"),
        ({"rate": 1.5}, "above 0 and up to 1"),
        ({"count": 0}, "at least 1"),
        ({"count": 5, "rescore": -1}, "0 or more"),
    ],
)
def test_invalid_sample_sizes_are_rejected(settings, text):
    with pytest.raises(InvalidParameter, match=text):
        ps.SampledPairs(**settings)


def test_a_tiny_rate_of_few_items_still_asks():
    search = ps.Search(ps.Items([[0.0], [1.0], [2.5]]), candidates=ps.SampledPairs(rate=1e-3), posterior=FEW, rng=1)
    for _ in range(6):
        query = search.ask()
        assert query.info.considered >= 1
        search.tell(query, winner=query.left)


def test_sampled_pairs_cover_the_pairs_evenly():
    from pairseek.pairs.sources.sampled import pair_rows, sampled_pairs

    rng = np.random.default_rng(0)
    first, second = sampled_pairs(200, 1500, rng)
    assert np.all(first != second)
    counts = np.bincount(np.concatenate([first, second]), minlength=200)
    # 3000 draws over 200 rows: mean 15, standard deviation about 3.9.
    assert counts.max() < 15 + 6 * 3.9
    listed = set(zip(*(x.tolist() for x in sampled_pairs(30, 435, rng)), strict=True))
    assert len(listed) == 435
    i, j = pair_rows(np.arange(435), 30)
    assert np.array_equal(np.stack([i, j]), np.stack(np.triu_indices(30, 1)))


def test_a_continued_search_is_the_one_that_was_told_the_same():
    items = ps.Items(np.random.default_rng(3).normal(size=(40, 3)))
    told = ps.Search(items, posterior=ps.Particles(300), rng=5)
    for step in range(7):
        query = told.ask()
        told.tell(query, winner=query.left) if step % 3 else told.skip(query)
    start = ps.Search(items, posterior=ps.Particles(300), rng=5)
    rebuilt = start.continued(told.history)
    assert np.array_equal(rebuilt.belief.samples, told.belief.samples)
    assert rebuilt.ask() == told.ask()
    assert start.history == ()
    # As a fork one event further on, it is the same to the bit.
    query = told.ask()
    fork = told.continued([*told.history, ps.Event(query.left, query.right, "answer", query.right, query)])
    assert told.pending == (query,)
    told.tell(query, winner=query.right)
    assert np.array_equal(fork.belief.samples, told.belief.samples)
    assert fork.ask() == told.ask()


def test_a_continued_search_can_have_another_seed():
    items = ps.Items(np.random.default_rng(3).normal(size=(40, 3)))
    start, drawn = ps.Search(items, strategy=ps.Random(), rng=5), []
    for seed in range(6):
        again = start.continued((), rng=seed)
        assert again.ask() == ps.Search(items, strategy=ps.Random(), rng=seed).ask()
        drawn.append(again.ask())
    assert start.seed == 5
    assert len({(one.left, one.right) for one in drawn}) > 3


def test_what_a_pair_is_expected_to_tell_is_what_the_query_says():
    items = ps.Items(np.random.default_rng(4).normal(size=(30, 2)))
    search = ps.Search(items, posterior=ps.Particles(400), rng=8)
    search.observe(0, 1, winner=0)
    query = search.ask()
    expected = search.expect(query.left, query.right)
    assert expected.information == pytest.approx(query.info.information, abs=1e-12)
    assert expected.probability_left == pytest.approx(query.info.probability_left, abs=1e-12)
    swapped = search.expect(query.right, query.left)
    assert swapped.probability_left == pytest.approx(1 - expected.probability_left, abs=1e-12)
    with pytest.raises(ps.errors.InvalidAnswer):
        search.expect(3, 3)
    with pytest.raises(ps.errors.Unsupported):
        ps.Search(ps.Space((0.0,), (1.0,)), strategy=ps.EPMV(), rng=1).expect((0.1,), (0.2,))


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda search: pickle.loads(pickle.dumps(search))}


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prior": ps.GaussianPrior([0.1, 0.0], [[1.0, 0.2], [0.2, 2.0]]), "stop": 20},
        {"strategy": ps.ActRank()},
        {"strategy": ps.GaussSearch()},
    ],
    ids=["defaults", "gaussian", "actrank", "gausssearch"],
)
def test_a_copied_search_asks_the_same_and_goes_its_own_way(items, user, again, settings):
    search = run(make(items, **settings), user, 4)
    search.skip(search.ask())
    twin = again(search)
    assert twin.configuration == search.configuration
    same_state(twin, search)
    before = search.history
    twin.tell(twin.ask(), winner=twin.ask().left)
    for _ in range(3):
        twin.undo()
    assert search.history == before
    assert len(twin.history) == 3
    with read_only():
        again(search).belief.samples[0] = 0.0


def test_a_copied_prior_stays_read_only():
    for again in COPIES.values():
        with read_only():
            again(ps.GaussianPrior([0.1, 0.0])).mean[0] = 1.0


def test_two_threads_on_one_search_take_turns(items):
    """Both get the same question, one answer counts, and the history is as one caller would have made it."""
    search = make(items)
    rounds, meet = 12, threading.Barrier(2)

    def person(_):
        asked = []
        for _ in range(rounds):
            meet.wait(30)
            asked.append(search.ask())
            meet.wait(30)
            search.tell(asked[-1], winner=asked[-1].left)
        return asked

    with ThreadPoolExecutor(2) as threads:
        asked = list(threads.map(person, range(2)))
    assert asked[0] == asked[1]
    assert [event.query for event in search.history] == asked[0]
    assert search.pending == ()
    assert len({query.id for query in asked[0]}) == rounds


def test_a_search_says_what_it_is_in_a_line(items):
    search = make(items)
    search.tell(search.ask(), tie=True)
    assert repr(search) == "<Search of 40 items in 2 dimensions by infogain: 1 answer, seed 5>"
    space = ps.Search(ps.Space(0.0, 1.0), posterior=FEW, rng=3)
    assert repr(space) == "<Search of a space in 1 dimension by infogain: 0 answers, seed 3>"


@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        ("response", "logistic", "response is 'logistic': expected a Response, such as Logistic(k=1.5)"),
        ("prior", "x", "prior is 'x': expected a prior, such as UniformBox(-1, 1), or an object with box(), quad"),
        ("posterior", 4000, "posterior is 4000: expected a posterior, such as EP(), or an object with infer()"),
        ("strategy", "infogain", "strategy is 'infogain': expected a strategy, such as InfoGain()"),
        ("candidates", "all", "candidates is 'all': expected a source of candidates, such as AllPairs()"),
        ("rest", 5, "rest is 5: expected a Rest, such as Rest(pair=10, item=1)"),
        ("stop", [5], "stop is 5: expected a stop rule, such as AfterAnswers(20)"),
        ("stop", [None], "stop is [None]: give rules"),
        ("strategy", ps.InfoGain, "strategy is the class InfoGain: give an instance, InfoGain(...)"),
    ],
)
def test_parts_of_the_wrong_kind_are_named_at_once(items, name, part, message):
    with refused(name) as caught:
        make(items, **{name: part})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("stop", 1.5),
        ("stop", True),
        ("stop", "20"),
        ("response", ps.Logistic),
        ("prior", ps.UniformBox),
        ("posterior", ps.Grid),
        ("candidates", ps.AllPairs),
        ("rest", ps.Rest),
        ("stop", ps.AfterAnswers),
    ],
)
def test_numbers_texts_and_classes_are_not_parts(items, name, part):
    with refused(name):
        make(items, **{name: part})


@pytest.mark.parametrize("rng", [-1, 1.5, "seed"])
def test_a_seed_is_a_whole_number_from_0(items, rng):
    with refused("rng"):
        make(items, rng=rng)
    with refused("rng"):
        make(items).continued((), rng=rng)


def test_a_search_cannot_stop_after_no_answers(items):
    with refused("count"):
        make(items, stop=0)


@pytest.mark.parametrize("strategy", [ps.ActRank(), ps.GaussCloud(2, 12), ps.GaussSearch()], ids=lambda s: s.name)
def test_what_a_procedure_would_not_use_is_refused(items, strategy):
    with pytest.raises(Unsupported):
        make(items, strategy=strategy, candidates=ps.AllPairs())
    with pytest.raises(Unsupported):
        make(items, strategy=strategy, rest=ps.Rest(pair=3))
    assert make(items, strategy=strategy, rest=ps.Rest()).rest == ps.Rest()


def test_what_a_space_would_not_use_is_refused():
    for settings in ({"candidates": ps.SampledPairs(count=5)}, {"rest": ps.Rest(item=1)}):
        with pytest.raises(Unsupported):
            ps.Search(ps.Space([0, 0], [1, 1]), posterior=FEW, rng=1, **settings)


@pytest.mark.parametrize("query", [None, 5, ("i0", "i1"), b"q0", np.arange(2)])
def test_what_is_no_query_is_unknown(items, query):
    search = make(items)
    search.ask()
    with pytest.raises(UnknownQuery):
        search.tell(query, winner="i0")
    with pytest.raises(UnknownQuery):
        search.skip(query)


def test_ties_and_winners_of_the_wrong_kind_are_named():
    search = ps.Search(ps.Items([[0.0], [1.0], [3.0]]), posterior=FEW, rng=1)
    query = search.ask()
    for tie in ("no", 1, None):
        with pytest.raises(InvalidAnswer, match=f"tie is {tie!r}: give True or False"):
            search.tell(query, tie=tie)
        with pytest.raises(InvalidAnswer):
            search.observe(0, 1, tie=tie)
    with pytest.raises(InvalidAnswer):
        search.observe(0, 1, winner=True)
    with pytest.raises(UnknownItem):
        search.observe(0, "1", winner=0)
    assert search.history == ()
    search.tell(query, tie=np.bool_(True))
    assert search.history[0].outcome == "tie"


def test_names_in_a_space_are_no_points():
    search = ps.Search(ps.Space([0, 0], [1, 1]), posterior=FEW, rng=1)
    with pytest.raises(UnknownItem):
        search.observe("a", "b", winner="a")


@pytest.mark.parametrize("threads", ["x", 1.5, 0, True])
def test_a_number_of_threads_of_the_wrong_kind_is_named(threads):
    with pytest.raises(InvalidParameter):
        ps.set_thread_count(threads)


def test_choice_shares_are_the_mean_probabilities_of_all_pairs():
    items = ps.Items(np.random.default_rng(4).normal(size=(9, 2)))
    search = ps.Search(items, rng=1)
    for _ in range(4):
        query = search.ask()
        search.tell(query, winner=query.left)
    choice_shares = search.choice_shares([0, 5])
    for item, share in zip((0, 5), choice_shares, strict=True):
        pairs = [search.expect(item, other) for other in items.ids if other != item]
        assert share == pytest.approx(np.mean([pair.probability_left + 0.5 * pair.probability_tie for pair in pairs]))
    with pytest.raises(Unsupported):
        ps.Search(ps.Space([-1.0, -1.0], [1.0, 1.0]), rng=1).choice_shares([0])


class Named(ps.Search):
    def __init__(self, items, *, label="none", **parts):
        super().__init__(items, **parts)
        self.label = label


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda search: pickle.loads(pickle.dumps(search)), lambda search: search.continued(())],
    ids=["copy", "deepcopy", "pickle", "continued"],
)
def test_copies_of_a_subclass_keep_what_it_adds(again):
    search = Named([[0.0], [1.0], [3.0]], label="mine", rng=1)
    search.ask()
    other = again(search)
    assert (type(other), other.label) == (Named, "mine")
    other.tell(other.ask(), winner=other.ask().left)
    assert (search.answers, other.answers) == (0, 1)


def test_a_pickle_of_an_earlier_version_is_refused_by_name():
    with pytest.raises(InvalidFile):
        ps.Search.__new__(ps.Search).__setstate__({"items": None, "_events": []})


def test_an_argument_that_no_search_has_is_named(tmp_path):
    items = ps.Items([[0.0], [1.0], [3.0]])
    search = ps.Search(items, rng=1)
    search.save(tmp_path / "me.json")
    key = b"a key of more than sixteen bytes"
    for restore in (
        lambda: ps.Search.from_dict(search.to_dict(), items=items, respons=3),
        lambda: ps.Search.from_token(search.to_token(key=key), items=items, key=key, respons=1),
        lambda: ps.Search.load(tmp_path / "me.json", respons=3),
    ):
        with pytest.raises(TypeError, match=r"no (argument )?'respons'"):
            restore()


def test_threads_that_read_one_search_infer_once(monkeypatch):
    search = ps.Search(np.random.default_rng(1).normal(size=(50, 2)), rng=1)
    search.tell(search.ask(), winner=search.ask().left)
    calls, infer = [], engine.infer

    def slow(*given):
        calls.append(1)
        time.sleep(0.1)  # long enough that all threads are there
        return infer(*given)

    monkeypatch.setattr(engine, "infer", slow)
    with ThreadPoolExecutor(4) as pool:
        beliefs = list(pool.map(lambda _: search.belief, range(4)))
    assert len(calls) == 1
    assert all(belief is beliefs[0] for belief in beliefs)
