"""The strategy protocols, `Utility` and `Procedure`, and their base classes.

A *utility* scores every pair, and the search asks the pair with the highest score. A *procedure* reads the items and
the history of answers, chooses the next pair itself, and computes its own estimate. Either is a small frozen dataclass
that contains only its mathematics. The loop over candidates, tie-breaking, randomness and validation belong to the
search.

A utility or a procedure may define further members. `BaseUtility` and `BaseProcedure` declare all of them with their
defaults; no other module tests for a particular strategy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from pairseek.core.types import Belief, Event, FloatArray, IntArray
from pairseek.core.user_parts import Part, PartAdapter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies.shape import UtilityShape

if TYPE_CHECKING:
    from pairseek.pairs.planes import Planes


@runtime_checkable
class Utility(Protocol):
    """A strategy that scores pairs; the search asks the pair with the highest score.

    A utility that draws random numbers, as in Thompson sampling, is a `RandomUtility`: its ``score`` takes a third
    parameter ``rng``.
    """

    @property
    def name(self) -> str:
        """Name used in files, commands and HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities of m pairs. The source of pairs breaks ties."""
        ...


@runtime_checkable
class RandomUtility(Protocol):
    """A utility whose score draws random numbers.

    The generator is keyed by the seed of the search, the number of events, and its purpose. Every call for one question
    receives it in the same initial state, so all pairs are scored by the same draws, however they are split into calls.
    Undo, load and replay repeat the draws.
    """

    @property
    def name(self) -> str:
        """Name used in files, commands and HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the (m,) utilities of m pairs."""
        ...


def _owner_of_score(kind: type) -> type | None:
    """Return the class that defines `score`; only its shape describes that score."""
    return next((base for base in kind.__mro__ if "score" in vars(base)), None)


class BaseUtility(Part):
    """Base class of utilities, with a default for every optional member.

    Your own utility may derive from it, or be a plain class that defines `Utility.score` and any of these members. A
    class that overrides ``score`` does not inherit ``shape``, which describes its parent's score.
    """

    name: ClassVar[str]
    score: Callable[..., FloatArray]
    rescored: ClassVar[bool] = True
    """Whether the best pairs are rescored by `exact`, if it is defined."""
    enough_pairs: ClassVar[int | None] = None
    """Number of sampled pairs that replace all pairs, for a utility with many near-optimal pairs; None: all pairs."""
    most_pairs: ClassVar[int | None] = None
    """Number of pairs beyond which only pairs of `promising` items are scored; None: the source decides."""
    promising: Callable[[PairFeatures, Belief], IntArray] | None = None
    """Method (candidates, belief) that returns the rows of the items whose pairs are scored if listing all pairs would
    be too many; None: all items."""
    bound: Callable[[PairFeatures, Belief, IntArray], float] | None = None
    """Method (candidates, belief, others) that returns an upper bound on the score of every pair containing one of the
    items `others`, which are not promising; None: no bound is known."""
    exact: Callable[[PairFeatures, Belief], FloatArray] | None = None
    """Method (candidates, belief) that returns the (m,) utilities averaged over all samples, if `score` assumes a
    Gaussian logit; None: there is only `score`."""
    planes: Callable[[Space, Belief, Response, np.random.Generator], Planes] | None = None
    """Method (space, belief, response, rng) that returns candidate planes in a continuous space; None: only items are
    supported."""
    label_number: int | None = None
    """Number shown in its label in tables and figures; None: no number."""
    takes_generator: ClassVar[bool] = False
    """Whether ``score`` takes a third parameter ``rng``, as in a `RandomUtility`; derived from its signature."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        owner = _owner_of_score(cls)
        if owner is not None:
            cls.takes_generator = _takes_generator(cls.score)
            cls.shape = vars(owner).get("shape", BaseUtility.shape)  # type: ignore[method-assign]

    def shape(self) -> UtilityShape | None:
        """Return `score` as a function of a few features, for branch and bound over all pairs; None: unknown."""
        return None

    def usable_shape(self, response: Response) -> UtilityShape | None:
        """Return the shape, or None if no compiled table holds its values for this response."""
        shape = self.shape()
        return shape if shape is None or shape.kind == "even" or response.compiled else None

    def resolved(self, items: Items | Space, prior: Prior) -> Utility:  # noqa: ARG002
        """Return the strategy with settings that depend on items and prior filled in; by default, itself."""
        return self

    def turn(self, number: int, belief: Belief) -> Utility:  # noqa: ARG002
        """Return the utility for question `number`, counted from 0, if utilities take turns; by default, itself."""
        return self

    def rival(self, belief: Belief) -> Utility | None:  # noqa: ARG002
        """Return a utility in the same unit whose pair is asked instead if it scores higher; by default, None."""
        return None


@runtime_checkable
class Procedure(Protocol):
    """A strategy that chooses pairs itself.

    Both methods are pure functions of their arguments: repeated calls with the same history, even after an undo, return
    the same result. Every call within a search receives the generator in the same initial state (earlier calls do not
    advance it), so a procedure can draw, for example, one order of the items for the whole search. The history includes
    skips, which have no answer, and ties, which have no winner.
    """

    @property
    def name(self) -> str:
        """Name used in files, commands and HTTP."""
        ...

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the rows of the two items to ask next; None once the procedure has finished."""
        ...

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) estimate of the user point after this history."""
        ...


class BaseProcedure(Part):
    """Base class of procedures, with a default for every optional member.

    Your own procedure may derive from it, or be a plain class that defines the members of `Procedure` and any of these.
    """

    name: ClassVar[str]
    next: Callable[[Items, Sequence[Event], np.random.Generator], tuple[int, int] | None]
    estimate: Callable[[Items, Sequence[Event]], FloatArray]
    label_number: int | None = None
    """Number shown in its label in tables and figures, as in ActRank-3; None: no number."""

    def resolved(self, items: Items | Space, prior: Prior) -> Procedure:  # noqa: ARG002
        """Return the procedure with settings that depend on items and prior filled in; by default, itself."""
        return self

    def status(self, items: Items, history: Sequence[Event]) -> str | None:  # noqa: ARG002
        """Return a note on the estimate after this history, for `Estimate.note`; by default, None."""
        return None


class _UtilityAdapter(PartAdapter, BaseUtility):
    """A utility that does not derive from `BaseUtility`."""

    def __init__(self, part: object) -> None:
        super().__init__(part)
        vars(self).update(takes_generator=_takes_generator(self.score), shape=lambda: _declared_shape(part))

    def resolved(self, items: Items | Space, prior: Prior) -> Utility:  # noqa: ARG002
        """Return the part itself, without the adapter."""
        return cast("Utility", self.original)


class _ProcedureAdapter(PartAdapter, BaseProcedure):
    """A procedure that does not derive from `BaseProcedure`."""

    def resolved(self, items: Items | Space, prior: Prior) -> Procedure:  # noqa: ARG002
        """Return the part itself, without the adapter."""
        return cast("Procedure", self.original)


def strategy_of(strategy: object) -> BaseUtility | BaseProcedure:
    """Return the strategy with every optional member, through an adapter if it does not derive from a base class."""
    return procedure_of(strategy) if isinstance(strategy, Procedure) else utility_of(strategy)


def utility_of(strategy: object) -> BaseUtility:
    """Return the utility with every optional member, through an adapter if it does not derive from `BaseUtility`."""
    return strategy if isinstance(strategy, BaseUtility) else _UtilityAdapter(strategy)


def procedure_of(strategy: object) -> BaseProcedure:
    """Return the procedure with every optional member, through an adapter if not derived from `BaseProcedure`."""
    return strategy if isinstance(strategy, BaseProcedure) else _ProcedureAdapter(strategy)


def _takes_generator(score: Callable[..., FloatArray]) -> bool:
    return "rng" in inspect.signature(score).parameters


def _declared_shape(part: object) -> UtilityShape | None:
    owner = _owner_of_score(type(part))
    declared = vars(owner).get("shape") if owner is not None else None
    shape = declared(part) if callable(declared) else None
    return shape if isinstance(shape, UtilityShape) else None
