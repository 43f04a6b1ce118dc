"""`SearchConfiguration`: the items and parts of a search, with every default resolved and every combination checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import numpy as np

from pairseek._version import MODEL_VERSION
from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, IntArray, ItemId, Side
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.askable import AskableT
from pairseek.model.catalogues import RemovedItem, Selected, askable_rows, subset_of
from pairseek.model.curvature import extended_items
from pairseek.model.items import Items
from pairseek.model.priors import AnyPrior, Prior, check_prior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.context import Source
from pairseek.pairs.sources import Rest
from pairseek.pairs.strategies.base import (
    BaseProcedure,
    BaseUtility,
    Procedure,
    RandomUtility,
    Utility,
    procedure_of,
    utility_of,
)
from pairseek.posteriors import Posterior
from pairseek.search import serialization
from pairseek.search.compatibility import (
    check_appeal,
    check_askable,
    check_curvature,
    check_inference,
    check_parts,
    check_residual,
    check_together,
    rules_of,
)
from pairseek.search.defaults import default_candidates, resolve
from pairseek.search.goals import SearchGoal, goal_of
from pairseek.search.stopping import StopRule

if TYPE_CHECKING:
    from pairseek.people.population import Population


class SearchParts(TypedDict, total=False):
    """Parts of a search besides its stop rules and its goal; None stands for a default."""

    response: Response | None
    prior: AnyPrior | None
    posterior: Posterior | None
    strategy: Utility | RandomUtility | Procedure | None
    candidates: Source | None
    rest: Rest | None


PARTS = tuple(SearchParts.__annotations__)
"""Names of the parts."""


@dataclass(frozen=True, eq=False)
class SearchConfiguration:
    """Items and parts of a search; together with the events and the seed, they determine beliefs and questions.

    Attributes
    ----------
    items
        The items, with the appeal of a population if there is one, or a continuous `Space`.
    response, prior, posterior, strategy, candidates, rest, stop, goal
        The parts; ``candidates`` is None where a space or a procedure needs no source of pairs.
    askable_rows
        Ascending rows of the items to ask about; None for all.
    askable_choice
        How these items were chosen: their number, their ids, or None.
    caller_parts
        The parts that the caller gave.
    given_parts
        The same parts, and the response and prior of the population.
    removed
        Items that events are about and that are no longer in the catalogue.
    """

    items: Items | Space
    response: Response
    prior: Prior
    posterior: Posterior
    strategy: Utility | Procedure
    candidates: Source | None
    rest: Rest
    stop: tuple[StopRule, ...]
    goal: SearchGoal
    askable_rows: IntArray | None = None
    askable_choice: int | list[ItemId] | None = None
    caller_parts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    given_parts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    removed: Mapping[ItemId, RemovedItem] = field(default_factory=dict, repr=False)

    @classmethod
    def resolved(
        cls,
        items: Items | Space,
        *,
        population: Population | None = None,
        goal: str = "taste",
        askable: Selected = None,
        stop: StopRule | Sequence[StopRule] | int | None = None,
        **parts: Unpack[SearchParts],
    ) -> Self:
        """Fill in the defaults of a search, and reject parts that do not go together.

        ``parts`` are the response, prior, posterior, strategy, candidates and rest; None stands for a default.
        """
        for name in parts:
            if name not in PARTS:
                raise TypeError(f"a search has no argument {name!r}: it takes {', '.join(PARTS)}")
        if not isinstance(items, Items | Space):
            items = Items(items)
        caller_parts = {name: part for name, part in {**parts, "stop": stop}.items() if part is not None}
        if population is not None:
            items, population_parts = _population_parts(population, items, parts.get("response"), parts.get("prior"))
            parts.update(population_parts)
        given_parts = caller_parts if population is None else {**caller_parts, **population_parts}
        rows = askable_rows(items, askable)
        check_parts(**parts)
        own_prior, candidates, rest = parts.get("prior"), parts.get("candidates"), parts.get("rest")
        if own_prior is not None:
            check_prior(own_prior, items.d)
        search_goal = goal_of(goal, items)
        response, prior, posterior, strategy = resolve(
            items, parts.get("response"), own_prior, parts.get("posterior"), parts.get("strategy"), search_goal
        )
        configuration = cls(
            items,
            response,
            prior,
            posterior,
            strategy,
            candidates=candidates,
            rest=Rest() if rest is None else rest,
            stop=rules_of(search_goal.stop() if stop is None else stop),
            goal=search_goal,
            askable_rows=rows,
            askable_choice=_askable_choice(items, askable, rows),
            caller_parts=caller_parts,
            given_parts=given_parts,
        )
        configuration._check({"candidates": candidates, "rest": rest})
        if configuration.candidates is not None:
            return configuration
        return replace(
            configuration, candidates=default_candidates(configuration.askable, configuration.utility, response, prior)
        )

    def _check(self, pair_options: Mapping[str, object]) -> None:
        """Reject parts that do not go together; ``pair_options`` are the source of pairs and the rest, if given."""
        items = self.items
        check_together(items, self.utility, self.procedure, pair_options, self.stop)
        if self.askable_rows is not None:
            check_askable(self.procedure, pair_options["candidates"])
        check_appeal(items, self.response)
        check_residual(items, self.response, self.posterior)
        check_curvature(items, self.response, self.prior)
        check_inference(self.response, self.posterior, self.prior, items.d)

    # Protocols are tested only once, because a test takes as long as a small computation.
    @cached_property
    def utility(self) -> BaseUtility | None:
        """The strategy with all its members, if it scores pairs."""
        return utility_of(self.strategy) if isinstance(self.strategy, Utility) else None

    @cached_property
    def procedure(self) -> BaseProcedure | None:
        """The strategy with all its members, if it chooses pairs by itself."""
        return procedure_of(self.strategy) if isinstance(self.strategy, Procedure) else None

    @property
    def catalogue(self) -> Items:
        """The items; raise `Unsupported` for a continuous space."""
        return self.items._require_catalogue(Unsupported("a continuous Space has no catalogue: use save()"))

    @property
    def askable(self) -> Items | Space:
        """The items to ask about."""
        return self.items if self.askable_rows is None else subset_of(self.catalogue, self.askable_rows.tobytes())

    def modelled(self, items: AskableT) -> AskableT:
        """Return items in the coordinates of the model, which has one more if the curvature is unknown."""
        return extended_items(items, self.prior, self.response)

    def side(self, value: object) -> Side:
        """Return one side of a query: the id of an item, which may be a removed one, or a point of the space."""
        if isinstance(value, int | str) and value in self.removed:
            return value
        return self.items._side(value)

    def with_removed(self, removed: Mapping[ItemId, RemovedItem]) -> Self:
        """Return the same configuration with items that are no longer in the catalogue."""
        return replace(self, removed=dict(removed))

    def record(self) -> JSON:
        """Return all parts with their settings, and the model version, as plain data."""
        parts = ("response", "prior", "posterior", "strategy", "rest")
        return {
            "model": MODEL_VERSION,
            "goal": self.goal.name,
            **{name: serialization.encode(getattr(self, name)) for name in parts},
            "candidates": None if self.candidates is None else serialization.encode(self.candidates),
            "stop": [serialization.encode(rule) for rule in self.stop],
        }


def _askable_choice(items: Items | Space, askable: Selected, rows: IntArray | None) -> int | list[ItemId] | None:
    if isinstance(askable, int | np.integer):
        return int(askable)
    if rows is None:
        return None
    assert isinstance(items, Items)  # Only items have rows.
    return [items.ids[row] for row in rows.tolist()]


def _population_parts(
    population: Population, items: Items | Space, response: Response | None, prior: AnyPrior | None
) -> tuple[Items, SearchParts]:
    """Return the items with the appeal of the population, and its response and prior where none is given."""
    from pairseek.people.population import Population

    if not isinstance(population, Population):
        raise InvalidParameter(
            f"population is {population!r}: give a Population, as from Population.fit(...) or Population.load(path)",
            field="population",
        )
    matched_items = population.matched(items)
    return matched_items, {
        "response": population.answering(response),
        "prior": population.prior if prior is None else prior,
    }
