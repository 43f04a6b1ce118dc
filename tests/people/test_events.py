"""Choices implied by purchases, clicks, views and impressions."""

from collections import Counter
from datetime import datetime, timedelta

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.people.events import VISIT_GAP_SECONDS, _drawn_unseen


def wins(choices):
    """The weight of each (person, winner, loser)."""
    rows = zip(choices.person, choices.winner, choices.loser, choices.weight, strict=True)
    return {(choices.people[p], choices.ids[w], choices.ids[b]): weight for p, w, b, weight in rows}


def test_what_was_bought_wins_against_what_was_shown_and_not_bought():
    rows = [("ann", item, "impression") for item in ("tea", "milk", "cocoa")] + [("ann", "tea", "purchase")]
    found = wins(ps.Choices.from_events(rows))
    # A choice among three: two pairs of weight 2/3.
    assert found == {("ann", "tea", "milk"): pytest.approx(2 / 3), ("ann", "tea", "cocoa"): pytest.approx(2 / 3)}


def test_the_weights_of_pairs_have_the_fisher_information_of_a_choice_among_n():
    n = 5
    rows = [("ann", item, "impression") for item in range(n)] + [("ann", 0, "purchase")]
    choices = ps.Choices.from_events(rows)
    delta = np.eye(n)[choices.winner] - np.eye(n)[choices.loser]
    pairs = (choices.weight[:, None] * delta).T @ delta / 4
    # Averaged over who is chosen, by relabelling; at equal utilities all choices are equally likely.
    mean = sum(pairs[np.ix_(np.roll(range(n), k), np.roll(range(n), k))] for k in range(n)) / n
    probability = np.full(n, 1 / n)
    multinomial = np.diag(probability) - np.outer(probability, probability)
    assert mean == pytest.approx(multinomial)


def test_a_weightier_event_wins_by_the_difference_of_the_weights():
    rows = [("ann", "tea", "purchase"), ("ann", "milk", "click"), ("ann", "cocoa", "impression")]
    found = wins(ps.Choices.from_events(rows, weights={"purchase": 1, "click": 0.2, "impression": 0}))
    assert found == {
        ("ann", "tea", "milk"): pytest.approx(2 / 3 * 0.8),
        ("ann", "tea", "cocoa"): pytest.approx(2 / 3),
        ("ann", "milk", "cocoa"): pytest.approx(0.2),
    }


def test_an_item_that_was_bought_on_another_day_does_not_lose():
    rows = [
        ("ann", "tea", "purchase"),
        ("ann", "milk", "impression"),
        ("ann", "milk", "purchase"),
        ("ann", "rum", "view"),
    ]
    assert not any(winner == loser for _, winner, loser in wins(ps.Choices.from_events(rows)))
    assert ("ann", "tea", "milk") not in wins(ps.Choices.from_events(rows))


@pytest.mark.parametrize("unit", [1, 1000, None])
def test_visits_end_after_half_an_hour_without_an_event(unit):
    begin = datetime(2026, 5, 1, 12)
    late = 60 + VISIT_GAP_SECONDS + 61

    def at(seconds):
        moment = begin + timedelta(seconds=seconds)
        return moment if unit is None else moment.timestamp() * unit

    rows = [
        ("ann", "tea", "purchase", at(late)),
        ("ann", "milk", "impression", at(late - 60)),
        ("ann", "cocoa", "impression", at(0)),
        ("ann", "rum", "purchase", at(60)),
    ]
    assert set(wins(ps.Choices.from_events(rows))) == {
        ("ann", "rum", "cocoa"),
        ("ann", "tea", "milk"),
    }


def test_without_impressions_items_are_drawn_from_those_without_an_event():
    popular = [(f"p{k}", "tea", "purchase") for k in range(400)] + [("p0", "milk", "purchase")]
    choices = ps.Choices.from_events(popular, ids=[*"abcdefghijklmnopqrst", "milk", "tea"])
    found = wins(choices)
    assert all(loser != "tea" for _, _, loser in found)
    assert ("p0", "tea", "milk") not in found
    assert {person for person, _, _ in found} == {f"p{k}" for k in range(400)}
    again = ps.Choices.from_events(popular, ids=choices.ids)
    assert again.hash == choices.hash
    assert ps.Choices.from_events(popular, ids=choices.ids, rng=1).hash != choices.hash


def test_popular_items_are_drawn_more_often():
    rows = [(f"p{k}", "tea", "purchase") for k in range(300)] + [(f"q{k}", "milk", "purchase") for k in range(100)]
    ids = ["tea", "milk", *(f"i{k}" for k in range(400))]
    losers = Counter(loser for _, _, loser in wins(ps.Choices.from_events(rows, ids=ids)))
    # Milk has 101 times the popularity of an item without events, which is 32 times to the power 0.75.
    rare = np.mean([losers[f"i{k}"] for k in range(400)])
    assert losers["milk"] > 8 * rare


def test_the_probabilities_of_drawn_items_are_those_of_the_rest():
    shares = np.array([5.0, 1.0, 2.0, 3.0, 4.0])
    own = np.array([0, 3])
    rng = np.random.default_rng(0)
    many = np.concatenate([_drawn_unseen(np.cumsum(shares) / shares.sum(), own, rng).ravel() for _ in range(1000)])
    expected = np.where(np.isin(np.arange(5), own), 0.0, shares) / 7.0
    # 20,000 draws: a standard error below 0.004.
    assert np.bincount(many, minlength=5) / len(many) == pytest.approx(expected, abs=0.015)


def test_a_person_has_at_most_so_many_pairs_with_the_same_total_weight():
    rows = [("ann", item, "impression") for item in range(60)] + [("ann", item, "purchase") for item in range(30)]
    every, some = (ps.Choices.from_events(rows, most=most) for most in (1000, 100))
    assert (len(every), len(some)) == (900, 100)
    assert some.weight.sum() == pytest.approx(every.weight.sum())


@pytest.mark.parametrize(
    ("rows", "options", "field"),
    [
        ([("ann", "tea", "sniff")], {}, ""),
        ([("ann", "tea")], {}, ""),
        ([("ann", "tea", "view", 1.0), ("ann", "tea", "view")], {}, ""),
        ([("ann", "tea", "view", "yesterday")], {}, ""),
        ([("ann", "tea", "view", float("nan"))], {}, ""),
        ([("ann", "tea", "view")], {"ids": ["milk"]}, ""),
        ([], {}, ""),
        ([("ann", "tea", "view")], {"weights": {"view": 2.0}}, "weights"),
        ([("ann", "tea", "view")], {"weights": {"view": float("nan")}}, "weights"),
    ],
)
def test_bad_events_are_refused(rows, options, field):
    with refused(field, ps.errors.InvalidParameter if field else ps.errors.InvalidChoices):
        ps.Choices.from_events(rows, **options)


def test_a_table_of_events_is_read(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(
        "timestamp,visitorid,event,itemid\n1433221332117,1,view,10\n1433221332118,1,transaction,11\n1433221332119,2,view,10\n"
    )
    choices = ps.Choices.read(path)
    assert ("1", "11", "10") in wins(choices)
    assert choices.people == ("1", "2")
    assert choices.renamed_columns == {"person": "visitorid", "item": "itemid"}
    path.write_text("person,item,event,time\nann,tea,view,2026-05-01T12:30\nann,milk,purchase,2026-05-01T12:31\n")
    assert ("ann", "milk", "tea") in wins(ps.Choices.read(path))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("ann,tea,sniff,1", "column 'event': 'sniff' is not a known kind of event"),
        ("ann,,view,1", "column 'item': it is empty"),
        ("ann,tea,view,soon", "column 'time': 'soon' is not a time"),
    ],
)
def test_a_bad_line_of_events_is_named(tmp_path, row, words):
    path = tmp_path / "events.csv"
    path.write_text(f"person,item,event,time\n{row}\n")
    with pytest.raises(ps.errors.InvalidChoices, match=f"line 2, {words}"):
        ps.Choices.read(path)
