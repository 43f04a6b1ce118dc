"""Predictions about items that were never asked, from the same answers of recorded people for all contenders.

    python benchmarks/unasked.py                  # people of the reporting half; prints the tables
    python benchmarks/unasked.py --half choosing  # the half for making choices

Needs `pip install -e '.[qdrant]'` and the ratings in ``data/people`` of the folder that PAIRSEEK_DATA names.

Vectors are eight item coordinates from a population fitted to a third of the other people; the population with vectors
is fitted to the other two thirds. A third of the items that a person rated, drawn by a hash before the first question,
is never asked about, and the pairs among these items are predicted. All contenders get the same answers about the other
items, either to random pairs or to pairs that pairseek asks.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pairseek as ps
from pairseek.experiments.comparison.datasets import half_of
from pairseek.experiments.comparison.methods.qdrant import qdrant_scores
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.sources import data_folder
from pairseek.experiments.evaluation.replay import Popularity
from pairseek.search.recommending import expected_utilities

NAMES = {"gss_music": "Music", "food_world_cup": "Food"}
ANSWERS = (0, 5, 10, 20)
DIMENSION, LENGTH = 4, 8
# Answers that ratings imply never contradict each other. Like the dimension, this was chosen on the choosing half.
RESIDUAL = "implied"
SHARE = 1 / 3
OWN = "pairseek, population with vectors"
Scorer = Callable[[list[tuple[int, int]]], Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Pairs to ask a person and pairs to predict: rows of items, winner first."""

    name: str
    asked: Any
    predicted: Any

    @classmethod
    def of(cls, choices: ps.Choices, row: int) -> Task:
        person = Person.of(choices, row, withhold=0.0)
        name = choices.people[row]
        rated = np.flatnonzero(np.isfinite(person.value))
        hashes = [hashlib.sha256(repr(("unasked", name, choices.ids[item])).encode()).digest() for item in rated]
        order = sorted(range(len(rated)), key=hashes.__getitem__)
        test = np.zeros(len(choices.ids), dtype=np.bool_)
        test[rated[order[: round(SHARE * len(rated))]]] = True
        decided = np.stack([person.winner, person.loser], axis=1)
        inside = test[person.askable].any(axis=1)
        return cls(name, person.askable[~inside], decided[test[decided].all(axis=1)])


def search_of(items: ps.Items, task: Task, **parts: Any) -> ps.Search:
    """Return a search over the pairs of a task."""
    listed = ps.ListedPairs(tuple(map(tuple, task.asked.tolist())))
    seed = int(hashlib.sha256(task.name.encode()).hexdigest()[:8], 16)
    return ps.Search(items, candidates=listed, rest=ps.Rest(pair=len(task.asked)), rng=seed, **parts)


def by_pairseek(task: Task, population: ps.Population) -> list[tuple[int, int]]:
    """Return, in order, the answers to the pairs that a search with the population asks."""
    items = population.items
    search = search_of(items, task, population=population)
    winners = {frozenset(pair): pair for pair in map(tuple, task.asked.tolist())}
    answers = []
    for _ in range(max(ANSWERS)):
        query = search.ask()
        answers.append(winners[frozenset((items.index(query.left), items.index(query.right)))])
        search.tell(query, winner=items.ids[answers[-1][0]])
    return answers


def by_chance(task: Task, _: ps.Population) -> list[tuple[int, int]]:
    """Return the answers to random pairs."""
    rng = np.random.default_rng(int(hashlib.sha256(task.name.encode()).hexdigest()[:8], 16))
    return [tuple(pair) for pair in rng.permutation(task.asked)[: max(ANSWERS)].tolist()]


ASKERS = {"random questions": by_chance, "pairseek's questions": by_pairseek}


def searcher(items: ps.Items, **parts: Any) -> Scorer:
    """Return a function from answers to the expected utilities of a search that observed them."""

    def score(answers: list[tuple[int, int]]) -> Any:
        search = ps.Search(items, rng=0, **parts)
        for winner, loser in answers:
            search.observe(items.ids[winner], items.ids[loser], winner=items.ids[winner])
        return expected_utilities(search.modelled_items, search.belief, search.response)

    return score


def average(vectors: Any) -> Scorer:
    """Return the cosine similarity with the mean of the vectors of the items that won."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)

    def score(answers: list[tuple[int, int]]) -> Any:
        return units @ units[[winner for winner, _ in answers]].mean(axis=0) if answers else np.zeros(len(units))

    return score


def contenders(
    population: ps.Population, plain: ps.Population, vectors: ps.Items, others: ps.Choices
) -> dict[str, Scorer]:
    popularity = Popularity.of(others)
    found = {
        OWN: searcher(population.items, population=population),
        "pairseek, population without vectors": searcher(plain.items, population=plain),
        "pairseek, vectors alone": searcher(vectors),
    }
    placed = ps.Items(population.items.coordinates, ids=population.items.ids)
    for what, items in (("vectors", vectors), ("coordinates of the population", placed)):
        own = np.asarray(items.coordinates)
        found[f"average of liked, {what}"] = average(own)
        for how in ("average", "best", "context"):
            found[f"Qdrant {how}{' score' if how == 'best' else ''}, {what}"] = qdrant_scores(own, how)
    found["popularity"] = lambda _: popularity.score
    return found


def prepared(name: str, half: str, count: int) -> tuple[list[Task], dict[str, Scorer], ps.Population]:
    """Return the tasks of the people asked, and the contenders and the population fitted to other people."""
    choices = ps.Choices.read(data_folder() / "data" / "people" / name / "ratings.csv").usable()
    chosen = np.array([half_of(person) == half for person in choices.people])
    rng = np.random.default_rng(0)
    tested = rng.permutation(np.flatnonzero(chosen))[:count]
    # Choices must not depend on the reporting half.
    rest = np.setdiff1d(np.flatnonzero(chosen) if half == "choosing" else np.arange(len(chosen)), tested)
    rest = rng.permutation(rest)
    cut = len(rest) // 3
    teachers, others = choices.only(np.sort(rest[:cut])), choices.only(np.sort(rest[cut:]))
    vectors = ps.Population.fit(teachers, dimension=LENGTH, residual=0.0).items
    vectors = ps.Items(vectors.coordinates, ids=vectors.ids)
    population = ps.Population.fit(others, vectors=vectors, dimension=DIMENSION, residual=RESIDUAL)
    plain = ps.Population.fit(others, dimension=DIMENSION, residual=RESIDUAL)
    assert population.items.ids == choices.ids == vectors.ids == plain.items.ids
    every = [Task.of(choices, int(row)) for row in np.sort(tested)]
    tasks = [task for task in every if len(task.asked) >= max(ANSWERS) and len(task.predicted)]
    fits = f"vectors from {len(teachers.people)} people, population of {len(others.people)}"
    print(f"\n{NAMES[name]}, {half} half: {len(choices.ids)} items, {fits}; {len(tasks)} people asked", flush=True)
    return tasks, contenders(population, plain, vectors, others), population


def accuracies(task: Task, score: Scorer, answers: list[tuple[int, int]]) -> list[float]:
    """Return, for each answer count, the fraction of predicted pairs whose winner scores higher; ties count half."""
    out = []
    for count in ANSWERS:
        utility = np.asarray(score(answers[:count]), dtype=float)
        margin = utility[task.predicted[:, 0]] - utility[task.predicted[:, 1]]
        out.append(float(np.mean(np.where(margin == 0.0, 0.5, margin > 0.0))))
    return out


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield a Markdown table of accuracies, and of the lead of pairseek's population with vectors, paired by person."""
    counts = [place for place, count in enumerate(ANSWERS) if count]
    yield (
        "| | "
        + " | ".join(f"after {ANSWERS[c]}" for c in counts)
        + " | "
        + " | ".join(f"lead at {ANSWERS[c]}" for c in counts)
        + " |"
    )
    yield "|---|" + "---|" * (2 * len(counts))
    for label, values in found.items():
        lead = found[OWN] - values
        error = lead.std(axis=0, ddof=1) / np.sqrt(len(lead))
        cells = [f"{values[:, c].mean():.3f}" for c in counts]
        leads = [f"{lead[:, c].mean():+.3f} ± {error[c]:.3f}" if label != OWN else "" for c in counts]
        yield f"| {label} | {' | '.join(cells + leads)} |"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--half", choices=("reporting", "choosing"), default="reporting")
    parser.add_argument("--data", default=",".join(NAMES))
    options = parser.parse_args(given)
    for name in options.data.split(","):
        tasks, scorers, population = prepared(name, options.half, options.people)
        for asker, ask in ASKERS.items():
            answers = [ask(task, population) for task in tasks]
            found = {
                label: np.array(
                    [accuracies(*pair) for pair in ((t, score, a) for t, a in zip(tasks, answers, strict=True))]
                )
                for label, score in scorers.items()
            }
            print(f"\n### {NAMES[name]}, {asker}, {len(tasks)} people\n")
            print("\n".join(table(found)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
