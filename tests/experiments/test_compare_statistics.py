"""Measures and statistics of a comparison beside plain loops and known values."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from helpers.compared import rated
from pairseek.experiments.comparison.measures import (
    BIN_COUNT,
    all_pairs,
    pick_scores,
    prediction_measures,
    shares_won,
    withheld_pairs,
)
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.statistics import (
    answers_until,
    holm,
    mean_and_error,
    paired_difference,
    worst_tenth,
)

NAN = math.nan


def naive_holm(p_values):
    """Reject in the order of p while p <= alpha/(m - rank): the adjusted p is the least alpha that rejects."""
    out = []
    for p in p_values:
        smaller = [q for q in p_values if q <= p]
        order = sorted(p_values)
        out.append(min(1.0, max((len(p_values) - order.index(q)) * q for q in smaller)))
    return out


class TestHolm:
    def test_the_textbook_example(self):
        # Holm (1979) on 0.01, 0.04, 0.03, 0.005: 4 x .005, 3 x .01, 2 x .03, then .06 because it may not fall.
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    def test_it_is_the_least_level_at_which_each_is_rejected(self, p_values):
        assert holm(p_values) == pytest.approx(naive_holm(p_values))

    def test_what_could_not_be_tested_does_not_count(self):
        assert holm([0.02, NAN, 0.5]) == pytest.approx([0.04, NAN, 0.5], nan_ok=True)
        assert holm([]) == []

    def test_it_keeps_the_number_of_false_claims(self):
        """Of 400 families of ten true nulls, 5 % make a claim; without a correction, 40 %."""
        rng = np.random.default_rng(0)
        families = rng.random((400, 10))
        claims = np.mean([min(holm(family.tolist())) < 0.05 for family in families])
        # Four standard errors of a share of 0.05 in 400.
        assert claims < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)
        assert np.mean(families.min(axis=1) < 0.05) > 0.3


class TestPaired:
    def test_it_is_the_paired_test_over_people_who_have_both(self):
        rng = np.random.default_rng(1)
        first, second = rng.normal(size=20), rng.normal(size=20)
        first[3] = second[5] = NAN
        both = np.isfinite(first - second)
        comparison = paired_difference(first, second)
        known = scipy.stats.ttest_rel(first[both], second[both])
        assert comparison == pytest.approx((np.mean((first - second)[both]), comparison[1], known.pvalue, 18))
        assert comparison[0] / comparison[1] == pytest.approx(known.statistic)

    def test_equal_and_single_people(self):
        assert paired_difference(np.ones(3), np.ones(3)) == (0.0, 0.0, 1.0, 3)
        assert paired_difference(np.ones(3), np.zeros(3)) == (1.0, 0.0, 0.25, 3)
        # Equal up to rounding in one direction, as log losses before any answer are: no evidence of a difference.
        assert paired_difference(np.full(3, 0.7), np.full(3, 0.7) - [1e-16, 2e-16, 1e-16])[2] == 1.0
        assert np.isnan(paired_difference(np.ones(1), np.zeros(1))[2])
        assert mean_and_error(np.array([NAN]))[2] == 0

    @pytest.mark.parametrize(("people", "count"), [(1, 1), (10, 1), (11, 2), (60, 6)])
    def test_the_worst_tenth(self, people, count):
        values = np.random.default_rng(2).permutation(np.arange(float(people)))
        assert worst_tenth(values, lower_is_better=False) == np.mean(range(count))
        assert worst_tenth(values, lower_is_better=True) == np.mean(range(people - count, people))
        assert worst_tenth(np.r_[values, NAN], lower_is_better=True) == np.mean(range(people - count, people))

    def test_answers_until_an_accuracy(self):
        counts, curve = (0, 2, 5, 10), np.array([0.5, 0.6, 0.75, 0.7])
        assert answers_until(counts, curve, 0.5) == 0.0
        assert answers_until(counts, curve, 0.7) == pytest.approx(4.0)
        assert answers_until(counts, curve, 0.75) == 5.0
        assert np.isnan(answers_until(counts, curve, 0.8))
        assert np.isnan(answers_until((0, 2), np.array([NAN, NAN]), 0.5))


class TestMeasures:
    @pytest.mark.parametrize("seed", range(5))
    def test_predictions_are_measured_as_by_a_plain_loop(self, seed):
        rng = np.random.default_rng(seed)
        chance = np.r_[rng.random(40), 0.5, 0.0, 1.0, 0.55, 0.45]
        won = (rng.random(45) < chance).astype(float)
        right, loss, bins = [], [], np.zeros((BIN_COUNT, 3))
        for p, w in zip(chance.tolist(), won.tolist(), strict=True):
            of_winner = p if w else 1 - p
            right.append(0.5 if p == 0.5 else float(of_winner > 0.5))
            loss.append(-math.log(max(of_winner, 1e-4)))
            sure = max(p, 1 - p)
            place = min(int((sure - 0.5) * 20), 9)
            bins[place] += 1, right[-1], sure
        found = prediction_measures(chance, won)
        assert found[0] == pytest.approx(np.mean(right))
        assert found[1] == pytest.approx(np.mean(loss))
        assert found[2] == pytest.approx(bins)

    def test_sides_do_not_matter(self):
        rng = np.random.default_rng(0)
        chance, won = rng.random(30), (rng.random(30) < 0.5).astype(float)
        first, second = prediction_measures(chance, won), prediction_measures(1 - chance, 1 - won)
        assert first[:2] == pytest.approx(second[:2])

    def test_withheld_pairs_and_who_won(self):
        choices = rated()
        person = Person.of(choices, 3)
        pairs, won = withheld_pairs(person)
        truth = {(w, x) for w, x, hidden in zip(person.winner, person.loser, person.withheld, strict=True) if hidden}
        assert {tuple(p if up else p[::-1]) for p, up in zip(pairs.tolist(), won, strict=True)} == truth
        assert 0 < won.mean() < 1

    def test_shares_won(self):
        rng = np.random.default_rng(3)
        table = rng.random((5, 5))
        chance = np.array([table[a, b] for a, b in itertools.combinations(range(5), 2)])
        assert all_pairs(5).tolist() == [list(pair) for pair in itertools.combinations(range(5), 2)]
        naive = [
            np.mean([table[min(i, j), max(i, j)] if i < j else 1 - table[j, i] for j in range(5) if j != i])
            for i in range(5)
        ]
        assert shares_won(5, chance) == pytest.approx(naive)

    def test_regret_and_top_three_of_a_list(self):
        value = np.array([5.0, 3.0, NAN, 4.0, 1.0])
        assert pick_scores(value, [2, 3, 1, 0, 4]) == (1.0, 4.0)
        # Where a list is short, the rest of the items share the remaining places.
        assert pick_scores(value, [0]) == (0.0, pytest.approx((5 + 2 * (3 + 4 + 1) / 3) / 3))
        # Equal scores count by their mean.
        assert pick_scores(value, np.zeros(5)) == (5 - 13 / 4, 13 / 4)
        assert np.isnan(pick_scores(np.full(3, NAN), [0, 1, 2])).all()
