"""Lessons of a study from its people: appeal at once, and coordinates once they improve predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.types import JSON, FloatArray, ItemId
from pairseek.errors import InvalidChoices
from pairseek.model.defaults import RESIDUAL_WITHOUT_COORDINATES
from pairseek.model.items import Items
from pairseek.people.learning.validation import Validation, cross_validate, predictions
from pairseek.people.population import Choices, Population
from pairseek.people.population.fit import LearningStep
from pairseek.people.population.model import FitOptions
from pairseek.people.population.residual import residual_of

MIN_SESSIONS = 10
"""Number of finished sessions after which a study first learns."""
RANDOM_SHARE = 0.1
"""Fraction of random pairs in the sessions of a learning study, which test predictions and reach new items."""
# A study learns again when its number of finished sessions has grown by this fraction.
_GROWTH = 0.25


def next_due(learned_sessions: int | None) -> int:
    """Return the number of finished sessions at which a study learns next.

    Parameters
    ----------
    learned_sessions
        Number of sessions from which the newest version was learned; None before the first version.
    """
    if learned_sessions is None or learned_sessions < MIN_SESSIONS:
        return MIN_SESSIONS
    return learned_sessions + max(1, -int(-_GROWTH * learned_sessions // 1))


def is_due(finished_sessions: int, learned_sessions: int | None) -> bool:
    """Return whether a study with this number of finished sessions learns now.

    Voiding sessions can reduce their number below the number from which the newest version was learned. The study
    learns again once the two numbers differ by a quarter in either direction.
    """
    if finished_sessions < MIN_SESSIONS:
        return False
    if learned_sessions is None:
        return True
    return finished_sessions >= next_due(learned_sessions) or learned_sessions >= next_due(finished_sessions)


DIMENSIONS = (0, 1, 2, 3, 4, 6, 8)
"""Numbers of dimensions in which a study may learn coordinates; 0 learns only an appeal."""


@dataclass(frozen=True)
class HeldOut:
    """Accuracy on held-out answers, given half of the same person's answers but at most ten.

    Attributes
    ----------
    people
        Number of people.
    accuracy
        Fraction of answers predicted correctly, averaged over people.
    log_likelihood
        Mean log probability of an answer, averaged over people.
    """

    people: int
    accuracy: float
    log_likelihood: float

    @classmethod
    def of(cls, accuracy: FloatArray, scores: FloatArray) -> HeldOut:
        """Average over people."""
        return cls(len(accuracy), float(accuracy.mean()), float(scores.mean()))

    def record(self) -> JSON:
        """Return the values as JSON data."""
        return {"people": self.people, "accuracy": self.accuracy, "log_likelihood": self.log_likelihood}


@dataclass(frozen=True, eq=False)
class Lesson:
    """The result of learning: a population over all items, and how well it predicts answers.

    Attributes
    ----------
    population
        Population from which later sessions start.
    sessions, answers
        Numbers of sessions and answers it was learned from.
    dimension
        Number of dimensions of the learned coordinates; None if coordinates were given.
    before, after
        Accuracy on held-out answers of the people who came after the previous version: `before` is the accuracy of that
        version (of a coin if there is none), `after` the cross-validated accuracy of this one. None if nobody came
        since, or with fewer than ten people, who are too few to measure it.
    unmet
        Items that nobody compared.
    seconds
        Time taken to learn.
    """

    population: Population
    sessions: int
    answers: int
    dimension: int | None
    before: HeldOut | None
    after: HeldOut | None
    unmet: tuple[ItemId, ...]
    seconds: float

    def record(self) -> JSON:
        """Return what the owner of a study sees about this version, as JSON data."""
        return {
            "sessions": self.sessions,
            "answers": self.answers,
            "dimension": self.dimension,
            "residual": self.population.residual,
            "before": None if self.before is None else self.before.record(),
            "after": None if self.after is None else self.after.record(),
            "unmet": [str(name) for name in self.unmet],
            "seconds": round(self.seconds, 3),
        }


def learn(
    choices: Choices,
    items: Items,
    *,
    previous: Population | None = None,
    since: Collection[str] | None = None,
    seed: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> Lesson:
    """Learn from the choices of a study's people. Equal arguments give equal results.

    Parameters
    ----------
    choices
        Choices of the people, one person per session.
    items
        Items of the study. Appeal and prior are learned, and the coordinates too if the items have none.
    previous
        The previous version.
    since
        People who came after the previous version, on whose answers both versions are measured. None: everybody.
    seed
        Seed of the folds.
    progress
        Called after each step.
    """
    started = time.perf_counter()
    choices = choices.of_items(items.ids)
    uncompared = choices.uncompared
    given_items = items if items.d else None
    compared = _learnable(choices, given_items)
    candidates = [FitOptions()] if given_items is not None else _candidate_options(compared, previous)
    validation = (
        cross_validate(compared, given_items, candidates, seed=seed, progress=progress)
        if len(compared.people) >= MIN_SESSIONS
        else None
    )
    chosen = candidates[0] if validation is None else validation.chosen
    population = _fit_population(
        compared, given_items, chosen, None if validation is None else residual_of(validation.share), seed, progress
    )
    if given_items is None:
        population = population.extended(items.ids)
        population = replace(population, provenance={**population.provenance, "unmet": list(uncompared)})
    before, after = (None, None) if validation is None else _held_out_accuracy(compared, validation, previous, since)
    counts = (len(choices.people), len(choices) + choices.ties)
    return Lesson(population, *counts, chosen.dimension, before, after, uncompared, time.perf_counter() - started)


def learn_appeal(choices: Choices, items: Items) -> Population:
    """Learn only the appeal of items without coordinates, which takes few people.

    A study uses it to show the first people their taste, because nothing had been learned when they began.
    """
    choices = choices.of_items(items.ids)
    return _fit_population(_learnable(choices, None), None, FitOptions(0), None, 0, None).extended(items.ids)


def _learnable(choices: Choices, given_items: Items | None) -> Choices:
    """Select the choices to learn from; raise `InvalidChoices` if there are too few."""
    if not len(choices):
        raise InvalidChoices("there is nothing to learn from: nobody decided a pair; collect more answers")
    usable, uncompared = choices.usable(), set(choices.uncompared)
    # Items that nobody compared are added after the fit.
    compared = (
        usable if given_items is not None else usable.of_items([name for name in usable.ids if name not in uncompared])
    )
    if len(compared.people) < 2:
        raise InvalidChoices("only one person gave usable answers: collect answers of at least two people")
    return compared


def _candidate_options(choices: Choices, previous: Population | None) -> list[FitOptions]:
    """Return the numbers of dimensions to compare: the smallest at first, later those near the previous version's."""
    most = max(1, len(choices.ids) - 2)
    index = 0 if previous is None else DIMENSIONS.index(min(DIMENSIONS, key=lambda d: abs(d - previous.items.d)))
    dimensions = DIMENSIONS[max(0, index - 1) : max(index + 2, 3)]
    return [FitOptions(d) for d in dimensions if d <= most]


def _fit_population(
    choices: Choices,
    items: Items | None,
    options: FitOptions,
    residual: float | None,
    seed: int,
    progress: Callable[[LearningStep], None] | None,
) -> Population:
    population = Population.fit(
        choices,
        items,
        dimension=options.dimension,
        residual="auto" if residual is None else residual,
        rng=seed,
        progress=progress,
    )
    if not population.informed:
        raise InvalidChoices(
            f"the answers of {population.people} people are no more informative than random answers: collect more "
            f"answers"
        )
    # Without coordinates and residual utilities, answers would say nothing about a person.
    return (
        population
        if population.items.d or population.residual
        else population.with_residual(RESIDUAL_WITHOUT_COORDINATES)
    )


def _held_out_accuracy(
    choices: Choices, validation: Validation, previous: Population | None, since: Collection[str] | None
) -> tuple[HeldOut | None, HeldOut | None]:
    """Return the accuracy of the previous version, and in cross-validation, on held-out answers of new people."""
    is_new = np.array([since is None or choices.people[trial.row] in since for trial in validation.trials])
    if not is_new.any():
        # The previous version has learned from everybody, so its accuracy on others cannot be measured.
        return None, None
    after = HeldOut.of(validation.accuracy[is_new], validation.scores[is_new])
    if previous is None:
        return replace(after, accuracy=0.5, log_likelihood=-float(np.log(2.0))), after
    if previous.given is None:
        previous = previous.extended(choices.ids)
    scores, accuracy = predictions(previous, [validation.trials[place] for place in np.flatnonzero(is_new)])
    return HeldOut.of(accuracy, scores), after
