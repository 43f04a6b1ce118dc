"""Mean error curves of quick versions of the paper's figures 1 and 2 against those that were committed.

Bits may change, curves may not. Both data sets are run: synthetic items always, and Food-10k where it is there.
`python tests/helpers/curves.py` writes the committed numbers again.
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
        found = curves.curves_of(curves.simulated(figure, data), marks)
        assert curves.apart(curves.committed()[data][figure], found, marks) == [], data


def replaced(data, figure, label):
    """The committed curves, with those of Random under the name of another strategy."""
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
def test_random_in_place_of_any_strategy_is_told(figure, data):
    labels = {name.rpartition(", ")[2] for name in curves.committed()[data][figure]} - {"Random"}
    assert labels
    for label in labels:
        assert replaced(data, figure, label), label


@pytest.mark.parametrize("data", curves.DATA)
@pytest.mark.parametrize("label", ["InfoGain", "EPMV", "MCMV"])
def test_random_is_told_by_its_numbers_too(label, data):
    """Not only by measures that a procedure lacks; in figure 2 by the width of the posterior of either noise."""
    told = replaced(data, "figure2", label)
    assert any("mismatched" in line and "posterior_trace after 80 answers" in line for line in told)
    assert not any("other curves" in line for line in told)


def test_equal_curves_are_not_apart():
    for figures in curves.committed().values():
        for figure, found in figures.items():
            assert curves.apart(found, copy.deepcopy(found), curves.MARKS[figure]) == []
