"""Recorded people replayed: what is asked, what is predicted, and how it is told."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from helpers.populations import simulated
from pairseek.cli import app as _app
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.evaluate import evaluate, strategies_from
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.evaluation.evaluation import _split_people
from pairseek.experiments.evaluation.replay import Popularity, _chances, _measured, decided_width, replayed
from pairseek.experiments.evaluation.results import agreement_of
from pairseek.experiments.evaluation.specification import MEASURES, PLAIN, POPULARITY, Arm, arms
from pairseek.people.population.leave_one_out import FitOfAll


@pytest.fixture(scope="module")
def truth():
    return simulated(21, people=70, pairs=25, n=10)


@pytest.fixture(scope="module")
def population(truth):
    return ps.Population.fit(truth.choices.only(range(60)), truth.items)


@pytest.fixture(scope="module")
def evaluated(truth, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated") / "results"
    settings = {"items": truth.items, "answers": (0, 3, 8), "people": 10, "splits": 2, "samples": 400, "seed": 5}
    return folder, settings, evaluate(truth.choices, folder, **settings)


def once(truth, population, arm, person=None, **given):
    settings = {"answers": (0, 3, 8), "samples": 400, "seed": 1, **given}
    popular = Popularity.of(truth.choices.only(range(60)))
    person = Person.of(truth.choices, 65) if person is None else person
    return replayed(person, arm, population, truth.items, popular, **settings)


def pairs_of(winner, loser):
    return {frozenset(pair) for pair in zip(winner.tolist(), loser.tolist(), strict=True)}


@pytest.fixture
def told(monkeypatch):
    """(rows of the two items, winner, whether it was a tie) of every answer that a search is told."""
    out = []
    tell = ps.Search.tell

    def spy(search, query, winner=None, **more):
        rows = frozenset((search.items.index(query.left), search.items.index(query.right)))
        out.append((rows, winner, more.get("tie", False)))
        tell(search, query, winner, **more)

    monkeypatch.setattr(ps.Search, "tell", spy)
    return out


def tied(truth):
    """Return the choices of a person who decided four pairs and rated four others equally."""
    decided, equal = [(0, 1), (2, 3), (4, 5), (6, 7)], [(0, 2), (1, 3), (4, 6), (5, 7)]
    names = truth.items.ids
    return ps.Choices.from_pairs(
        [("u", names[a], names[b]) for a, b in decided], ids=names, tied=[("u", names[a], names[b]) for a, b in equal]
    )


class TestOnePerson:
    def test_withheld_pairs_are_never_asked_and_alone_are_predicted(self, truth, population, told):
        person = Person.of(truth.choices, 65)
        assert len(pairs_of(person.winner, person.loser)) == len(person)
        assert person.withheld.sum() == round(0.3 * len(person))
        askable = pairs_of(person.winner[~person.withheld], person.loser[~person.withheld])
        for strategy in (ps.InfoGain(), ps.Random()):
            told.clear()
            rows, seconds, asked = once(truth, population, Arm("x", strategy))
            assert asked == len(told) == 8
            assert len({pair for pair, *_ in told}) == 8
            assert {pair for pair, *_ in told} <= askable
            for pair, winner, tie in told:
                at = next(i for i in range(len(person)) if {person.winner[i], person.loser[i]} == pair)
                assert winner == truth.items.ids[person.winner[at]]
                assert not tie
            assert [row[MEASURES.index("predicted")] for row in rows] == [person.withheld.sum()] * 3
            assert seconds == sorted(seconds)

    def test_without_withheld_pairs_those_not_asked_are_predicted(self, truth, population, told):
        person = Person.of(truth.choices, 65, withhold=0.0)
        rows, _, _ = once(truth, population, Arm("InfoGain", ps.InfoGain()), person)
        assert len({pair for pair, *_ in told}) == 8
        predicted = [row[MEASURES.index("predicted")] for row in rows]
        assert predicted == [len(person), len(person) - 3, len(person) - 8]

    def test_what_is_withheld_follows_from_the_person_and_the_seed_alone(self, truth):
        person = Person.of(truth.choices, 65)
        withheld = pairs_of(person.winner[person.withheld], person.loser[person.withheld])
        # Another place in the file, other people beside them, and another order of their answers.
        moved = truth.choices.only([65, 3])
        order = np.r_[np.arange(moved.starts[1])[::-1], np.arange(moved.starts[1], len(moved))]
        moved = replace(moved, winner=moved.winner[order], loser=moved.loser[order])
        again = Person.of(moved, 0)
        assert pairs_of(again.winner[again.withheld], again.loser[again.withheld]) == withheld
        other = Person.of(truth.choices, 65, seed=1)
        assert pairs_of(other.winner[other.withheld], other.loser[other.withheld]) != withheld
        # A larger share withholds more, and the same pairs too.
        more = Person.of(truth.choices, 65, withhold=0.5)
        assert pairs_of(more.winner[more.withheld], more.loser[more.withheld]) > withheld

    def test_answers_that_teach_nothing_do_not_seem_to(self, truth, population):
        """Everybody is known to be at one point: accuracy may not rise because hard pairs are asked away."""
        known = replace(population, covariance=1e-8 * np.eye(2))
        at = MEASURES.index("accuracy")

        def rise(withhold):
            people = [Person.of(truth.choices, row, withhold=withhold) for row in range(60, 70)]
            rows = [once(truth, known, Arm("InfoGain", ps.InfoGain()), person, samples=None)[0] for person in people]
            return np.mean([row[2][at] - row[0][at] for row in rows])

        assert rise(0.3) == 0.0
        # InfoGain asks the pairs near a half, so that the others come out as predicted more often.
        assert rise(0.0) > 0.03

    @pytest.mark.parametrize(("pairs", "withhold", "count"), [(2, 0.3, 1), (2, 0.99, 1), (5, 0.01, 1), (5, 0.3, 2)])
    def test_one_pair_at_least_is_withheld_and_one_can_be_asked(self, pairs, withhold, count):
        choices = ps.Choices.from_ratings([("u", "a", 5), ("u", "b", 4), ("u", "c", 3), ("u", "d", 2), ("u", "e", 1)])
        choices = choices.rows(np.arange(len(choices)) < pairs)
        assert Person.of(choices, 0, withhold=withhold).withheld.sum() == count

    def test_tied_pairs_are_asked_and_answered_by_one_coin_for_all(self, truth, population, told):
        choices = tied(truth)
        person = Person.of(choices, 0, withhold=0.25)
        assert person.withheld.sum() == 1
        # Three of the four ties can be asked, as three of the four decided pairs.
        assert len(person.tied) == 3
        answers = {}
        for strategy in (ps.InfoGain(), ps.Random()):
            told.clear()
            rows, _, asked = once(truth, population, Arm("x", strategy), person, answers=(0, 6, 7))
            assert asked == 6
            assert not any(tie for *_, tie in told)
            # Ties are not predicted, and nobody is said to have answered seven.
            assert [row[MEASURES.index("predicted")] for row in rows[:2]] == [1, 1]
            assert np.isnan(rows[2][0])
            answers[strategy.name] = {pair: winner for pair, winner, _ in told}
        assert answers["infogain"] == answers["random"]
        told.clear()
        once(truth, population, Arm("x", ps.InfoGain()), person, answers=(6,), ties="tie")
        assert {pair for pair, _, tie in told if tie} == {frozenset(pair) for pair in person.tied.tolist()}
        assert all((winner is None) == tie for _, winner, tie in told)

    def test_coins_are_fair_and_change_with_the_seed(self):
        choices = ps.Choices.from_ratings([(str(person), item, 1) for person in range(40) for item in range(6)])
        coins = [
            np.concatenate(
                [
                    (lambda tied: tied[:, 0] < tied[:, 1])(Person.of(choices, p, withhold=0, seed=s).tied)
                    for p in range(40)
                ]
            )
            for s in (0, 1)
        ]
        # 600 fair coins: heads within four standard deviations, 0.02 each; two sets agree by half as well.
        assert abs(coins[0].mean() - 0.5) < 0.08
        assert abs((coins[0] == coins[1]).mean() - 0.5) < 0.08

    def test_before_any_answer_everything_is_what_the_population_says(self, truth, population):
        """Tau and accuracy pair by pair, from the utilities of the population: appeal - k|w - x|² at the mean."""
        # An appeal that outweighs the distances: whoever forgets it, or turns it round, is told.
        places = ps.Items(population.items.coordinates, population.items.ids, appeal=20.0 * truth.utility)
        population = replace(population, items=places)
        person = Person.of(truth.choices, 65, withhold=0.0)
        rows, _, _ = once(truth, population, Arm("InfoGain", ps.InfoGain()), person)
        utility = [
            float(places.appeal[i] - population.k * np.sum((places.coordinates[i] - population.mean) ** 2))
            for i in range(places.n)
        ]
        signs = [np.sign(utility[w] - utility[x]) for w, x in zip(person.winner, person.loser, strict=True)]
        # The mean of 4000 particles is not quite the population's: one pair of so many may change sides.
        one = 2.0 / len(person)
        assert abs(np.mean(signs)) > 2 * one
        assert rows[0][MEASURES.index("kendall_tau")] == pytest.approx(np.mean(signs), abs=1.01 * one)
        assert rows[0][MEASURES.index("accuracy")] == pytest.approx(0.5 + 0.5 * np.mean(signs), abs=1.01 * one)

    @pytest.mark.parametrize("arm", [Arm("Random", ps.Random()), Arm(POPULARITY)])
    def test_nothing_is_said_of_answers_that_were_not_given(self, truth, population, arm):
        person = Person.of(truth.choices, 65)
        count = int((~person.withheld).sum())
        rows, _, asked = once(truth, population, arm, person, answers=(0, count, count + 1, count + 5))
        assert asked == (count if arm.strategy else 0)
        assert [np.isnan(row[0]) for row in rows] == [False, False, True, True]

    def test_without_withheld_pairs_nothing_is_left_in_the_end(self, truth, population):
        person = Person.of(truth.choices, 65, withhold=0.0)
        count = len(person)
        rows, _, _ = once(truth, population, Arm("Random", ps.Random()), person, answers=(count - 1, count))
        assert [np.isnan(row[0]) for row in rows] == [False, True]

    def test_a_pair_answered_twice_counts_by_its_first_answer(self):
        choices = ps.Choices.from_pairs([("u", "a", "b"), ("u", "b", "a"), ("u", "c", "a"), ("v", "a", "c")])
        person = Person.of(choices, 0, withhold=0.0)
        assert list(zip(person.winner.tolist(), person.loser.tolist(), strict=True)) == [(0, 1), (2, 0)]
        agreement = agreement_of(choices)
        assert (agreement.share, agreement.people) == (0.0, 1)
        assert agreement_of(choices.only([1])) is None

    def test_who_predicts_better_than_before_any_answer_gains(self):
        chances = np.array([0.6, 0.7])
        gain = MEASURES.index("gain")
        told = [_measured(chances, before, chances, 0.0)[gain] for before in (chances - 0.1, chances, chances + 0.1)]
        assert told == [1.0, 0.5, 0.0]

    def test_popularity_is_what_most_prefer(self, truth, population):
        popular = Popularity.of(truth.choices)
        assert np.corrcoef(popular.score, truth.utility)[0, 1] > 0.9
        rows, _, asked = once(truth, population, Arm(POPULARITY))
        assert asked == 0
        assert rows[0] == rows[2]

    def test_a_population_without_somebody_forgets_them(self, truth):
        choices = truth.choices
        everybody = ps.Population.fit(choices, truth.items)
        # 70 people are enough for the short arm, from the fit of all.
        short = FitOfAll.of(everybody, choices, truth.items).without(3)
        long = ps.Population.fit(choices.only([p for p in range(70) if p != 3]), truth.items)
        known = [one.utilities()[0] - one.utilities()[0].mean() for one in (short, everybody, long)]
        # The scale has other folds without the person, so a common factor is removed.
        known = [one / one.std() for one in known]
        # Ten rounds forget most of one person, who is a seventieth of all.
        assert np.abs(known[0] - known[2]).max() < 0.5 * np.abs(known[1] - known[2]).max()
        few = choices.only(range(20))
        left = FitOfAll.of(everybody, few, truth.items).without(3)
        fitted = ps.Population.fit(few.only([0, 1, 2, *range(4, 20)]), truth.items)
        assert left.mean == pytest.approx(fitted.mean, rel=1e-9)
        assert left.items.appeal / left.k == pytest.approx(fitted.items.appeal / fitted.k, rel=1e-9, abs=1e-9)


class TestAll:
    def test_answers_help_and_the_table_says_so(self, evaluated):
        folder, _, results = evaluated
        assert results.plan.labels == ("InfoGain", "Random", PLAIN, POPULARITY)
        accuracy, error = results.curve("InfoGain", "accuracy")
        assert accuracy[0] > 0.6
        assert accuracy[2] > accuracy[0]
        assert 0 < error[0] < 0.1
        assert results.curve(PLAIN, "log_loss")[0][2] > results.curve("InfoGain", "log_loss")[0][2] + 0.02
        with (folder / "summary.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 4 * 3
        assert float(rows[0]["accuracy"]) == accuracy[0]
        assert {"accuracy_se", "log_loss", "kendall_tau", "gain", "calibration_error"} <= set(rows[0])
        assert len((folder / "people.csv").read_text().splitlines()) == 1 + 2 * 4 * 10 * 3
        assert ps.Population.load(folder / "population-2.json").people == 60

    def test_calibration_adds_up(self, evaluated):
        _, _, results = evaluated
        bins = results.calibration("InfoGain", 0)
        assert sum(n for *_, n in bins) == results.each("InfoGain", "predicted")[:, 0].sum()
        assert all(0.5 <= chance <= 1 and 0 <= share <= 1 for chance, share, _ in bins)
        assert 0 <= results.calibration_error("InfoGain", 0) < 0.3

    def test_a_person_in_two_splits_is_one_person(self, evaluated):
        _, _, results = evaluated
        results = replace(results, people=[results.people[0], results.people[0][::-1]])
        names = [name for split in results.people for name in split]
        values = results.each("Random", "accuracy")[:, 0]
        means = [values[[i for i, other in enumerate(names) if other == name]].mean() for name in set(names)]
        mean, error = results.curve("Random", "accuracy")
        assert mean[0] == pytest.approx(np.mean(means))
        assert error[0] == pytest.approx(np.std(means, ddof=1) / np.sqrt(len(means)))

    def test_the_share_of_all_pairs_counts_pairs_and_not_people(self, evaluated):
        _, _, results = evaluated
        right, pairs = (results.each("Random", name)[:, 1] for name in ("accuracy", "predicted"))
        share, error = results.pooled("Random")
        assert share[1] == pytest.approx((right * pairs).sum() / pairs.sum())
        assert share[1] != pytest.approx(right.mean(), abs=1e-6)
        # By leaving out each person in turn.
        apart = [np.delete(right * pairs, i).sum() / np.delete(pairs, i).sum() for i in range(len(pairs))]
        jackknife = np.sqrt((len(pairs) - 1) * np.var(apart))
        assert error[1] == pytest.approx(jackknife, rel=0.1)

    @pytest.mark.parametrize(("people", "splits"), [(10, 3), (25, 5), (29, 1), (7, 4)])
    def test_nobody_is_held_out_twice_before_everybody_was(self, people, splits):
        able = np.arange(100, 130)
        held = _split_people(able, 40, people, splits, 3, alone=False)
        assert held.shape == (splits, people)
        assert all(len(set(split)) == people and set(split) <= set(able) for split in held.tolist())
        rounds = 30 // people
        for first in range(0, splits, rounds):
            together = held[first : first + rounds].ravel()
            assert len(set(together.tolist())) == len(together)
        assert not np.array_equal(held, _split_people(able, 40, people, splits, 4, alone=False))

    def test_an_interrupted_run_goes_on_to_the_same_table(self, truth, evaluated, tmp_path):
        folder, settings, _ = evaluated
        part = tmp_path / "part"
        part.mkdir()
        for name in ("run.json", "specification.toml", "population-1.json", "population-2.json"):
            (part / name).write_bytes((folder / name).read_bytes())
        lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
        (part / "trials.jsonl").write_bytes(b"".join(lines[:70]) + lines[70][:20])
        seen = []
        evaluate(truth.choices, part, **settings, progress=lambda p: seen.append(sum(p.done)))
        assert seen[0] == 70
        assert seen[-1] == 80
        for name in ("summary.csv", "people.csv"):
            assert (part / name).read_bytes() == (folder / name).read_bytes()

    @pytest.mark.parametrize("other", [{"seed": 6}, {"withhold": 0.0}, {"withhold": 0.31}, {"ties": "tie"}])
    def test_another_evaluation_is_refused(self, truth, evaluated, other):
        folder, settings, _ = evaluated
        with pytest.raises(InvalidParameter):
            evaluate(truth.choices, folder, **{**settings, **other})

    def test_the_files_say_what_was_withheld_and_of_how_many_people_they_tell(self, truth, tmp_path):
        # Two people have too few pairs for eight answers.
        short = np.isin(truth.choices.person, [0, 1]) & (np.arange(len(truth.choices)) % 25 > 8)
        choices = truth.choices.rows(~short)
        settings = {"items": truth.items, "answers": (0, 8), "splits": 1, "samples": 50, "among": ["p0", "p1", "p2"]}
        results = evaluate(choices, tmp_path / "x", people=3, withhold=0.4, ties="tie", **settings)
        assert sorted(results.people[0]) == ["p0", "p1", "p2"]
        summary = results.summary()
        assert [row["people"] for row in summary] == [3, 1] * 4
        assert {(row["withhold"], row["ties"]) for row in summary} == {(0.4, "tie")}
        written = (tmp_path / "x" / "specification.toml").read_text()
        assert "withhold = 0.4" in written
        assert 'ties = "tie"' in written

    def test_held_out_people_teach_neither_the_population_nor_popularity(self, truth, evaluated):
        folder, _, results = evaluated
        for split, names in enumerate(results.people):
            held = [truth.choices.people.index(name) for name in names]
            others = truth.choices.only([row for row in range(70) if row not in held])
            learned = ps.Population.load(folder / f"population-{split + 1}.json")
            assert learned.provenance["choices"] == others.hash
            popular = Popularity.of(others)
            arm = results.plan.labels.index(POPULARITY)
            told = results.values[split, arm, :, 0, results.plan.measures.index("log_loss")]
            people = [Person.of(truth.choices, row, seed=results.plan.seed) for row in held]
            chances = [popular.chance(person)[person.withheld] for person in people]
            assert told == pytest.approx([-np.log(chance).mean() for chance in chances])

    def test_it_is_refused_before_anything_is_learned(self, truth, evaluated, tmp_path, monkeypatch):
        folder, settings, _ = evaluated
        monkeypatch.setattr(ps.Population, "fit", lambda *_, **__: pytest.fail("it was learned"))
        with pytest.raises(InvalidParameter):
            evaluate(truth.choices, folder, **{**settings, "seed": 6})
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidParameter):
            evaluate(truth.choices, tmp_path / "file", **settings)
        # All of it is there: nothing is learned again to tell of it.
        evaluate(truth.choices, folder, **settings)

    def test_what_was_learned_is_kept_when_the_next_is_interrupted(self, truth, tmp_path, monkeypatch):
        settings = {"items": truth.items, "answers": (0,), "people": 3, "splits": 2, "samples": 50}
        fit, learned = ps.Population.fit, []

        def fits(*given, **more):
            if learned:
                raise KeyboardInterrupt
            learned.append(fit(*given, **more))
            return learned[0]

        monkeypatch.setattr(ps.Population, "fit", fits)
        with pytest.raises(KeyboardInterrupt):
            evaluate(truth.choices, tmp_path / "x", **settings)
        monkeypatch.setattr(ps.Population, "fit", lambda *given, **more: learned.append(0) or fit(*given, **more))
        evaluate(truth.choices, tmp_path / "x", **settings)
        assert len(learned) == 2

    def test_an_item_that_only_a_held_out_person_compared(self, tmp_path):
        rng = np.random.default_rng(4)
        taste = rng.choice([-1.0, 1.0], 60)
        rows = [(str(p), f"i{i}", taste[p] * i + rng.normal()) for p in range(60) for i in range(6)]
        # Each of these is known to one person alone.
        rows += [(str(p), f"rare{p}", rng.normal()) for p in range(4)]
        choices = ps.Choices.from_ratings(rows)
        results = evaluate(choices, tmp_path / "x", learn=1, answers=(0, 5), splits=1, people=20, samples=200)
        accuracy = results.curve("InfoGain", "accuracy")[0]
        # There are two opposite tastes, so popularity says nothing, and five answers nearly all.
        assert accuracy[0] < 0.65
        assert accuracy[1] > 0.8
        kept = ps.Population.load(tmp_path / "x" / "population-1.json")
        unseen = [f"rare{person}" for person in results.people[0] if int(person) < 4]
        assert unseen
        assert sorted(kept.provenance["unseen"]) == sorted(unseen)
        base, _ = kept.utilities()
        places = [kept.items.index(name) for name in unseen]
        assert np.allclose(base[places], np.delete(base, places).mean())
        assert np.all(kept.items.coordinates[places] == 0)
        others = choices.only([row for row, name in enumerate(choices.people) if name not in results.people[0]])
        seen = [name for name in choices.ids if name not in unseen]
        alone = ps.Population.fit(others.of_items(seen), dimension=1)
        rows = [kept.items.index(name) for name in seen]
        assert np.array_equal(kept.items.appeal[rows], alone.items.appeal)
        assert np.array_equal(kept.items.coordinates[rows], alone.items.coordinates)

    def test_the_figure(self, evaluated, tmp_path):
        from pairseek.experiments.evaluation.figures import draw

        _, _, results = evaluated
        (picture,) = draw(results, tmp_path, title="wines")
        assert [path.suffix for path in picture.paths] == [".png", ".svg"]
        assert all(path.stat().st_size > 10_000 for path in picture.paths)
        assert "20 held-out people" in picture.caption
        assert "30 %" in picture.caption

    def test_differences_are_paired(self, evaluated):
        _, _, results = evaluated
        mean, error = results.difference(("InfoGain", "Random"), "accuracy", (0, 0))
        # Before the first answer both believe the same, whatever they will ask.
        assert abs(mean) < 0.02
        assert error < 0.02


class TestWishes:
    def test_what_stands_beside_the_strategies(self):
        assert [arm.label for arm in arms([ps.MCMV(), ps.Random()])] == ["MCMV", "Random", PLAIN, POPULARITY]

    def test_a_procedure_cannot_be_held_to_a_list(self):
        with pytest.raises(InvalidParameter) as caught:
            strategies_from("actrank")
        assert caught.value.field == "strategies"

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"answers": (5, 3)}, "give increasing numbers of answers"),
            ({"people": 100}, "people is 100: give 1 to"),
            ({"splits": 0}, "splits is 0: give a whole number, at least 1"),
            ({"seed": -1}, "seed is -1: give a whole number, at least 0"),
            ({"hold_out": "half"}, "hold_out is 'half': use one of people, leave-one-out"),
            ({"items": None}, "give items with coordinates, or the number of dimensions"),
            ({"withhold": 1.0}, "withhold is 1.0: give a share of the pairs, at least 0 and below 1"),
            ({"withhold": -0.1}, "withhold is -0.1: give a share"),
            ({"withhold": float("nan")}, "withhold is nan: give a share"),
            ({"withhold": "some"}, "withhold is 'some': give a share"),
            ({"ties": "skip"}, "ties is 'skip': use one of coin, tie"),
            ({"among": ["p1", "nobody"]}, "among names 'nobody', who is not among the 70 people"),
        ],
    )
    def test_wishes_that_make_no_sense(self, truth, tmp_path, given, words):
        with pytest.raises(InvalidParameter, match=words):
            evaluate(truth.choices, tmp_path / "x", **{"items": truth.items, **given})

    def test_too_few_people(self, tmp_path):
        choices = ps.Choices.from_pairs([("u", "a", "b"), ("v", "b", "a")])
        with pytest.raises(InvalidChoices, match=r"2 people gave usable choices \('u', 'v'\), 0 of them two or more:"):
            evaluate(choices, tmp_path / "x", learn=1)
        tied = ps.Choices.from_ratings([("u", "a", 1), ("u", "b", 1), ("v", "a", 2)])
        with pytest.raises(InvalidChoices):
            evaluate(tied, tmp_path / "x", learn=1)


def test_the_command_leaves_one_out(truth, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kept = truth.choices.only(range(20))
    lines = [
        f"{kept.people[p]},{kept.ids[a]},{kept.ids[b]}"
        for p, a, b in zip(kept.person, kept.winner, kept.loser, strict=True)
    ]
    (tmp_path / "c.csv").write_text("person,winner,loser\n" + "\n".join(lines) + "\n")
    truth.items.to_csv("items.csv")
    words = "evaluate c.csv --items items.csv --hold-out leave-one-out --people 3 --answers 0,4 --samples 200 --jobs 1"
    assert _app.run([*words.split(), "--strategies", "infogain", "--out", "out", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {row["arm"] for row in record["summary"]} == {"InfoGain", "Random", PLAIN, POPULARITY}
    assert all(row["replays"] == row["people"] == 3 for row in record["summary"])
    assert (record["withhold"], record["ties"]) == (0.3, "coin")
    # Pairs were drawn with repeats, so some people were asked the same twice.
    assert 0.5 < record["self_agreement"]["share"] <= 1
    assert (tmp_path / "out" / "evaluation.png").exists()
    assert _app.run([*words.split(), "--strategies", "infogain", "--out", "out"]) == 0
    shown = capsys.readouterr().out
    assert "Accuracy of predicted choices" in shown
    assert "30 % of each person's pairs were never asked" in shown
    assert re.search(r"^people +3 +3$", shown, re.MULTILINE)
    # Before the first answer nobody leads; popularity and random questions themselves have no lead to show.
    (lead,) = re.findall(r"^Lead in accuracy over Random.*?\n\n", shown, re.MULTILINE | re.DOTALL)
    assert re.search(r"^InfoGain +[+-]0.000±0.000 +[+-]", lead, re.MULTILINE)
    assert not re.search(r"^(Random|popularity)", lead, re.MULTILINE)
    assert "upper bounds" not in shown
    assert "Self-agreement on repeated pairs" in shown


def test_the_command_says_that_implied_pairs_are_easier(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    lines = [f"{person},{item},{item + rng.normal():.3f}" for person in range(12) for item in range(6)]
    (tmp_path / "r.csv").write_text("person,item,rating\n" + "\n".join(lines) + "\n")
    words = "evaluate r.csv --learn 1 --people 2 --splits 1 --answers 0,2 --jobs 1 --strategies infogain --withhold 0"
    assert _app.run(words.split()) == 0
    shown = capsys.readouterr().out
    assert "implied by ratings or rankings, which never contradict themselves: these figures are upper bounds" in shown
    assert "Pairs that were not asked are predicted, which flatters active questions" in shown


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("evaluate c.csv", "the items have no coordinates: give --items FILE"),
        ("evaluate c.csv --items items.csv --learn 2", "coordinates are either given or learned"),
        ("evaluate c.csv --learn many", "--learn is 'many'"),
        ("evaluate c.csv --learn 2 --answers five", "--answers is 'five'"),
        ("evaluate c.csv --learn 2 --appeal perhaps", "--appeal is 'perhaps'"),
        ("evaluate c.csv --learn 2 --withhold 1", "withhold is 1.0: give a share"),
        ("evaluate c.csv --learn 2 --ties never", "ties is 'never': use one of coin, tie"),
    ],
)
def test_a_wrong_command_line(tmp_path, monkeypatch, words, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("person,winner,loser\nu,a,b\nu,b,c\nv,b,a\nv,c,a\nw,a,c\nw,b,c\n")
    with pytest.raises(InvalidParameter, match=error):
        _app.run(words.split())


class TestDecidedPairs:
    def test_the_width_gives_the_share_of_ties_back(self):
        """By drawing: a difference of utilities with logistic noise that is within the width is a tie."""
        items = ps.Items(np.random.default_rng(1).normal(size=(12, 2)))
        search = ps.Search(items, response=ps.Logistic(0.8, "constant", residual=0.7), rng=1)
        width = decided_width(search, 0.3)
        rng = np.random.default_rng(2)
        points = search.prior.sample(4000, 2, rng)
        utility = -0.8 * np.sum((points[:, None] - items.coordinates) ** 2, axis=2) + 0.7 * rng.normal(size=(4000, 12))
        first, second = np.triu_indices(12, 1)
        perceived = utility[:, first] - utility[:, second] + rng.logistic(size=(4000, len(first)))
        # 4000 people leave an error of 0.002.
        assert np.mean(np.abs(perceived) < width) == pytest.approx(0.3, abs=0.01)
        assert decided_width(search, 0.0) == 0.0

    def test_predictions_of_decided_pairs_are_calibrated(self):
        """People record ties within a width, and only decided pairs are predicted: claims are right on average.

        300 people with 12 predicted pairs each: the standard error of the share of right predictions is 0.009.
        """
        rng = np.random.default_rng(4)
        items = ps.Items(rng.normal(size=(14, 2)))
        claims = {0.0: [], 0.29: []}
        right, ties = [], []
        for _ in range(300):
            search = ps.Search(items, response=ps.Logistic(0.5, "constant"), prior=ps.GaussianPrior(), rng=1)
            utility = -0.5 * np.sum((rng.normal(size=2) - items.coordinates) ** 2, axis=1)
            first, second = np.triu_indices(14, 1)
            perceived = utility[first] - utility[second] + rng.logistic(size=len(first))
            decided = np.flatnonzero(np.abs(perceived) > 1.06)
            ties.append(1 - len(decided) / len(first))
            shown = rng.choice(decided, size=12, replace=False)
            up = perceived[shown] > 0
            winner, loser = np.where(up, first[shown], second[shown]), np.where(up, second[shown], first[shown])
            own = Person(winner, loser, np.ones(12, dtype=bool), np.empty((0, 2), dtype=np.int64), utility)
            for share in claims:
                chance = _chances(search, own, decided_width(search, share))
                claims[share].append(np.maximum(chance, 1 - chance).mean())
            right.append(np.mean(chance > 0.5))
        assert np.mean(ties) == pytest.approx(0.29, abs=0.02)
        assert np.mean(claims[0.29]) == pytest.approx(np.mean(right), abs=0.025)
        assert np.mean(claims[0.0]) < np.mean(right) - 0.03
