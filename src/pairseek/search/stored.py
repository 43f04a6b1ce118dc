"""`StoredSearch`: the parts, the events and the saved forms of a search.

`Search` derives from it and adds the conversation: asking, telling and results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from pairseek.core.lazy import LazyModule
from pairseek.core.types import JSON, Event, Query
from pairseek.errors import InvalidFile, Unsupported
from pairseek.model.catalogues import Selected
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.context import Source
from pairseek.pairs.sources import Rest
from pairseek.pairs.strategies.base import Procedure, Utility
from pairseek.posteriors import Posterior
from pairseek.search.goals import SearchGoal
from pairseek.search.serialization import ModelChoice
from pairseek.search.state import SearchState
from pairseek.search.stopping import StopRule

if TYPE_CHECKING:
    from pairseek.core import files
    from pairseek.model.recommendations import Recommendation
    from pairseek.people.population import Population
    from pairseek.search import logs, saving
    from pairseek.search.record import StateAndPending
    from pairseek.search.tokens import Key
else:
    # Most searches are never saved.
    files, saving = LazyModule("pairseek.core.files"), LazyModule("pairseek.search.saving")
    logs = LazyModule("pairseek.search.logs")

_Stored = TypeVar("_Stored", bound="StoredSearch")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def atomic(
    method: Callable[Concatenate[_Stored, _Parameters], _Result],
) -> Callable[Concatenate[_Stored, _Parameters], _Result]:
    """Wrap a method so that it holds the lock of the search, which makes it atomic."""

    @wraps(method)
    def locked(search: _Stored, /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        with search._lock:
            return method(search, *arguments, **keywords)

    return locked


class StoredSearch:
    """Base class of `Search`, without asking, telling and results."""

    def _begin(self, state: SearchState, pending: Iterable[Query] = ()) -> None:
        self._lock = threading.RLock()
        self._state = state
        self._pending = list(pending)

    @classmethod
    def _from_saved(cls, saved: StateAndPending) -> Self:
        """Return a search in this state; the ``__init__`` of a subclass is not called."""
        search = cls.__new__(cls)
        search._begin(*saved)
        return search

    @atomic
    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own list of queries and its own lock.
        attributes = {name: value for name, value in vars(self).items() if name != "_lock"}
        return {**attributes, "_pending": list(self._pending)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_state" not in state:
            raise InvalidFile("the pickle is of a search of another version of pairseek: use save() and load()")
        vars(self).update(state, _lock=threading.RLock())

    # Parts

    @property
    def items(self) -> Items | Space:
        """The items, with the appeal of the population if there is one, or the space."""
        return self._state.configuration.items

    @property
    def response(self) -> Response:
        """The response model."""
        return self._state.configuration.response

    @property
    def prior(self) -> Prior:
        """The prior of the user point."""
        return self._state.configuration.prior

    @property
    def posterior(self) -> Posterior:
        """The method of inference."""
        return self._state.configuration.posterior

    @property
    def strategy(self) -> Utility | Procedure:
        """The rule that chooses pairs."""
        return self._state.configuration.strategy

    @property
    def candidates(self) -> Source | None:
        """The source of pairs; None for a space or a procedure."""
        return self._state.configuration.candidates

    @property
    def rest(self) -> Rest:
        """The number of questions before a pair or an item may be repeated."""
        return self._state.configuration.rest

    @property
    def stop(self) -> tuple[StopRule, ...]:
        """The stop rules."""
        return self._state.configuration.stop

    @property
    def goal(self) -> SearchGoal:
        """The goal."""
        return self._state.configuration.goal

    @property
    def seed(self) -> int:
        """The seed."""
        return self._state.seed

    @property
    def askable(self) -> Items | Space:
        """The items to ask about: those given as `askable`, or all."""
        return self._state.configuration.askable

    @property
    def modelled_items(self) -> Items:
        """The items in the coordinates of the model, which has one more if the curvature is unknown."""
        items = self.items._require_catalogue(Unsupported("a continuous Space has no items"))
        return self._state.configuration.modelled(items)

    @property
    def configuration(self) -> JSON:
        """All parts with their names and settings, and the version of the model, as plain data."""
        return self._state.configuration.record()

    def log(self, shown: Query | Sequence[Recommendation]) -> JSON:
        """Return one flat record, as JSON data, of a question from `ask` or of recommended items, for your logs.

        ``chance`` is the probability with which the pair was chosen, as in `QueryInfo`, or the items: recommendations
        leave nothing to chance.
        """
        return logs.log_record(self._state, shown)

    @property
    def migrated_from(self) -> int | None:
        """Model version that the search was saved with, if it is an earlier one: see `load`."""
        return self._state.migrated_from

    # Events

    @property
    def history(self) -> tuple[Event, ...]:
        """All events, in order."""
        return self._state.events

    @property
    def answers(self) -> int:
        """Number of answers and ties given to queries; skips and observations do not count."""
        return self._state.answers

    # Saving

    @atomic
    def moved_to(self, items: Items, *, population: Population | None = None, askable: Selected = None) -> Self:
        """Return a search with the same answers and settings among other items, such as tomorrow's catalogue.

        Answers about removed items still count, with the coordinates that the items had. Queries about removed items
        are dropped.

        Parameters
        ----------
        items
            The other items, in the same coordinates.
        population
            A population of the other items, if this search has one.
        askable
            The items to ask about. None: the same number as before or, if ids were given, those that still exist.
        """
        unsupported = Unsupported("moved_to needs items: a continuous Space has none")
        self.items._require_catalogue(unsupported)
        if not isinstance(items, Items):
            raise unsupported
        return self._from_saved(saving.move_to_items(*self._state_and_pending(), items, population, askable))

    def save(self, path: str | Path, *, light: bool = False) -> None:
        """Write configuration, seed, items and events to a JSON file, atomically.

        A light file has about 2 kB, because it identifies the items only by their hash; `load` then needs the items.
        """
        if light:
            files.write(path, self.to_dict(), files.LIGHT_SEARCH_FILE)
        else:
            files.write(path, saving.to_file(*self._state_and_pending()))

    @classmethod
    def load(
        cls, path: str | Path, *, items: Items | None = None, model: ModelChoice = "present", **parts: Any
    ) -> Self:
        """Read a saved search, which reproduces the belief and the queries of the original.

        If an earlier model version wrote it, its answers are kept, and the belief is inferred again with the present
        model: see `migrated_from`.

        Parameters
        ----------
        path
            File written by `save`.
        items
            The items of a light file.
        model
            ``"as saved"`` refuses a search of another model version.
        parts
            Parts that replace the ones in the file: response, prior, posterior, strategy, candidates, rest, stop. Parts
            of your own must be given, because the file stores only their names. For a light file, all arguments of
            `from_dict`.
        """
        if items is not None:
            given = {name: part for name, part in parts.items() if part is not None}
            return cls.from_dict(files.read(path, files.LIGHT_SEARCH_FILE), items=items, model=model, **given)
        return cls._from_saved(saving.from_file(files.read(path), path, parts, model))

    def to_dict(self) -> JSON:
        """Return the search as plain data of about 2 kB, which identifies the items by their hash: see `from_dict`.

        Long parts, such as the prior of many dimensions, are also identified by a hash, and must be given again.
        """
        return saving.to_light(*self._state_and_pending())

    @classmethod
    def from_dict(
        cls,
        record: Mapping[str, Any],
        *,
        items: Items,
        catalogues: Iterable[Items] = (),
        population: Population | None = None,
        askable: Selected = None,
        model: ModelChoice = "present",
        **parts: Any,
    ) -> Self:
        """Return the search that `to_dict` described; like `load`, it accepts records of earlier model versions.

        Parameters
        ----------
        record
            The value that `to_dict` returned; it may have been converted to JSON and back.
        items
            The items. If their catalogue has changed, the answers carry over to them: see `moved_to`.
        catalogues
            Earlier catalogues that the record may be about.
        population
            The population with which the search started, if it had one.
        askable
            The items to ask about, if they were given by ids or a mask.
        model
            ``"as saved"`` refuses a record of another model version.
        parts
            Parts that the record identifies only by a name or a hash: response, prior, posterior, strategy, candidates,
            rest, stop.
        """
        given = {"population": population, "askable": askable, **parts}
        return cls._from_saved(saving.from_light(record, items, catalogues, model, **given))

    def to_token(self, *, key: Key, lifetime: float | None = None) -> str:
        """Return a signed token with seed and events, under 256 bytes for 20 answers among 50,000 items.

        It holds neither items nor configuration: give them again to `from_token`. Anyone with the token can read which
        items were asked about and how the person answered, but only the key allows changing it.

        Parameters
        ----------
        key
            A secret of at least 16 bytes, or several; the first one signs.
        lifetime
            Seconds until it expires. None: never.
        """
        return saving.to_token(*self._state_and_pending(), key, lifetime)

    @classmethod
    def from_token(
        cls,
        token: str,
        *,
        items: Items,
        key: Key,
        catalogues: Iterable[Items] = (),
        model: ModelChoice = "present",
        **configuration: object,
    ) -> Self:
        """Return the search that a token carries; like `load`, it accepts tokens of earlier model versions.

        Parameters
        ----------
        token
            The token that `to_token` returned.
        items
            The items. If their catalogue has changed, the answers carry over to them: see `moved_to`.
        key
            The secret, or several.
        catalogues
            Earlier catalogues that the token may be about.
        model
            ``"as saved"`` refuses a token of another model version.
        configuration
            The arguments with which the search started: population, askable, response, goal and so on.
        """
        return cls._from_saved(saving.from_token(token, items, key, catalogues, model, configuration))

    @atomic
    def _state_and_pending(self) -> StateAndPending:
        return self._state, tuple(self._pending)
