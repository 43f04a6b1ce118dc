"""Mean error curves of quick versions of the paper's figures, compared with the committed curves.

Bits may change; curves may not. Synthetic items always run, Food-10k where it is available. To rewrite the committed
curves, run `python tests/helpers/curves.py`.
"""

from __future__ import annotations

import copy

import pytest

from helpers import curves


@pytest.mark.long
@pytest.mark.parametrize("figure", curves.MARKS)
def test_the_mean_curves_are_the_committed_ones(figure, shared, monkeypatch):
    if shared is not None:
        monkeypatch.setenv("PAIRSEEK_DATA", str(shared))
    marks = curves.MARKS[figure]
    for data in ("synthetic",) if shared is None else curves.DATA:
        simulated = curves.curves_of(curves.simulated(figure, data), marks)
        assert curves.apart(curves.committed()[data][figure], simulated, marks) == [], data


def replaced(data, figure, label):
    """Differences from the committed curves when Random takes the place of a strategy."""
    before = curves.committed()[data][figure]
    after = copy.deepcopy(before)
    for name in before:
        setting, _, strategy = name.rpartition(", ")
        if strategy == label:
            after[name] = before[f"{setting}, Random"]
    assert after != before
    return curves.apart(before, after, curves.MARKS[figure])


@pytest.mark.parametrize("data", curves.DATA)
@pytest.mark.parametrize("figure", curves.MARKS)
def test_random_in_place_of_any_strategy_is_detected(figure, data):
    labels = {name.rpartition(", ")[2] for name in curves.committed()[data][figure]} - {"Random"}
    assert labels
    for label in labels:
        assert replaced(data, figure, label), label


@pytest.mark.parametrize("data", curves.DATA)
@pytest.mark.parametrize("label", ["InfoGain", "EPMV", "MCMV"])
def test_random_is_detected_by_its_numbers_too(label, data):
    """The width of the posterior gives it away, and not only measures that a procedure lacks."""
    differences = replaced(data, "figure2", label)
    assert any("mismatched" in line and "posterior_trace after 80 answers" in line for line in differences)
    assert not any("other curves" in line for line in differences)


def test_equal_curves_are_not_apart():
    for figures in curves.committed().values():
        for figure, mean_curves in figures.items():
            assert curves.apart(mean_curves, copy.deepcopy(mean_curves), curves.MARKS[figure]) == []
