"""Tests of ListedPairs: only listed pairs are asked."""

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.errors import NoPairLeft

ITEMS = ps.Items(np.random.default_rng(0).normal(size=(12, 2)), [f"i{n}" for n in range(12)])
PAIRS = ((0, 3), (7, 2), (5, 11), (1, 0))


@pytest.mark.parametrize("strategy", [ps.InfoGain(), ps.EPMV(), ps.Random()])
def test_only_listed_pairs_are_asked_and_each_once(strategy):
    search = ps.Search(ITEMS, strategy=strategy, candidates=ps.ListedPairs(PAIRS), rest=ps.Rest(pair=4), rng=1)
    asked = set()
    for _ in PAIRS:
        query = search.ask()
        asked.add(frozenset((ITEMS.index(query.left), ITEMS.index(query.right))))
        search.tell(query, winner=query.left)
    assert asked == {frozenset(pair) for pair in PAIRS}
    with pytest.raises(NoPairLeft):
        search.ask()


def test_it_is_the_best_of_the_list():
    search = ps.Search(ITEMS, candidates=ps.ListedPairs(PAIRS), rng=1)
    query = search.ask()
    told = [search.expect(*(ITEMS.ids[row] for row in pair)).information for pair in PAIRS]
    assert query.info.information == pytest.approx(max(told))
    assert query.info.candidates == "4 listed pairs"


def test_it_is_saved_with_the_search(tmp_path):
    search = ps.Search(ITEMS, candidates=ps.ListedPairs(PAIRS), rng=1)
    search.save(tmp_path / "s.json")
    again = ps.Search.load(tmp_path / "s.json")
    assert again.candidates == search.candidates
    assert again.ask() == search.ask()


@pytest.mark.parametrize("pairs", [(), ((0, 0),), ((0, -1),), ((0, 1.5),), (("a", "b"),), ((0, 1, 2),)])
def test_an_invalid_list_is_refused(pairs):
    with refused("pairs") as caught:
        ps.ListedPairs(pairs)
    assert "give pairs of different rows, such as ((0, 3), (2, 5))" in str(caught.value)


def test_a_row_beyond_the_items_is_refused():
    search = ps.Search(ITEMS, candidates=ps.ListedPairs(((0, 12),)))
    with refused("pairs") as caught:
        search.ask()
    assert "names row 12, but there are only 12 items: use rows from 0 to 11" in str(caught.value)
