"""The expected precision of a ranking: its table, its limits, and fresh simulations."""

import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.refusals import refused
from pairseek.people.ranking.precision import ranking_precision

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from ranking_precision import simulated_cell


def test_at_a_simulated_size_the_table_itself_is_returned() -> None:
    precision = ranking_precision(12, 40, 30)
    assert (precision.width, precision.best_found) == pytest.approx((0.247, 0.822), abs=6e-4)
    assert precision.ranks == pytest.approx(1 + 11 * precision.width)


def test_more_people_and_answers_tell_more_and_more_items_need_more() -> None:
    widths = [ranking_precision(30, people, 20).width for people in (3, 8, 25, 80, 120)]
    assert widths == sorted(widths, reverse=True)
    widths = [ranking_precision(30, 30, answers).width for answers in (1, 2, 5, 15, 50, 90)]
    assert widths == sorted(widths, reverse=True)
    widths = [ranking_precision(items, 100, 20).width for items in (10, 40, 120, 400, 3000)]
    assert widths == sorted(widths)


def test_the_warning_comes_where_answers_cannot_tell_items_apart() -> None:
    assert not ranking_precision(3000, 100, 20).tells_apart
    assert ranking_precision(20, 40, 20).tells_apart
    huge = ranking_precision(3000, 100, 20)
    assert huge.is_bound
    assert huge.ranks > 2000
    assert not ranking_precision(120, 100, 20).is_bound
    assert 1 / 2 <= ranking_precision(2, 3, 1).best_found <= 1


@pytest.mark.parametrize(("sizes", "field"), [((1, 30, 20), "items"), ((5, 2, 20), "people"), ((5, 30, 0), "answers")])
def test_sizes_that_make_no_ranking_are_refused(sizes, field) -> None:
    with refused(field):
        ranking_precision(*sizes)


@pytest.mark.long
@pytest.mark.parametrize("size", [(7, 20, 8), (20, 25, 20), (30, 60, 15), (60, 20, 40)])
def test_the_interpolation_agrees_with_fresh_simulation(size) -> None:
    """Between the sizes of the table, with wide tolerances for chance: 12 runs here, and 8 to 60 runs in the table."""
    width, leading, _ = simulated_cell(*size, 12, 7)
    precision = ranking_precision(*size)
    assert abs(precision.width - width) < 0.1
    assert abs(precision.best_found - leading) < 0.2
    assert np.isfinite(precision.ranks)
