"""Replay of recorded people who arrive one after the other, in random order, at a study that learns.

    python benchmarks/arrivals.py ratings.csv [--orders N] [--people N] [--seed N] [--out FOLDER] [--jobs N]

The study starts with a list of items. People are asked pairs that they answered in the data: the first people in a
balanced design, later ones actively, with what the study has learned so far. Their answers are what it learns from
next. Withheld pairs, which are never asked, are predicted. For comparison there are popularity, from the same earlier
answers, and a study given a population fitted to all recorded choices of everyone else. Standard errors are over
people. Interrupted runs resume; FOLDER gets the table and a row for each session.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairseek.core.types import JSON, BoolArray, FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidChoices, InvalidParameter, NoPairLeft
from pairseek.experiments.comparison.person import WITHHOLD, Person
from pairseek.experiments.runs.journal import csv_text, write_result
from pairseek.experiments.runs.plan import Outcome, RunPlan, RunStatus, Task
from pairseek.experiments.runs.runner import run_plan
from pairseek.model.items import Items
from pairseek.pairs.sources import ListedPairs, Rest
from pairseek.pairs.strategies import InfoGain
from pairseek.people.learning import RANDOM_SHARE, balanced_pair, is_due, learn
from pairseek.people.population import Choices, Population
from pairseek.search import Search
from pairseek.search.recommending import expected_utilities

ANSWERS = (5, 10, 15)
ORDERS = 20
BINS = ((1, 20), (21, 50), (51, 100), (101, 200), (201, 400), (401, None))
"""First and last arrival in each row of the table."""
ARMS = ("a study that learns", "told coordinates")
_FEWEST = 20
# Purposes of random draws.
_ORDER, _FOLDS, _SEARCH, _WHICH, _PAIR = range(5)


def _rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(list(key)))


@dataclass(frozen=True)
class ArrivalPlan:
    """Specification of a replay of arrivals.

    Parameters
    ----------
    answers
        Answer counts at which withheld pairs are predicted; the last is the number of answers of a session.
    orders
        Number of random orders of arrival.
    people
        Number of people who arrive in each order. None: everybody.
    told
        Number of dimensions of the study that is given coordinates.
    withhold
        Fraction of each person's pairs that are never asked.
    seed
        Seed of all random numbers.
    """

    answers: tuple[int, ...] = ANSWERS
    orders: int = ORDERS
    people: int | None = None
    told: int = 4
    withhold: float = WITHHOLD
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("orders", 1), ("told", 1), ("seed", 0)):
            whole(getattr(self, name), name, least)
        if self.people is not None:
            whole(self.people, "people", _FEWEST)
        counts = tuple(whole(count, "answers", 1) for count in self.answers)
        if not counts or list(counts) != sorted(set(counts)):
            raise InvalidParameter(f"answers is {self.answers!r}: give increasing numbers of answers, such as 5,10,15")
        if not 0 < self.withhold < 1:
            raise InvalidParameter(f"withhold is {self.withhold!r}: give a fraction between 0 and 1, such as 0.3")

    def record(self) -> JSON:
        """Return the specification as plain data."""
        return {
            "answers": list(self.answers),
            "people": self.people,
            "told": self.told,
            "withhold": self.withhold,
            "seed": self.seed,
            "groups": [{"label": f"order {number + 1}"} for number in range(self.orders)],
            "arms": [{"label": label} for label in ARMS],
        }


@dataclass(frozen=True, eq=False)
class _Arrivals:
    """Everything a worker needs to replay an order of arrival."""

    plan: ArrivalPlan
    choices: Choices
    able: IntArray

    def begin(self) -> Callable[[Task], Outcome]:
        """Return the function that replays an order, or a fold of people in the study that is given coordinates."""
        people = {
            int(row): Person.of(self.choices, int(row), withhold=self.plan.withhold, seed=self.plan.seed)
            for row in self.able
        }

        def trial(task: Task) -> Outcome:
            rows = self._learned(people, task.group) if task.arm == 0 else self._told(people, task.group)
            return Outcome(task, tuple(rows), tuple(0.0 for _ in rows), sum(len(row) > 0 for row in rows))

        return trial

    def describe(self, task: Task) -> str:
        """Return a description of the task for error messages."""
        return f"{ARMS[task.arm]}, order {task.group + 1},"

    def _learned(self, people: dict[int, Person], order: int) -> list[tuple[float, ...]]:
        """Return position, person, accuracies, popularity, dimension and number of teachers for each arrival."""
        seed, ids = self.plan.seed, self.choices.ids
        items = Items(ids=ids)
        arriving = _rng(seed, _ORDER, order).permutation(self.able)[: self.plan.people].tolist()
        population: Population | None = None
        learned_from: int | None = None
        known: set[str] = set()
        given: list[tuple[str, int, int]] = []
        wins, losses = np.zeros(len(ids)), np.zeros(len(ids))
        out = []
        for place, row in enumerate(arriving):
            if is_due(place, learned_from):
                rows = [(name, ids[winner], ids[loser]) for name, winner, loser in given]
                fresh = {name for name, _, _ in given} - known
                try:
                    lesson = learn(Choices.from_pairs(rows, ids=ids), items, previous=population, since=fresh, seed=0)
                    population, known = lesson.population, known | fresh
                except InvalidChoices:
                    # As in a study, the earlier version stays in use.
                    pass
                learned_from = place
            person = people[row]
            score = np.log((wins + 1.0) / (losses + 1.0))
            accuracies, told = _session(
                person,
                items,
                population,
                self.plan.answers,
                begin=place * max(self.plan.answers),
                key=(seed, order, row),
            )
            dimension = float("nan") if population is None else float(population.items.d)
            from_how_many = float(learned_from or 0)
            out.append((float(place + 1), float(row), *accuracies, _accuracy(score, person), dimension, from_how_many))
            for winner, loser in told:
                given.append((self.choices.people[row], winner, loser))
                wins[winner] += 1.0
                losses[loser] += 1.0
        return out

    def _told(self, people: dict[int, Person], fold: int) -> list[tuple[float, ...]]:
        """Return person and accuracies for each person of a fold, with a population of everyone else."""
        seed, folds = self.plan.seed, self.plan.orders
        number = _rng(seed, _FOLDS).permutation(len(self.able)) % max(folds, 2)
        mine = self.able[number == fold]
        others = self.choices.only(np.setdiff1d(np.arange(len(self.choices.people)), mine))
        population: Population | None
        try:
            population = fitted_to_all(others, self.plan.told, seed)
        except InvalidChoices:
            # Choices that are no better than random teach no coordinates.
            population = None
        items = Items(ids=self.choices.ids)
        out = []
        for row in mine.tolist():
            accuracies, _ = _session(
                people[row], items, population, self.plan.answers, begin=0, key=(seed, folds, row), random=0.0
            )
            out.append((float(row), *accuracies))
        return out


def fitted_to_all(choices: Choices, dimension: int, seed: int) -> Population:
    """Fit coordinates to choices, and add the items that nobody compared."""
    unmet = set(choices.uncompared)
    met = choices.of_items([name for name in choices.ids if name not in unmet])
    return Population.fit(met, dimension=dimension, rng=seed).extended(choices.ids)


def _session(
    person: Person,
    items: Items,
    population: Population | None,
    counts: Sequence[int],
    *,
    begin: int,
    key: tuple[int, ...],
    random: float = RANDOM_SHARE,
) -> tuple[list[float], list[tuple[int, int]]]:
    """Return the accuracies at the answer counts, and the (winner, loser) rows of a session's answers."""
    askable = person.askable
    allowed = {frozenset(pair): tuple(pair) for pair in askable.tolist()}
    catalogue = items if population is None else population.matched(items)
    search = Search(
        catalogue,
        strategy=InfoGain(),
        candidates=ListedPairs(tuple(allowed.values())),
        rest=Rest(pair=len(allowed)),
        rng=int(_rng(_SEARCH, *key).integers(2**63)),
        population=population,
    )
    asked: list[frozenset[int]] = []
    accuracies: list[float] = []
    for number in range(1, max(counts) + 1):
        pair: frozenset[int] | None = None
        draw = _rng(_WHICH, number, *key)
        if population is None:
            found = balanced_pair(items.n, key[0], begin, asked, allowed)
            pair = None if found is None else frozenset(found)
        elif draw.random() < random:
            remaining = [one for one in allowed if one not in asked]
            pair = remaining[int(draw.integers(len(remaining)))] if remaining else None
        if pair is None and len(asked) < len(allowed):
            try:
                query = search.ask()
            except NoPairLeft:
                break
            pair = frozenset((items.index(query.left), items.index(query.right)))
            search.tell(query, winner=items.ids[allowed[pair][0]])
        elif pair is not None:
            winner, loser = allowed[pair]
            search.observe(items.ids[winner], items.ids[loser], winner=items.ids[winner])
        else:
            break
        asked.append(pair)
        if number in counts:
            utility = expected_utilities(search.modelled_items, search.belief, search.response)
            accuracies.append(_accuracy(utility, person))
    accuracies += [float("nan")] * (len(counts) - len(accuracies))
    return accuracies, [(int(allowed[pair][0]), int(allowed[pair][1])) for pair in asked]


def _accuracy(utility: FloatArray, person: Person) -> float:
    """Return the fraction of withheld pairs whose winner has the higher utility; ties count half."""
    winner, loser = person.winner[person.withheld], person.loser[person.withheld]
    return float(np.mean(0.5 * (np.sign(utility[winner] - utility[loser]) + 1.0)))


@dataclass(frozen=True, eq=False)
class ArrivalResults:
    """Accuracies of all arrivals in all orders.

    Attributes
    ----------
    plan
        The specification.
    people
        Names of the people.
    place, person
        (m,) number of the arrival, from 1, and row of the person.
    order
        (m,) order of arrival.
    learning, told
        (m, answers) accuracy of the study that learns, and of the study that was given coordinates.
    popular
        (m,) accuracy of popularity from the same earlier answers.
    dimension
        (m,) dimension of the version that the session started with; NaN before the first version.
    """

    plan: ArrivalPlan
    people: tuple[str, ...]
    place: IntArray
    person: IntArray
    order: IntArray
    learning: FloatArray
    told: FloatArray
    popular: FloatArray
    dimension: FloatArray

    @classmethod
    def of(cls, plan: ArrivalPlan, outcomes: dict[Task, Outcome], people: tuple[str, ...]) -> ArrivalResults:
        """Join the outcomes by person."""
        told = np.full((len(people), len(plan.answers)), np.nan)
        for task, outcome in outcomes.items():
            if task.arm == 1:
                for row, *values in outcome.values:
                    told[int(row)] = values
        orders = sorted((task.group, outcome) for task, outcome in outcomes.items() if task.arm == 0)
        table = np.array([row for _, outcome in orders for row in outcome.values])
        order = np.repeat([group for group, _ in orders], [len(outcome.values) for _, outcome in orders])
        person, last = table[:, 1].astype(np.int64), 2 + len(plan.answers)
        own = (table[:, 2:last], told[person], table[:, last], table[:, last + 1])
        return cls(plan, people, table[:, 0].astype(np.int64), person, order, *own)

    def summary(self) -> list[JSON]:
        """Return a row for each group of arrivals and number of answers.

        Leads are paired by person; their standard errors are over people, who may arrive in several orders.
        """
        out = []
        for first, last in BINS:
            inside = (self.place >= first) & (self.place <= (last or np.inf))
            for column, count in enumerate(self.plan.answers):
                rows = inside & np.isfinite(self.learning[:, column]) & np.isfinite(self.told[:, column])
                if rows.any():
                    out.append(self._row(rows, column, count, f"{first}-{last}" if last else "later"))
        return out

    def _row(self, rows: BoolArray, column: int, count: int, label: str) -> JSON:
        learning, told, popular = self.learning[rows, column], self.told[rows, column], self.popular[rows]
        lead, behind = (self._by_person(rows, values) for values in (learning - popular, told - learning))
        dimension = self.dimension[rows]
        known = dimension[np.isfinite(dimension)]
        return {
            "arrivals": label,
            "answers": count,
            "sessions": int(rows.sum()),
            "people": len(lead),
            "learning": float(learning.mean()),
            "popularity": float(popular.mean()),
            "told": float(told.mean()),
            "lead": float((learning - popular).mean()),
            "lead_se": _error(lead),
            "behind": float((told - learning).mean()),
            "behind_se": _error(behind),
            "dimension": float(known.mean()) if len(known) else None,
        }

    def _by_person(self, rows: BoolArray, values: FloatArray) -> FloatArray:
        """Return the means of each person's values."""
        _, place = np.unique(self.person[rows], return_inverse=True)
        return np.asarray(np.bincount(place, values) / np.bincount(place))

    def write(self, folder: Path) -> list[Path]:
        """Write the summary to ``arrivals.csv``, and a row for each session to ``sessions.csv``."""
        summary = self.summary()
        paths = [folder / "arrivals.csv", folder / "sessions.csv"]
        write_result(paths[0], csv_text(list(summary[0]), [list(row.values()) for row in summary]))
        names = [f"{what}_{count}" for what in ("learning", "told") for count in self.plan.answers]
        rows = [
            [order + 1, place, self.people[person], *learning, *told, popular, dimension]
            for order, place, person, learning, told, popular, dimension in zip(
                self.order.tolist(),
                self.place.tolist(),
                self.person.tolist(),
                self.learning.tolist(),
                self.told.tolist(),
                self.popular.tolist(),
                self.dimension.tolist(),
                strict=True,
            )
        ]
        header = ["order", "arrival", "person", *names, "popularity", "dimension"]
        write_result(paths[1], csv_text(header, rows))
        return paths


def _error(values: FloatArray) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def arrivals(
    choices: Choices,
    folder: str | Path,
    plan: ArrivalPlan | None = None,
    *,
    jobs: int = 1,
    progress: Callable[[RunStatus], None] | None = None,
) -> ArrivalResults:
    """Replay the arrival of recorded people at a study that learns, and predict their withheld pairs.

    Parameters
    ----------
    choices
        Recorded choices.
    folder
        Folder of results. A folder of the same replay is resumed; any other is refused.
    plan
        The specification.
    jobs
        Number of worker processes, each with one thread.
    progress
        Called after every order.
    """
    plan = ArrivalPlan() if plan is None else plan
    usable = choices.usable()
    able = [row for row in range(len(usable.people)) if len(Person.of(usable, row)) > max(plan.answers)]
    if len(able) < _FEWEST:
        raise InvalidChoices(
            f"{len(able)} people decided more than {max(plan.answers)} pairs: a replay of arrivals needs at least "
            f"{_FEWEST}: use fewer answers, or choices of more people"
        )
    record = plan.record() | {"data": usable.hash}
    identity = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    labels = tuple(f"order {number + 1}" for number in range(plan.orders))
    work = RunPlan(labels, ARMS, 1, record, identity)
    outcomes, _ = run_plan(work, lambda: _Arrivals(plan, usable, np.array(able)), folder, jobs=jobs, progress=progress)
    results = ArrivalResults.of(plan, outcomes, usable.people)
    results.write(Path(folder))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="recorded choices")
    parser.add_argument("--orders", type=int, default=ORDERS, help="random orders of arrival")
    parser.add_argument("--people", type=int, help="people who arrive in each order; everyone by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    plan = ArrivalPlan(orders=given.orders, people=given.people, seed=given.seed)
    folder = given.out or Path("pairseek-results") / f"arrivals-{given.data.stem}"
    rows = arrivals(Choices.read(given.data), folder, plan, jobs=given.jobs).summary()
    print("\t".join(rows[0]))
    for row in rows:
        print("\t".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))


if __name__ == "__main__":
    main()
