"""Tests of stop rules and forecasts of the remaining answers."""

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.errors import SearchFinished, Unsupported

FEW = ps.Particles(400)


@pytest.fixture(scope="module")
def items():
    return ps.Items(np.random.default_rng(1).normal(size=(60, 2)))


def run(search, seed=1, most=200):
    user = ps.SimulatedUser(np.array([0.5, 0.2]), search.response, rng=seed)
    for _ in range(most):
        if search.finished is not None:
            return search
        query = search.ask()
        search.tell(query, winner=user.answer(search.items, query))
    return search


def test_a_number_of_answers_stops_and_ask_says_why(items):
    search = run(ps.Search(items, posterior=FEW, rng=1, stop=4))
    assert search.answers == 4
    assert search.finished == "4 answers were given"
    with pytest.raises(SearchFinished) as error:
        search.ask()
    assert error.value.reason == "4 answers were given"
    search.undo()
    assert search.finished is None
    search.ask()


def test_skips_and_observations_do_not_count_as_answers(items):
    search = ps.Search(items, posterior=FEW, rng=1, stop=2)
    search.skip(search.ask())
    search.observe(0, 1, winner=0)
    search.tell(search.ask(), tie=True)
    assert search.finished is None
    assert search.forecast() == 1


def test_a_small_radius_stops(items):
    search = run(ps.Search(items, response=ps.Logistic(8.0), posterior=FEW, rng=1, stop=ps.RadiusBelow(0.4)))
    assert search.finished.startswith("the 95% radius is 0.")
    assert search.estimate().credible_radius() < 0.4
    search.undo()
    assert search.estimate().credible_radius() >= 0.4


def test_little_information_stops(items):
    search = run(ps.Search(items, posterior=FEW, rng=1, stop=ps.InformationBelow(0.1)))
    assert "bits, below 0.1" in search.finished
    search.undo()
    assert search.ask().info.information >= 0.1


def test_a_sure_best_item_stops():
    items = ps.Items([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
    search = run(ps.Search(items, response=ps.Logistic(3.0), posterior=FEW, rng=1, stop=ps.BestItemFound(0.8)))
    assert search.finished.startswith("one item is the best with probability 0.")
    assert search.recommend(1)[0].probability >= 0.8


def test_the_first_rule_that_is_met_counts(items):
    search = run(ps.Search(items, posterior=FEW, rng=1, stop=[ps.RadiusBelow(1e-9), ps.AfterAnswers(3)]))
    assert search.finished == "3 answers were given"


@pytest.mark.parametrize(
    "rule",
    [ps.AfterAnswers(12), ps.RadiusBelow(0.8), ps.InformationBelow(0.12)],
    ids=lambda rule: rule.name,
)
def test_forecasts_come_true_within_a_factor(items, rule):
    """A forecast is an expectation: over six users the mean of what came is within a factor of 1.6 of it."""
    told, came = [], []
    for seed in range(6):
        search = ps.Search(items, response=ps.Logistic(4.0), posterior=FEW, rng=seed, stop=rule)
        told.append(search.forecast())
        came.append(run(search, seed).answers)
        assert search.forecast() == 0
    assert np.mean(told) / 1.6 < np.mean(came) < np.mean(told) * 1.6


def test_when_the_best_item_is_found_cannot_be_told_before():
    items = ps.Items([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
    rules = [ps.BestItemFound(0.8), ps.AfterAnswers(150)]
    alone, both = (
        ps.Search(items, response=ps.Logistic(3.0), posterior=FEW, rng=1, stop=stop) for stop in (rules[0], rules)
    )
    assert alone.forecast() is None
    assert both.forecast() is None  # 150 answers are the most that it takes
    assert run(alone).finished.startswith("one item is the best")
    assert alone.forecast() == 0


def test_many_questions_at_once_are_no_more_than_the_rules_allow(items):
    search = ps.Search(items, posterior=FEW, rng=1, stop=[ps.AfterAnswers(9), ps.AfterAnswers(4)])
    assert len(search.ask_many(10)) == 4
    first, second = search.ask_many(2)
    search.tell(second, winner=second.left)
    assert len(search.ask_many(10)) == 3
    search.skip(first)
    queries = search.ask_many(10)
    assert len(queries) == 3
    for query in queries:
        search.tell(query, tie=True)
    assert search.finished == "4 answers were given"
    with pytest.raises(SearchFinished):
        search.ask_many(1)


def test_finished_is_said_in_words_when_no_pair_is_left():
    items = ps.Items([[0.0], [1.0], [3.0]])
    search = ps.Search(items, posterior=FEW, rng=1, rest=ps.Rest(item=1), stop=ps.InformationBelow(0.01))
    search.tell(search.ask(), winner=search.ask().left)
    assert search.finished == "the next answer would tell 0 bits, below 0.01"
    assert search.forecast() == 0
    with pytest.raises(SearchFinished):
        search.ask()


def test_information_is_judged_by_what_would_be_asked_now(items):
    """The query that is open was chosen before the observations; the rule looks at the belief after them."""
    search = ps.Search(items, response=ps.Logistic(6.0), posterior=FEW, rng=1, stop=ps.InformationBelow(0.35))
    opened = search.ask()
    assert opened.info.information > 0.35
    asked = run(ps.Search(items, response=ps.Logistic(6.0), posterior=FEW, rng=1, stop=search.stop), 3).history
    for event in asked:
        search.observe(event.left, event.right, winner=event.winner)
    assert search.pending == (opened,)
    assert "bits, below 0.35" in search.finished


def test_one_answer_is_told_in_the_singular(items):
    search = ps.Search(items, posterior=FEW, rng=1, stop=1)
    search.tell(search.ask(), tie=True)
    assert search.finished == "1 answer was given"


@pytest.mark.parametrize("stop", [np.int64(2), 2, (ps.AfterAnswers(np.int64(2)),)])
def test_a_number_of_answers_may_come_from_numpy(items, stop):
    search = ps.Search(items, posterior=FEW, rng=1, stop=stop)
    assert search.stop == (ps.AfterAnswers(2),)
    assert type(search.stop[0].count) is int


def test_without_rules_or_beyond_the_horizon_there_is_no_forecast(items):
    assert ps.Search(items, posterior=FEW, rng=1).forecast() is None
    plain = {"response": ps.Logistic(), "posterior": FEW, "rng": 1}
    assert ps.Search(items, stop=ps.RadiusBelow(1e-9), **plain).forecast() is None
    assert ps.Search(items, stop=(ps.RadiusBelow(1e-9), ps.AfterAnswers(12)), **plain).forecast() == 12


@pytest.mark.parametrize(
    ("catalogue", "rule"),
    [
        (ps.Items(np.eye(4)[:, :2]), ps.InformationBelow(0.15)),
        (ps.Items(np.eye(4)[:, :2]), ps.RadiusBelow(0.1)),
        (ps.Items(ids=range(4)), ps.InformationBelow(0.15)),
    ],
)
def test_with_residual_utilities_radius_and_information_have_no_forecast(catalogue, rule):
    """Forecasts of the default model were wrong by factors of up to three."""
    search = ps.Search(catalogue, rng=1, stop=rule)
    assert search.response.residual > 0
    assert search.forecast() is None
    assert ps.Search(catalogue, rng=1, stop=(rule, ps.AfterAnswers(12))).forecast() is None


def test_the_best_item_has_no_meaning_in_a_continuous_space():
    with pytest.raises(Unsupported):
        ps.Search(ps.Space([0, 0], [1, 1]), posterior=FEW, rng=1, stop=ps.BestItemFound())


@pytest.mark.parametrize(
    ("make", "field", "text"),
    [
        (lambda: ps.AfterAnswers(0), "count", "the count of AfterAnswers is 0: give a whole number, at least 1"),
        (lambda: ps.RadiusBelow(0.0), "radius", "give a radius above 0"),
        (lambda: ps.RadiusBelow(1.0, level=1.0), "level", "give a share between 0 and 1"),
        (lambda: ps.InformationBelow(1.0), "bits", "give a number of bits between 0 and 1"),
        (lambda: ps.BestItemFound(0.0), "probability", "give a probability between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_rejected(make, field, text):
    with refused(field) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ps.AfterAnswers(2.5), "count"),
        (lambda: ps.RadiusBelow("x"), "radius"),
        (lambda: ps.RadiusBelow(1.0, level=None), "level"),
        (lambda: ps.InformationBelow("x"), "bits"),
        (lambda: ps.BestItemFound("x"), "probability"),
    ],
)
def test_settings_of_the_wrong_type_are_rejected(make, field):
    with refused(field):
        make()
