"""Goals of a search: strategy, stop rule and recommendations for each."""

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.search.engine import selection_context
from pairseek.search.gains import expected_gain


@pytest.fixture
def items():
    return ps.Items(np.random.default_rng(1).normal(size=(30, 2)))


@pytest.mark.parametrize(
    ("goal", "strategy", "stop"),
    [
        ("taste", ps.InfoGain(), ()),
        ("best", ps.EUBO(), (ps.GainBelow(0.1),)),
        ("list", ps.Shortlist(3), (ps.GainBelow(size=3),)),
    ],
)
def test_a_goal_sets_strategy_and_stop_rule(items, goal, strategy, stop, tmp_path):
    search = ps.Search(items, goal=goal, rng=1)
    assert search.strategy == strategy
    assert search.stop == stop
    assert search.configuration["goal"] == goal
    search.tell(search.ask(), winner=search.ask().left)
    search.save(tmp_path / "search.json")
    loaded = ps.Search.load(tmp_path / "search.json")
    assert loaded.goal == search.goal
    assert loaded.configuration == search.configuration
    assert loaded.ask() == search.ask()


def test_the_default_is_taste(items):
    assert ps.Search(items).goal.name == "taste"


def test_what_is_given_wins(items):
    search = ps.Search(items, goal="best", strategy=ps.InfoGain(), stop=5)
    assert search.strategy == ps.InfoGain()
    assert search.stop == (ps.AfterAnswers(5),)
    assert ps.Search(items, goal="list", stop=()).stop == ()


def test_a_list_is_recommended_by_expected_utility(items):
    """Without residual utilities the other goals order by the probability of being the best."""
    found = {}
    for goal in ("taste", "list"):
        search = ps.Search(items, response=ps.Logistic(), strategy=ps.InfoGain(), goal=goal, rng=1)
        for left, right in ((0, 1), (2, 3), (4, 5)):
            search.observe(left, right, winner=left)
        found[goal] = search.recommend(30)
    probability = [one.probability for one in found["taste"]]
    utility = [one.expected_utility for one in found["list"]]
    assert probability == sorted(probability, reverse=True)
    assert utility == sorted(utility, reverse=True)
    assert [one.id for one in found["taste"]] != [one.id for one in found["list"]]
    assert {one.id: one.probability for one in found["taste"]} == {one.id: one.probability for one in found["list"]}


@pytest.mark.parametrize("count", [2, 3, 4])
def test_few_items_have_a_shorter_list(count):
    search = ps.Search(ps.Items(ids=list("abcd")[:count]), goal="list", rng=1)
    assert search.strategy == ps.Shortlist(min(3, count - 1))
    search.tell(search.ask(), winner=search.ask().left)
    assert len(search.recommend(3)) == min(3, count)


def test_an_unknown_goal_is_named(items):
    with pytest.raises(InvalidParameter) as caught:
        ps.Search(items, goal="bets")
    assert caught.value.field == "goal"


def test_a_space_has_no_items_to_find():
    with pytest.raises(Unsupported):
        ps.Search(ps.Space([-1, -1], [1, 1]), goal="best")
    with pytest.raises(Unsupported):
        ps.Search(ps.Space([-1, -1], [1, 1]), stop=ps.GainBelow())


def context_of(search):
    return selection_context(search._state.configuration, search.belief)


class TestGain:
    """The rule by expected gain."""

    def test_the_gain_is_that_of_the_best_exchange(self, items):
        """Against draws of all utilities from the belief: 200,000 leave an error of 0.005."""
        response = ps.Logistic(0.5, "constant", residual=1.0)
        search = ps.Search(items, response=response, goal="list", rng=1)
        for left, right in ((0, 1), (2, 3), (4, 5), (0, 7)):
            search.observe(left, right, winner=left)
        belief, rng, count = search.belief, np.random.default_rng(2), 200_000
        residuals = belief.residuals
        joint = np.block([[belief.covariance, residuals.cross], [residuals.cross.T, residuals.covariance]])
        drawn = rng.multivariate_normal(np.concatenate([belief.mean, residuals.mean]), joint, size=count, method="eigh")
        own = rng.normal(size=(count, items.n))
        own[:, residuals.rows] = drawn[:, 2:]
        utility = -0.5 * np.sum((drawn[:, None, :2] - items.coordinates) ** 2, axis=2) + own
        order = np.argsort(-utility.mean(axis=0))
        for size in (1, 3):
            gains = [np.maximum(utility[:, q] - utility[:, p], 0.0).mean() for p in order[:size] for q in order[size:]]
            assert expected_gain(context_of(search), size) == pytest.approx(max(gains), abs=0.02)

    def test_it_is_free_of_the_scale_of_the_items(self, items):
        """A change of unit changes no logit, under normalized noise too."""
        gains = []
        for scale in (1.0, 100.0):
            search = ps.Search(ps.Items(scale * items.coordinates), goal="best", rng=1)
            search.observe(0, 1, winner=0)
            gains.append(expected_gain(context_of(search), 1))
        assert gains[0] == pytest.approx(gains[1], rel=1e-6)

    @pytest.mark.parametrize(("d", "goal"), [(0, "best"), (0, "list"), (2, "best"), (2, "list")])
    def test_a_search_ends_as_forecast(self, d, goal):
        """15 people: the median number of answers is within a factor of 2 of the forecast before the first one."""
        items = ps.Items(np.random.default_rng(1).normal(size=(40, d))) if d else ps.Items(ids=range(40))
        response = ps.Logistic(None if d else 1.0, "normalized" if d else "constant", residual=1.2)
        counts, forecasts = [], []
        for person in range(15):
            stop = ps.GainBelow(0.2, 1 if goal == "best" else 3)
            search = ps.Search(items, response=response, goal=goal, stop=stop, rng=person)
            user = ps.SimulatedUser(np.random.default_rng(person).normal(size=d), search.response, rng=person)
            forecasts.append(search.forecast())
            while search.finished is None and search.answers < 80:
                query = search.ask()
                search.tell(query, winner=user.answer(items, query))
            counts.append(search.answers)
        assert "one more comparison would improve" in search.finished
        assert search.forecast() == 0
        assert 0.5 < np.median(counts) / forecasts[0] < 2.0

    def test_a_small_gain_has_no_forecast(self):
        """The gain falls so slowly that 11 answers were said and 31 came."""
        assert ps.Search(ps.Items(ids=range(40)), goal="best", rng=1).forecast() is None

    @pytest.mark.parametrize("gain", [0, -1, float("nan"), "x"])
    def test_the_gain_must_be_a_number_above_zero(self, gain):
        with refused("gain") as caught:
            ps.GainBelow(gain)
        assert "give a number of logits above 0" in str(caught.value)
