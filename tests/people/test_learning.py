"""Learning of a study from its own people: schedule, balanced design, and what is learned."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import pairseek as ps
from pairseek.errors import InvalidChoices
from pairseek.people.learning import MIN_SESSIONS, balanced_pair, is_due, learn, learn_appeal, next_due
from pairseek.people.learning.validation import cross_validate, make_trials, predictions
from pairseek.people.population import Choices, Population
from pairseek.people.population.model import FitOptions
from pairseek.people.population.residual import residual_of

IDS = tuple("abcdefghij")


def people(count: int, *, d: int = 0, answers: int = 15, seed: int = 0, names: str = "p") -> Choices:
    """Answers of simulated people: utilities with an appeal, and tastes in d dimensions."""
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(99)
    appeal, places = world.normal(0, 1.5, len(IDS)), world.normal(0, 2.0, (len(IDS), d))
    rows = []
    for person in range(count):
        utility = appeal + places @ rng.normal(size=d)
        for _ in range(answers):
            i, j = rng.choice(len(IDS), 2, replace=False)
            first = rng.random() < 1 / (1 + np.exp(utility[j] - utility[i]))
            rows.append((f"{names}{person}", *((IDS[i], IDS[j]) if first else (IDS[j], IDS[i]))))
    return Choices.from_pairs(rows, ids=IDS)


class TestSchedule:
    def test_learns_at_ten_and_whenever_the_number_has_grown_by_a_quarter(self) -> None:
        learned, at = None, []
        for finished in range(61):
            if is_due(finished, learned):
                learned = finished
                at.append(finished)
        assert at == [10, 13, 17, 22, 28, 35, 44, 55]

    def test_the_next_number_is_that_at_which_it_learns(self) -> None:
        assert next_due(None) == MIN_SESSIONS
        for learned in range(MIN_SESSIONS, 300):
            assert not is_due(next_due(learned) - 1, learned)
            assert is_due(next_due(learned), learned)

    def test_voided_sessions_are_a_reason_to_learn_again(self) -> None:
        assert not is_due(90, 100)
        assert is_due(75, 100)
        assert not is_due(3, 100)


class TestFirstImpression:
    def test_the_appeal_for_six_people_makes_the_picks_of_others_better(self) -> None:
        """Utility of three recommended items over that of a search that knows nobody, 60 people of 8 answers each."""
        items, world = ps.Items(ids=IDS), np.random.default_rng(99)
        appeal = world.normal(0, 1.5, len(IDS))
        crowd = learn_appeal(people(6, answers=8, seed=1), items)
        others = people(60, answers=8, seed=2)
        gained = []
        for person in range(60):
            own = others.only([person])
            picks = []
            for population in (crowd, None):
                search = ps.Search(items, population=population, rng=0)
                for winner, loser in zip(own.winner, own.loser, strict=True):
                    search.observe(IDS[winner], IDS[loser], IDS[winner])
                picks.append([IDS.index(item.id) for item in search.recommend(3)])
            gained.append(appeal[picks[0]].mean() - appeal[picks[1]].mean())
        assert np.mean(gained) > 3 * np.std(gained, ddof=1) / np.sqrt(60)

    def test_items_that_nobody_met_are_there(self) -> None:
        crowd = learn_appeal(people(4, answers=8, seed=1), ps.Items(ids=[*IDS, "new"]))
        assert crowd.items.ids == (*IDS, "new")
        assert crowd.items.d == 0

    def test_the_appeal_needs_more_than_one_person(self) -> None:
        with pytest.raises(InvalidChoices):
            learn_appeal(people(1), ps.Items(ids=IDS))


class TestDesign:
    @pytest.mark.parametrize(("n", "answers", "count"), [(18, 12, 12), (40, 15, 9), (7, 5, 10), (5, 8, 6)])
    def test_every_item_equally_often_connected_and_no_pair_twice(self, n: int, answers: int, count: int) -> None:
        shown, edges = np.zeros(n), set()
        for person in range(count):
            asked: list[frozenset[int]] = []
            for _ in range(answers):
                pair = balanced_pair(n, 7, person * answers, asked)
                assert pair is not None
                assert frozenset(pair) not in asked
                asked.append(frozenset(pair))
                shown[list(pair)] += 1
            edges |= set(asked)
        # Two sections that meet in a round may differ by one, and a pair that is left out by one more.
        assert np.ptp(shown) <= 2 + count * answers * 2 / n * 0.35
        reached = {0}
        for _ in range(n):
            reached |= {item for edge in edges if edge & reached for item in edge}
        assert len(reached) == n

    def test_one_round_has_every_item_twice(self) -> None:
        asked: list[frozenset[int]] = []
        for _ in range(9):
            asked.append(frozenset(balanced_pair(9, 3, 0, asked) or ()))
        assert np.bincount([item for pair in asked for item in pair]).tolist() == [2] * 9
        # The first half of a round has every item once, but for one of an odd number.
        assert np.bincount([item for pair in asked[:4] for item in pair], minlength=9).max() == 1

    def test_it_ends_when_a_person_was_asked_every_pair(self) -> None:
        asked: list[frozenset[int]] = []
        while (pair := balanced_pair(4, 1, 0, asked)) is not None:
            asked.append(frozenset(pair))
        assert set(asked) == set(map(frozenset, itertools.combinations(range(4), 2)))

    def test_only_pairs_that_are_allowed(self) -> None:
        allowed = {frozenset((0, 1)), frozenset((2, 3))}
        first = balanced_pair(30, 1, 0, [], allowed)
        assert frozenset(first or ()) in allowed
        assert balanced_pair(30, 1, 0, list(allowed), allowed) is None


class TestAppealAlone:
    def test_it_is_the_penalized_bradley_terry_estimate(self) -> None:
        choices = people(60, seed=1)
        found = Population.fit(choices, dimension=0, residual=0.0)
        assert found.items.d == 0
        # An independent fit with a Gaussian prior whose deviation is that of the estimates.
        deviation = float(np.std(found.items.appeal))

        def loss(utility: np.ndarray) -> float:
            margin = utility[choices.winner] - utility[choices.loser]
            return float(np.sum(np.logaddexp(0.0, -margin)) + 0.5 * np.sum((utility / deviation) ** 2))

        other = minimize(loss, np.zeros(len(IDS)), method="BFGS").x
        own = np.asarray(found.items.appeal)
        # The population is a little smaller, because it allows for an unknown scale.
        assert np.corrcoef(own, other)[0, 1] > 0.999
        assert 0.85 < np.std(own) / np.std(other) < 1.05

    def test_a_search_begins_with_it_and_asks(self) -> None:
        found = Population.fit(people(30, seed=2), dimension=0, residual=1.5)
        search = ps.Search(ps.Items(ids=IDS), population=found, rng=1)
        best = IDS[int(np.argmax(found.items.appeal))]
        assert search.recommend(1)[0].id == best
        for _ in range(5):
            query = search.ask()
            search.tell(query, winner=query.left)
        assert search.answers == 5

    def test_it_survives_saving(self, tmp_path: object) -> None:
        found = Population.fit(people(20, seed=3), dimension=0)
        again = Population.from_record(found.record())
        assert again.items.hash == found.items.hash
        assert again.residual == found.residual
        assert again.prior == found.prior


class TestLesson:
    def test_appeal_first_and_coordinates_when_they_predict_better(self) -> None:
        items = ps.Items(ids=IDS)
        first = learn(people(12, d=2, seed=4), items)
        assert first.dimension in (0, 1)
        assert first.before.accuracy == 0.5
        lesson = first
        for count in (40, 150):
            lesson = learn(people(count, d=2, seed=4), items, previous=lesson.population)
        assert lesson.dimension in (1, 2, 3)
        # 0.79 of 1,200 answers are predicted, with a standard error of 0.012; a coin predicts 0.5.
        assert lesson.after.accuracy > 0.75
        assert lesson.sessions == 150
        assert lesson.record()["dimension"] == lesson.dimension

    def test_people_without_common_tastes_get_no_coordinates(self) -> None:
        items = ps.Items(ids=IDS)
        lesson = learn(people(80, seed=5), items)
        assert lesson.dimension == 0
        assert lesson.population.residual > 0.0

    def test_residual_utilities_stay_unless_the_answers_speak_against_them(self) -> None:
        # Few answers say little about residual utilities; without any, a search would soon stop learning.
        lesson = learn(people(12, d=1, answers=6, seed=9), ps.Items(ids=IDS))
        assert lesson.population.residual == pytest.approx(residual_of(0.6))
        # People who toss a coin between items of equal appeal contradict themselves, which such utilities would not.
        rng = np.random.default_rng(3)
        rows = []
        for person in range(60):
            for _ in range(16):
                i, j = rng.choice(2, 2, replace=False) + (0 if rng.random() < 0.5 else 2)
                rows.append((f"p{person}", *(("a", "z")[k] if i < 2 else "bc"[k] for k in (i % 2, j % 2))))
            rows += [(f"p{person}", one, other) for one, other in (("a", "b"), ("z", "c"), ("a", "c"))]
        tested = cross_validate(Choices.from_pairs(rows, ids=list("azbc")), None, [FitOptions(0)])
        assert tested.share < 0.6

    def test_predictions_are_those_of_a_search(self) -> None:
        population = learn(people(40, d=1, seed=8), ps.Items(ids=IDS)).population
        trial = make_trials(people(1, d=1, seed=11), 0)[0]
        search = ps.Search(ps.Items(ids=IDS), population=population, rng=1)
        for winner, loser in trial.seen.tolist():
            search.observe(IDS[winner], IDS[loser], winner=IDS[winner])
        chances = [search.expect(IDS[winner], IDS[loser]).probability_left for winner, loser in trial.hidden.tolist()]
        scores, right = predictions(population, [trial])
        assert scores[0] == pytest.approx(np.mean(np.log(chances)), abs=1e-6)
        assert right[0] == np.mean(np.array(chances) > 0.5)

    def test_an_item_that_nobody_met_is_in_the_middle(self) -> None:
        items = ps.Items(ids=[*IDS, "new"])
        lesson = learn(people(60, d=2, seed=6), items)
        assert lesson.unmet == ("new",)
        utilities, _ = lesson.population.utilities()
        assert utilities[-1] == pytest.approx(utilities[:-1].mean())
        ps.Search(items, population=lesson.population, rng=1).ask()

    def test_items_that_were_added_since_are_searched_too(self) -> None:
        lesson = learn(people(60, d=2, seed=6), ps.Items(ids=IDS))
        later = ps.Items(ids=["early", *IDS], labels=["Early", *IDS])
        search = ps.Search(later, population=lesson.population, rng=1)
        assert search.items.labels[0] == "Early"
        assert np.array_equal(search.items.coordinates[1:], lesson.population.items.coordinates)

    def test_a_version_that_learned_from_everybody_is_not_measured_by_them(self) -> None:
        items, choices = ps.Items(ids=IDS), people(30, seed=6)
        first = learn(choices, items)
        again = learn(choices, items, previous=first.population, since=())
        assert (again.before, again.after) == (None, None)
        later = learn(choices, items, previous=first.population, since=("p0", "p1", "p2"))
        assert later.before is not None
        assert later.before.people == 3

    def test_given_coordinates_stay(self) -> None:
        items = ps.Items(np.random.default_rng(0).normal(size=(len(IDS), 2)), ids=IDS)
        lesson = learn(people(30, seed=7), items)
        assert lesson.dimension is None
        assert lesson.population.given == items.hash

    def test_it_repeats_to_the_bit(self) -> None:
        first, second = (learn(people(40, d=1, seed=8), ps.Items(ids=IDS)) for _ in range(2))
        assert first.population.record() == second.population.record()

    def test_a_study_cannot_learn_from_ties_only(self) -> None:
        ties = [("ann", "a", "b"), ("bob", "a", "b")]
        with pytest.raises(InvalidChoices):
            learn(Choices.from_pairs([], ids=IDS, tied=ties), ps.Items(ids=IDS))

    def test_a_study_cannot_learn_from_one_person(self) -> None:
        with pytest.raises(InvalidChoices):
            learn(Choices.from_pairs([("ann", "a", "b"), ("ann", "c", "b")], ids=IDS), ps.Items(ids=IDS))

    def test_a_study_cannot_learn_from_random_answers(self) -> None:
        rng = np.random.default_rng(0)
        rows = [(f"p{p}", *(IDS[i] for i in rng.choice(10, 2, replace=False))) for p in range(40) for _ in range(12)]
        with pytest.raises(InvalidChoices):
            learn(Choices.from_pairs(rows, ids=IDS), ps.Items(ids=IDS))
