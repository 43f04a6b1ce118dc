"""Records of questions and recommendations for logs, and the chance of a pair."""

import json
from collections import Counter

import numpy as np
import pytest

import pairseek as ps

ITEMS = ps.Items(np.random.default_rng(0).standard_normal((7, 2)), ids=list("abcdefg"))


def test_a_question_and_recommendations_are_one_flat_record_each():
    search = ps.Search(ITEMS, goal="best", rng=1)
    query = search.ask()
    asked = search.log(query)
    assert asked == json.loads(json.dumps(asked))
    assert (asked["kind"], asked["left"], asked["right"]) == ("question", query.left, query.right)
    assert (asked["goal"], asked["items"], asked["answers"], asked["chance"]) == ("best", ITEMS.hash, 0, 1.0)
    assert asked["probability_left"] == query.info.probability_left
    search.tell(query, winner=query.left)
    best = search.recommend(3)
    shown = search.log(best)
    assert shown == json.loads(json.dumps(shown))
    assert (shown["kind"], shown["answers"], shown["chance"]) == ("recommendation", 1, 1.0)
    assert shown["recommended"] == [item.id for item in best]
    with pytest.raises(ps.errors.InvalidParameter, match="log one from ask"):
        search.log(ps.Query("q9", "a", "b"))


def test_the_chance_of_a_random_pair_is_its_share_of_all_draws():
    # After one answer, its pair rests: 20 of 21 pairs are left. 4,000 draws: 200 a pair, standard deviation 13.8.
    counts, chances = Counter(), set()
    first = ps.Search(ITEMS, strategy=ps.Random(), rng=0)
    query = first.ask()
    assert query.info.chance == pytest.approx(1 / 21)
    for seed in range(4000):
        search = ps.Search(ITEMS, strategy=ps.Random(), rest=ps.Rest(), rng=seed)
        search.observe("a", "b", winner="a")
        query = search.ask()
        counts[frozenset((query.left, query.right))] += 1
        chances.add(query.info.chance)
    (chance,) = chances
    assert len(counts) == round(1 / chance)
    assert max(abs(count - 4000 * chance) for count in counts.values()) < 4.5 * np.sqrt(4000 * chance)


@pytest.mark.parametrize(
    ("settings", "chance"),
    [
        ({}, 1.0),
        ({"strategy": ps.EUBO()}, 1.0),
        ({"candidates": ps.SampledPairs(count=5)}, None),
        ({"strategy": ps.GaussSearch()}, None),
    ],
)
def test_the_chance_is_one_without_draws_and_unknown_for_others(settings, chance):
    assert ps.Search(ITEMS, rng=3, **settings).ask().info.chance == chance
