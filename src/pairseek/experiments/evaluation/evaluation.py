"""Evaluation of searches on recorded choices: splits, populations and replays, in a crash-safe folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import IntArray
from pairseek.core.validation import one_of, whole
from pairseek.errors import InvalidChoices, InvalidFile, InvalidParameter
from pairseek.experiments.comparison.person import WITHHOLD, Person
from pairseek.experiments.evaluation.replay import Popularity, replayed
from pairseek.experiments.evaluation.results import EvaluationResults, agreement_of
from pairseek.experiments.evaluation.specification import Evaluation, HoldOut, Ties, arms
from pairseek.experiments.runs.plan import Outcome, RunStatus, Task
from pairseek.experiments.runs.runner import run_plan
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.pairs.strategies.base import Utility
from pairseek.people.population import Choices, Population
from pairseek.people.population.leave_one_out import FitOfAll
from pairseek.people.population.residual import ResidualSetting, scale_of
from pairseek.search.goals import LIST_SIZE, Goal, SearchGoal

ANSWERS = (0, 5, 10, 20, 40)
PEOPLE = 150
_SPLIT, _SEARCH = range(2)


@dataclass(frozen=True, eq=False)
class _People:
    """Everything that a worker needs to replay a person.

    Attributes
    ----------
    plan
        The evaluation.
    choices
        Choices of all people with usable choices.
    items
        Items with coordinates, if they were given.
    held
        (splits, people) rows of the held-out people.
    populations
        One population per split; for leave-one-out, a single population of all people.
    fit_of_all
        For leave-one-out, the fit to all people.
    """

    plan: Evaluation
    choices: Choices
    items: Items | None
    held: IntArray
    populations: tuple[Population, ...]
    fit_of_all: FitOfAll | None

    def begin(self) -> Callable[[Task], Outcome]:
        """Return the function that replays one person."""
        popularity = [self._popularity(row) for row in self.held] if self.fit_of_all is None else []
        tied = [self._tied(row) for row in (self.held if self.fit_of_all is None else self.held[:, :0])]

        def trial(task: Task) -> Outcome:
            row = int(self.held[task.group, task.unit])
            if self.fit_of_all is None:
                population, popular = self.populations[task.group], popularity[task.group]
            else:
                population, popular = (
                    self.fit_of_all.without(row),
                    self._popularity(np.array([row])),
                )
            seed = int(np.random.SeedSequence([self.plan.seed, _SEARCH, task.group, row]).generate_state(1)[0])
            rows, seconds, asked = replayed(
                Person.of(self.choices, row, withhold=self.plan.withhold, seed=self.plan.seed),
                self.plan.arms[task.arm],
                population,
                self.items,
                popular,
                answers=self.plan.answers,
                samples=self.plan.samples,
                seed=seed,
                ties=self.plan.ties,
                tied=tied[task.group],
            )
            return Outcome(task, tuple(rows), tuple(seconds), asked)

        return trial

    def describe(self, task: Task) -> str:
        """Return a description of the replay for error messages."""
        person = self.choices.people[int(self.held[task.group, task.unit])]
        return f"{self.plan.labels[task.arm]} for person {person!r}, {self.plan.groups[task.group]},"

    def _tied(self, held: IntArray) -> float:
        """Return the share of ties among the pairs of people who are not held out."""
        decided = int(np.sum(~np.isin(self.choices.person, held)))
        ties = int(np.sum(~np.isin(self.choices.tied[:, 0], held)))
        return ties / max(ties + decided, 1)

    def _popularity(self, held: IntArray) -> Popularity:
        return Popularity.of(self.choices.rows(~np.isin(self.choices.person, held)))


def evaluate(
    choices: Choices,
    folder: str | Path,
    *,
    items: Items | None = None,
    learn: int | Literal["auto"] | None = None,
    appeal: bool | Literal["auto"] = True,
    rescale: bool | Literal["auto"] = False,
    curvature: bool | Literal["auto"] = False,
    residual: float | ResidualSetting = "auto",
    goal: Goal = "taste",
    strategies: Sequence[Utility] = (),
    answers: Sequence[int] = ANSWERS,
    hold_out: HoldOut = "people",
    people: int | None = None,
    among: Collection[str] | None = None,
    splits: int = 3,
    withhold: float = WITHHOLD,
    ties: Ties = "coin",
    samples: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[RunStatus], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> EvaluationResults:
    """Replay recorded people: ask them pairs that they answered in the data, and predict others that they answered.

    Parameters
    ----------
    choices
        Recorded choices.
    folder
        Folder of results. A folder of the same evaluation is continued; any other is refused.
    items, learn, appeal, rescale, curvature, residual
        Items with coordinates, or the number of dimensions in which to learn them, and options of the fit: see
        `Population.fit`. ``"auto"`` options are chosen on the people of a split who are not held out or,
        for leave-one-out, on everybody, including the person replayed.
    goal
        What a search is for: see `Search`.
    strategies
        Strategies to evaluate; if empty, the strategy of the goal. Random questions, the plain model and popularity
        are always added as baselines.
    answers
        Answer counts at which predictions are scored, in increasing order.
    hold_out
        ``"people"`` or ``"leave-one-out"``.
    people
        Number of people to hold out in a split. None: 150, or a third if there are fewer than 450 people; everybody for
        leave-one-out.
    among
        Names of the people who may be held out. None: everybody. The others are always learned from.
    splits
        Groups of held-out people, drawn without repetition as long as there are enough; one for leave-one-out.
    withhold
        Share of each person's pairs, at least one pair, that are never asked and only predicted. They are drawn before
        the first question, from the person's name and the seed, and are the same for every strategy. With 0, any pair
        may be asked, and the pairs that were not asked are predicted. This flatters strategies that ask about pairs
        that are hard to predict, so strategies cannot be compared.
    ties
        Answers to pairs that the person did not decide. Such pairs may be asked and are never scored: ``"coin"``, a
        coin flip that is the same for every strategy, as if the person had to choose; or ``"tie"``, as if ties were
        offered.
    samples
        Number of `Particles` of the posterior. None: `EP`.
    seed
        Seed of all random numbers.
    jobs
        Number of worker processes, each with one thread.
    progress, note
        Functions that are called after every replay, and with a message before each fit.

    Examples
    --------
    Worker processes import the script that calls `evaluate`: in a script, put the call below
    ``if __name__ == "__main__":``. Six people are enough for an example, and too few for a conclusion.

    >>> import itertools
    >>> import pairseek as ps
    >>> from pairseek.evaluate import evaluate
    >>> teas = ps.Items([[0.0], [1.0], [2.0], [3.0]], ids=["white", "green", "oolong", "black"])
    >>> orders = dict(zip("abcdef", itertools.permutations(teas.ids)))
    >>> rows = [
    ...     (person, winner, loser)
    ...     for person, order in orders.items()
    ...     for winner, loser in itertools.combinations(order, 2)
    ... ]
    >>> choices = ps.Choices.from_pairs(rows + rows[:12])   # a and b answered everything twice
    >>> model = {"items": teas, "appeal": False, "residual": 0.0}
    >>> results = evaluate(choices, "evaluation", **model, answers=(0, 2), people=2, splits=1)
    >>> results.plan.labels
    ('InfoGain', 'Random', 'plain model', 'popularity')
    """
    if (items is None) == (learn is None):
        raise InvalidParameter("give items with coordinates, or the number of dimensions in which to learn them")
    for name, value, least in (("splits", splits, 1), ("seed", seed, 0)):
        whole(value, name, least)
    choices = choices if items is None else choices.of_items(items.ids)
    usable = choices.usable()
    candidates = _held_out_candidates(choices, usable, among)
    leaves_one_out = hold_out == "leave-one-out"
    held_out_splits = _split_people(
        candidates, len(usable.people), people, 1 if leaves_one_out else splits, seed, alone=leaves_one_out
    )
    learning = {
        "dimension": learn,
        "appeal": appeal,
        "rescale": rescale,
        "curvature": curvature,
        "residual": residual,
    }
    data = hashlib.sha256(
        repr(
            (
                usable.hash,
                None if items is None else items.hash,
                sorted(learning.items(), key=str),
                held_out_splits.tolist(),
            )
        ).encode()
    )
    plan = Evaluation(
        arms(tuple(strategies) or (_strategy(goal),)),
        tuple(answers),
        hold_out,
        held_out_splits.shape[1],
        len(held_out_splits),
        withhold,
        ties,
        samples,
        seed,
        data.hexdigest(),
    )
    path = Path(folder)

    def make_work() -> _People:
        populations, fit_of_all = _populations(path, plan, usable, items, learning, held_out_splits, note)
        return _People(plan, usable, items, held_out_splits, populations, fit_of_all)

    outcomes, record = run_plan(plan.plan(), make_work, path, jobs=jobs, progress=progress)
    names = [[usable.people[row] for row in split] for split in held_out_splits]
    results = EvaluationResults.of(plan, outcomes, names, agreement_of(choices), record)
    results.write(path)
    return results


def _held_out_candidates(choices: Choices, usable: Choices, among: Collection[str] | None) -> IntArray:
    """Return the rows of the usable people who may be held out: those who gave at least two usable choices."""
    candidates = np.array([row for row in range(len(usable.people)) if len(Person.of(usable, row)) > 1], dtype=np.int64)
    if among is not None:
        unknown = sorted(set(among) - set(choices.people))
        if unknown:
            raise InvalidParameter(
                f"among names {quoted(unknown)}, who is not among the {len(choices.people)} people of the choices"
            )
        candidates = candidates[[usable.people[row] in set(among) for row in candidates]]
    if len(usable.people) < 3 or not len(candidates):
        who = "person" if len(usable.people) == 1 else "people"
        listed_people = f" ({quoted(usable.people)})" if usable.people else ""
        others = f"; {quoted(choices.unusable)} gave no usable pair" if choices.unusable else ""
        raise InvalidChoices(
            f"{len(usable.people)} {who} gave usable choices{listed_people}, {len(candidates)} of them two or more"
            f"{others}: an evaluation needs at least three people, at least one of them with two usable choices"
        )
    return candidates


def _strategy(goal: Goal) -> Utility:
    """Return the strategy of a goal for a person whose reliability is known."""
    size = {"taste": 0, "best": 1, "list": LIST_SIZE}[one_of(goal, "goal", get_args(Goal))]
    return SearchGoal(goal, size).strategy(Logistic())


def _split_people(
    candidates: IntArray, count: int, people: int | None, splits: int, seed: int, *, alone: bool
) -> IntArray:
    largest_size = len(candidates) if alone else min(len(candidates), count - 2)
    size = (largest_size if alone else max(1, min(PEOPLE, count // 3, largest_size))) if people is None else people
    if not 1 <= size <= largest_size:
        raise InvalidParameter(f"people is {people}: give 1 to {largest_size}, of {count} who gave usable choices")
    rng = np.random.default_rng(np.random.SeedSequence([seed, _SPLIT]))
    # Splits overlap only after everybody was held out once, since overlapping splits add less information.
    rounds = len(candidates) // size
    drawn = [rng.permutation(candidates) for _ in range(-(-splits // rounds))]
    parts = [order[size * part : size * (part + 1)] for order in drawn for part in range(rounds)]
    return np.array([np.sort(part) for part in parts[:splits]])


def _populations(
    path: Path,
    plan: Evaluation,
    choices: Choices,
    items: Items | None,
    learning: Mapping[str, object],
    held: IntArray,
    note: Callable[[str], None] | None,
) -> tuple[tuple[Population, ...], FitOfAll | None]:
    out: list[Population] = []
    for number, split in enumerate(held, 1):
        other_choices = (
            choices
            if plan.hold_out == "leave-one-out"
            else choices.only(np.setdiff1d(np.arange(len(choices.people)), split))
        )
        file = path / f"population-{number}.json"
        population = _load_population(file, other_choices)
        if population is None:
            if note is not None:
                note(f"learning from {len(other_choices.people)} people, {plan.groups[number - 1]}")
            population = _fit_population(other_choices, items, plan.seed, learning)
            # Saved, so that an interrupted run does not repeat the fit.
            population.save(file)
        out.append(population)
    if plan.hold_out == "people":
        return tuple(out), None
    return tuple(out), FitOfAll.of(out[0], choices, items)


def _fit_population(choices: Choices, items: Items | None, seed: int, learning: Mapping[str, object]) -> Population:
    """Fit a population over all items, including those that these people did not compare."""
    unseen = choices.uncompared if items is None else ()
    if not unseen:
        return Population.fit(choices, items, rng=seed, **learning)  # type: ignore[arg-type]
    seen = [name for name in choices.ids if name not in set(unseen)]
    population = Population.fit(choices.of_items(seen), None, rng=seed, **learning)  # type: ignore[arg-type]
    # An item that only held-out people compared gets the mean coordinates and the mean utility of the others.
    base, _ = population.utilities()
    points, appeal = np.zeros((len(choices.ids), population.items.d)), np.full(len(choices.ids), base.mean())
    rows = [choices.ids.index(name) for name in seen]
    appeal *= scale_of(population.residual)
    points[rows], appeal[rows] = population.items.coordinates, population.items.appeal
    provenance = {**population.provenance, "choices": choices.hash, "unseen": list(unseen)}
    error = None
    if population.utility_error is not None:
        # Nothing is known about such an item, so its error is the spread of all items.
        error = np.full(len(choices.ids), float(np.std(base)))
        error[rows] = population.utility_error
    items = Items._without_warnings(points, choices.ids, appeal=appeal)
    return replace(population, items=items, provenance=provenance, utility_error=error)


def _load_population(path: Path, choices: Choices) -> Population | None:
    """Load the population of an earlier session if it was fitted to the same choices."""
    try:
        population = Population.load(path)
    except InvalidFile:
        return None
    return population if population.provenance.get("choices") == choices.hash else None
