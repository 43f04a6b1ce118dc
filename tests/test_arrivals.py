"""Arrivals at a study that learns: what is asked and learned, popularity beside it, resuming, and the command."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pairseek.cli.app import run
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.evaluate import arrivals as replay
from pairseek.evaluate.arrivals import ArrivalPlan, arrivals
from pairseek.evaluate.replay import Person
from pairseek.learning import learn
from pairseek.population import Choices

IDS = tuple("abcdefgh")
PLAN = ArrivalPlan(answers=(2, 4), orders=2, people=20, told=1)


def ratings(people: int) -> Choices:
    """Ratings of people whose tastes lie on a line."""
    rng = np.random.default_rng(5)
    places = np.linspace(-2.0, 2.0, len(IDS))
    rows = [
        (f"p{person}", name, float(value))
        for person in range(people)
        for name, value in zip(IDS, 0.5 * places + places * rng.normal() + rng.normal(0, 0.3, len(IDS)), strict=True)
    ]
    return Choices.from_ratings(rows)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrivals") / "results"
    return folder, arrivals(ratings(24), folder, PLAN)


def test_everybody_arrives_once_in_each_order_and_is_paired_with_the_told_study(replayed):
    _, found = replayed
    assert len(found.place) == 40
    for order in (0, 1):
        mine = found.order == order
        assert found.place[mine].tolist() == list(range(1, 21))
        assert len(set(found.person[mine].tolist())) == 20
    assert found.person[found.order == 0].tolist() != found.person[found.order == 1].tolist()
    assert np.isfinite(found.learning).all()
    assert np.isfinite(found.told).all()
    # The first ten begin before anything was learned.
    assert np.isnan(found.dimension[found.place <= 10]).all()
    assert np.isfinite(found.dimension[found.place > 10]).all()
    # Nothing is known of popularity when the first one comes.
    assert (found.popular[found.place == 1] == 0.5).all()


def test_the_summary_is_the_mean_of_the_sessions(replayed):
    folder, found = replayed
    rows = found.summary()
    assert [(row["arrivals"], row["answers"], row["sessions"]) for row in rows] == [("1-20", 2, 40), ("1-20", 4, 40)]
    assert rows[1]["learning"] == pytest.approx(found.learning[:, 1].mean())
    assert rows[1]["lead"] == pytest.approx((found.learning[:, 1] - found.popular).mean())
    assert rows[1]["behind"] == pytest.approx((found.told[:, 1] - found.learning[:, 1]).mean())
    lines = (folder / "sessions.csv").read_text().splitlines()
    assert len(lines) == 41
    assert lines[0] == "order,arrival,person,learning_2,learning_4,told_2,told_4,popularity,dimension"


def test_popularity_knows_the_answers_of_those_who_came_before_and_nothing_else(monkeypatch, tmp_path):
    told = []
    session = replay._session

    def watched(person, *given, **named):
        accuracies, answers = session(person, *given, **named)
        told.append((person, answers))
        return accuracies, answers

    monkeypatch.setattr(replay, "_session", watched)
    choices = ratings(24).usable()
    work = replay._Arrivals(PLAN, choices, np.arange(24))
    people = {row: Person.of(choices, row, withhold=PLAN.withhold, seed=PLAN.seed) for row in range(24)}
    rows = work._learned(people, 0)
    wins, losses = np.ones(len(IDS)), np.ones(len(IDS))
    for row, (person, answers) in zip(rows, told, strict=True):
        expected = [
            0.5 * (np.sign(wins[i] / losses[i] - wins[j] / losses[j]) + 1.0)
            for i, j in zip(person.winner[person.withheld], person.loser[person.withheld], strict=True)
        ]
        assert row[4] == pytest.approx(np.mean(expected))
        withheld = {
            frozenset((int(i), int(j)))
            for i, j in zip(person.winner[person.withheld], person.loser[person.withheld], strict=True)
        }
        assert len(answers) == 4
        for winner, loser in answers:
            assert frozenset((winner, loser)) not in withheld
            wins[winner] += 1.0
            losses[loser] += 1.0


@pytest.mark.long
def test_a_replay_goes_on_where_it_was_stopped(replayed, tmp_path):
    folder, found = replayed
    for name in ("run.json", "specification.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 4
    (tmp_path / "trials.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])
    again = arrivals(ratings(24), tmp_path, PLAN)
    assert np.array_equal(again.learning, found.learning)
    assert np.array_equal(again.told, found.told)
    with pytest.raises(InvalidParameter, match="another"):
        arrivals(ratings(24), tmp_path, replace(PLAN, seed=1))


def test_a_version_that_cannot_be_learned_leaves_the_earlier_one(monkeypatch):
    def fails(choices, items, **named):
        if len(choices.people) > 10:
            raise InvalidChoices("the answers are strange")
        return learn(choices, items, **named)

    monkeypatch.setattr(replay, "learn", fails)
    choices = ratings(24).usable()
    work = replay._Arrivals(PLAN, choices, np.arange(24))
    rows = work._learned({row: Person.of(choices, row, withhold=0.3, seed=0) for row in range(24)}, 0)
    # The dimension of the first version stays, and the next attempt waits for a quarter more people.
    assert {row[5] for row in rows[10:]} == {rows[10][5]}
    assert [int(row[6]) for row in rows[9:]] == [0, 10, 10, 10, 13, 13, 13, 13, 17, 17, 17]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"orders": 0}, "orders"),
        ({"people": 5}, "people"),
        ({"answers": (5, 3)}, "give increasing numbers of answers"),
        ({"answers": ()}, "give increasing numbers of answers"),
        ({"withhold": 1.0}, "give a share between 0 and 1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        ArrivalPlan(**settings)


def test_too_few_people_are_refused(tmp_path):
    with pytest.raises(
        InvalidChoices, match="12 people decided more than 4 pairs: a replay of arrivals needs at least"
    ):
        arrivals(ratings(12), tmp_path, PLAN)


@pytest.mark.long
def test_the_command_prints_the_table(tmp_path, capsys):
    rows = ["person,item,rating"]
    rng = np.random.default_rng(1)
    rows += [f"{person},{name},{rng.integers(1, 6)}" for person in range(30) for name in "abcdefghijkl"]
    (tmp_path / "ratings.csv").write_text("\n".join(rows) + "\n")
    given = ["evaluate", str(tmp_path / "ratings.csv"), "--arrivals", "--orders", "2", "--people", "22", "--jobs", "1"]
    assert run([*given, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "1-20" in said
    assert "21-50" in said
    assert "Mean of 2 orders of arrival" in said
    assert run([*given, "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["answers"] for row in found["summary"]] == [5, 10, 15, 5, 10, 15]
