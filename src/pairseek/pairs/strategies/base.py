"""The protocols of strategies: `Utility`, `Procedure`, and the optional members of a utility.

A *utility* scores every pair, and the search asks the pair of highest score. A *procedure* reads the items and the
history of answers, chooses the next pair itself, and computes its own estimate. Either is a small frozen dataclass that
contains its mathematics and nothing else. The loop over candidates, tie-breaking, randomness and validation belong to
the search.

A utility or a procedure may define further members. `BaseUtility` and `BaseProcedure` declare all of them with their
defaults; no other module tests for a particular strategy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from pairseek.core.own_parts import OwnPart, Part
from pairseek.core.types import Belief, Event, FloatArray, IntArray
from pairseek.model.items import Items, Space
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.planes import Planes
from pairseek.pairs.strategies.shape import UtilityShape


@runtime_checkable
class Utility(Protocol):
    """A strategy that scores pairs; the search asks the pair of highest score.

    A utility that draws, as in Thompson sampling, is a `RandomUtility`: its ``score`` has a third parameter ``rng``.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities of m pairs. The search breaks ties by the order of the items."""
        ...


@runtime_checkable
class RandomUtility(Protocol):
    """A utility whose score draws at random.

    The generator is keyed by the seed of the search, the number of events, and its purpose. Every call about one
    question gets it in the same initial state, so that all pairs are scored by the same draws however they are divided
    into calls; undo, load and replay repeat them.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the (m,) utilities of m pairs."""
        ...


def _owner_of_score(kind: type) -> type | None:
    """Return the class that defines `score`: its shape describes that score, and no other class's does."""
    return next((one for one in kind.__mro__ if "score" in vars(one)), None)


class BaseUtility(Part):
    """Base of a strategy that scores pairs, with the default of every optional member.

    A utility of your own may derive from it, or be a plain class that defines some of these members beside
    `Utility.score`. A class that overrides ``score`` does not inherit ``shape``, which describes its parent's score.
    """

    name: ClassVar[str]
    score: Callable[..., FloatArray]
    rescored: ClassVar[bool] = True
    """Whether the best pairs are rescored by `exact`, where it is defined."""
    enough_pairs: ClassVar[int | None] = None
    """Sample size that replaces all pairs, for a utility with many near-optimal pairs; None: all pairs."""
    most_pairs: ClassVar[int | None] = None
    """Number of pairs beyond which only those among `promising` items are scored; None: the source decides."""
    promising: Callable[[PairFeatures, Belief], IntArray] | None = None
    """Method (candidates, belief) that returns the rows of the items among which the best pair is sought where all
    pairs are too many to list; None: among all."""
    bound: Callable[[PairFeatures, Belief, IntArray], float] | None = None
    """Method (candidates, belief, others) that returns an upper bound on the score of every pair that contains one of
    the items that are not promising; None: no bound is known."""
    exact: Callable[[PairFeatures, Belief], FloatArray] | None = None
    """Method (candidates, belief) that returns the (m,) utilities averaged over every sample, where `score` assumes a
    Gaussian logit; None: `score` is all that is known."""
    planes: Callable[[Space, Belief, Response, np.random.Generator], Planes] | None = None
    """Method (space, belief, response, rng) that returns the planes to choose from in a continuous space; None: only
    items are supported."""
    label_number: int | None = None
    """Number in its label in tables and figures; None: no number."""
    takes_generator: ClassVar[bool] = False
    """Whether ``score`` has a third parameter ``rng``, as that of a `RandomUtility`; follows from its signature."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        owner = _owner_of_score(cls)
        if owner is not None:
            cls.takes_generator = _names_generator(cls.score)
            cls.shape = vars(owner).get("shape", BaseUtility.shape)  # type: ignore[method-assign]

    def shape(self) -> UtilityShape | None:
        """Return the form of `score` as a function of few features, for branch and bound over all pairs; None: none."""
        return None

    def usable_shape(self, response: Response) -> UtilityShape | None:
        """Return the shape, or None where no table tells its values for a response of this kind."""
        shape = self.shape()
        return shape if shape is None or shape.kind == "even" or response.compiled else None

    def resolved(self, items: Items | Space, prior: Prior) -> Utility:  # noqa: ARG002
        """Return the strategy with the settings that depend on items and prior filled in; by default, itself."""
        return self

    def turn(self, number: int, belief: Belief) -> Utility:  # noqa: ARG002
        """Return the utility for question `number`, counted from 0, where several take turns; by default, itself."""
        return self

    def rival(self, belief: Belief) -> Utility | None:  # noqa: ARG002
        """Return a utility in the same unit whose pair is asked instead if its score is higher; by default, None."""
        return None


@runtime_checkable
class Procedure(Protocol):
    """A rule that chooses pairs by itself.

    Both methods are pure functions of their arguments: a repeated call with the same history, also after an undo,
    returns the same result. Every call of a search receives the generator in the same initial state (not advanced by
    earlier calls), so that a procedure can draw, for example, one order of the items for the whole search. The history
    includes skips, which carry no answer, and ties, which carry no winner.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the rows of the two items to ask next; None when the procedure has finished."""
        ...

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) estimate of the user point after this history."""
        ...


class BaseProcedure(Part):
    """Base of a rule that chooses pairs by itself, with the default of every optional member.

    A procedure of your own may derive from it, or be a plain class that defines some of these members beside those of
    `Procedure`.
    """

    name: ClassVar[str]
    next: Callable[[Items, Sequence[Event], np.random.Generator], tuple[int, int] | None]
    estimate: Callable[[Items, Sequence[Event]], FloatArray]
    label_number: int | None = None
    """Number in its label in tables and figures, as in ActRank-3; None: no number."""

    def resolved(self, items: Items | Space, prior: Prior) -> Procedure:  # noqa: ARG002
        """Return the procedure with the settings that depend on items and prior filled in; by default, itself."""
        return self

    def status(self, items: Items, history: Sequence[Event]) -> str | None:  # noqa: ARG002
        """Return a remark about the estimate after this history, for `Estimate.note`; by default, None."""
        return None


class _OwnUtility(OwnPart, BaseUtility):
    """A utility that does not derive from `BaseUtility`."""

    def __init__(self, part: object) -> None:
        super().__init__(part)
        vars(self).update(takes_generator=_names_generator(self.score), shape=lambda: _declared_shape(part))

    def resolved(self, items: Items | Space, prior: Prior) -> Utility:  # noqa: ARG002
        """Return the part itself, without the adapter."""
        return cast("Utility", self.own)


class _OwnProcedure(OwnPart, BaseProcedure):
    """A procedure that does not derive from `BaseProcedure`."""

    def resolved(self, items: Items | Space, prior: Prior) -> Procedure:  # noqa: ARG002
        """Return the part itself, without the adapter."""
        return cast("Procedure", self.own)


def strategy_of(strategy: object) -> BaseUtility | BaseProcedure:
    """Return a strategy with all members of its protocol: itself, or behind an adapter."""
    return procedure_of(strategy) if isinstance(strategy, Procedure) else utility_of(strategy)


def utility_of(strategy: object) -> BaseUtility:
    """Return a utility with all its members: itself, or behind an adapter."""
    return strategy if isinstance(strategy, BaseUtility) else _OwnUtility(strategy)


def procedure_of(strategy: object) -> BaseProcedure:
    """Return a procedure with all its members: itself, or behind an adapter."""
    return strategy if isinstance(strategy, BaseProcedure) else _OwnProcedure(strategy)


def _names_generator(score: Callable[..., FloatArray]) -> bool:
    return "rng" in inspect.signature(score).parameters


def _declared_shape(part: object) -> UtilityShape | None:
    owner = _owner_of_score(type(part))
    declared = vars(owner).get("shape") if owner is not None else None
    shape = declared(part) if callable(declared) else None
    return shape if isinstance(shape, UtilityShape) else None
