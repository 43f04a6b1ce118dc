"""Envelopes of a saved search: files with their items, light records that name the items by a hash, and signed tokens.

All three hold a `SearchRecord` and the configuration. They differ in what they name by a hash only, and the reader must
give again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.types import JSON, ItemId, Query, Side
from pairseek.errors import (
    CatalogueMismatch,
    InvalidFile,
    InvalidParameter,
    InvalidToken,
)
from pairseek.model.catalogues import RemovedItem, Selected, removed_items
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.search import serialization
from pairseek.search.configuration import PARTS, SearchConfiguration
from pairseek.search.record import FULL, LIGHT, Saved, SearchRecord, reading
from pairseek.search.state import SearchState
from pairseek.search.tokens import Key, PackedEvent, TokenContent, short_configuration, sign, verify

if TYPE_CHECKING:
    from pairseek.people.population import Population

_PARTS = (*PARTS, "stop")


def carried(record: SearchRecord, configuration: SearchConfiguration, before: Items) -> Saved:
    """Return a search among the items of another configuration.

    Removed items keep the coordinates that they had in the catalogue ``before``; queries about them are dropped.
    """
    items = configuration.catalogue
    check_dimension(before, items)
    removed = [item for item in record.removed if items.find(item.id) < 0]
    known = {item.id for item in removed}
    sides = [side for event in record.events for side in (event.left, event.right)]
    names = [side for side in sides if not isinstance(side, tuple) and side not in known]
    removed += removed_items(names, before, items)
    kept = [query for query in record.pending if min(items.find(query.left), items.find(query.right)) >= 0]
    return replace(record, pending=kept, removed=removed).restored(configuration)


def moved(
    state: SearchState,
    pending: Sequence[Query],
    items: Items,
    population: Population | None,
    askable: Selected,
) -> Saved:
    """Return a search with the same answers and parts among other items: see `Search.moved_to`."""
    known = state.configuration
    check_dimension(known.catalogue, items)
    choice = known.askable_choice
    if askable is None and choice is not None:
        askable = choice if isinstance(choice, int) else [name for name in choice if items.find(name) >= 0]
    parts = known.given if population is None else known.own
    configuration = SearchConfiguration.resolved(
        items, population=population, askable=askable, goal=known.goal.name, **parts
    )
    return carried(SearchRecord.of(state, pending), configuration, known.catalogue)


def check_dimension(before: Items, items: Items) -> None:
    """Raise `CatalogueMismatch` if the answers of a search cannot carry over to other items."""
    if items.d != before.d:
        raise CatalogueMismatch(
            f"the items have {items.d} coordinates and those of the search have {before.d}: place both by the same map"
        )


# Files


def to_file(state: SearchState, pending: Sequence[Query]) -> JSON:
    """Return a search as plain data with its items."""
    configuration = state.configuration
    return {
        "pairseek_version": __version__,
        "configuration": configuration.record(),
        "items": configuration.items.record(),
        "askable": configuration.askable_choice,
        **SearchRecord.of(state, pending).written(FULL),
    }


def from_file(record: JSON, path: object, parts: Mapping[str, Any]) -> Saved:
    """Return the search that `to_file` described; ``parts`` replace those of the record."""
    for name in parts:
        if name not in _PARTS:
            raise TypeError(f"a saved search with its items takes no {name!r}: give {', '.join(_PARTS)}")
    with reading(lambda why: f"{path} is not a valid saved search: {why}; the file was not changed", wrapped=True):
        return _from_file(record, parts)


def _from_file(record: JSON, own: Mapping[str, Any]) -> Saved:
    saved = record["configuration"]
    _check_model(saved["model"], "it", InvalidFile)
    parts = {
        kind: serialization.decode_saved(kind, saved[kind]) if own.get(kind) is None else own[kind] for kind in _PARTS
    }
    configuration = SearchConfiguration.resolved(
        items_from(record["items"]),
        goal=saved.get("goal", "taste"),
        askable=record.get("askable"),
        **parts,
    )
    return SearchRecord.read(record, FULL).restored(configuration)


def _check_model(version: object, what: str, error: type[InvalidFile | InvalidToken], hint: str = "") -> None:
    """Raise an error that names both versions unless a saved search has the model version of this pairseek."""
    if version != MODEL_VERSION:
        raise error(f"{what} has version {version!r} of the model, and this pairseek expects {MODEL_VERSION}{hint}")


# Light records


def light_configuration(configuration: SearchConfiguration) -> JSON:
    """Return what a search was given besides the items, as plain data; defaults follow from the items."""
    given, askable = configuration.given, configuration.askable_choice
    parts: JSON = {name: serialization.light_part(part) for name, part in given.items() if name != "stop"}
    if "stop" in given:
        parts["stop"] = [serialization.light_part(rule) for rule in configuration.stop]
    some = askable if askable is None or isinstance(askable, int) else {"sha256": serialization.digest(askable)}
    return {"model": MODEL_VERSION, "goal": configuration.goal.name, "askable": some, **parts}


def to_light(state: SearchState, pending: Sequence[Query]) -> JSON:
    """Return a search as plain data that names its items by their hash."""
    configuration = state.configuration
    return {
        "pairseek_version": __version__,
        "items": configuration.catalogue.hash,
        "configuration": light_configuration(configuration),
        **SearchRecord.of(state, pending).written(LIGHT),
    }


def from_light(
    record: Mapping[str, Any],
    items: Items,
    catalogues: Iterable[Items],
    *,
    population: Population | None = None,
    askable: Selected = None,
    **parts: Any,
) -> Saved:
    """Return the search that `to_light` described: see `Search.from_dict`."""
    with reading(lambda why: f"this is not a record of to_dict(): {why}"):
        saved = dict(record["configuration"])
        # First, because parts of another version may not be readable.
        _check_model(saved["model"], "the saved search", InvalidFile, ": load it with the pairseek that wrote it")
        known = {kind: _light_part(kind, saved[kind], parts.get(kind)) for kind in _PARTS if kind in saved}
        told = SearchRecord.read(record, LIGHT)
        asked, goal, name = saved["askable"], saved["goal"], record["items"]
    if population is not None:
        known = {kind: part for kind, part in known.items() if kind not in ("response", "prior")}
    if asked is not None and not isinstance(asked, int) and askable is None:
        raise InvalidParameter("the search had a list of items to ask about: give it again, askable=...")
    askable = asked if isinstance(asked, int) else askable
    configuration = SearchConfiguration.resolved(
        items, population=population, askable=askable, goal=goal, **{**known, **parts}
    )
    before = named_catalogue(name, [configuration.catalogue, items, *catalogues])
    return carried(told, configuration, before)


def _light_part(kind: str, record: Any, given: object) -> Any:
    """Return a part of a light record; one that is named by its hash alone must be given."""
    if kind == "stop":
        return given if given is not None else [_light_part("stop rule", rule, None) for rule in record]
    if isinstance(record, Mapping) and "sha256" in record:
        if given is None or serialization.digest(serialization.encode(given)) != record["sha256"]:
            what = "is missing" if given is None else "is another one"
            raise CatalogueMismatch(
                f"the search had a {kind} that its record only names, and it {what}: give it again, {kind}=..., or the "
                f"population that it came from"
            )
        return given
    return serialization.decode_saved("stop" if kind == "stop rule" else kind, record) if given is None else given


def named_catalogue(name: str, catalogues: Iterable[Items]) -> Items:
    """Return the catalogue whose hash begins with this text."""
    known = list(catalogues)
    for items in known:
        if isinstance(name, str) and name and items.hash.startswith(name):
            return items
    given = " and ".join(dict.fromkeys(items.hash[:16] for items in known))
    raise CatalogueMismatch(
        f"this search is about the catalogue {str(name)[:16]}, and the given items are {given}: give the items "
        f"that it was begun with, or catalogues=[...] with the earlier ones"
    )


# Tokens


def to_token(state: SearchState, pending: Sequence[Query], key: Key, lifetime: float | None) -> str:
    """Return a signed token with seed and events, which names items and configuration by hashes."""
    configuration = state.configuration
    catalogue, removed = configuration.catalogue, configuration.removed
    places = {catalogue.hash: 0}
    catalogues, total = [(catalogue.hash, catalogue.n)], catalogue.n
    for item in removed.values():
        if item.catalogue not in places:
            places[item.catalogue] = total
            catalogues.append((item.catalogue, item.n))
            total += item.n

    def row(side: Side) -> int:
        found = catalogue.find(side)
        if found >= 0:
            return found
        item = removed[side]  # type: ignore[index]
        return places[item.catalogue] + item.row

    packed = []
    for event in state.events:
        _, _, letter, _ = serialization.light_event(event)
        asked = None if event.query is None else serialization.order(event.query)
        packed.append(PackedEvent(row(event.left), row(event.right), letter, asked))
    queries = [(row(query.left), row(query.right), *serialization.order(query)) for query in pending]
    given = light_configuration(configuration)
    model, digest = given["model"], serialization.digest(given)
    content = TokenContent(tuple(catalogues), model, digest, state.seed, tuple(packed), tuple(queries))
    return sign(content, key, lifetime)


def _model_of(content: TokenContent, configuration: JSON) -> int | None:
    """Return the model version of a token; one that does not say has that under which this configuration has its hash.

    None if it has that hash under no version.
    """
    if content.model is not None:
        return content.model
    for model in range(MODEL_VERSION, 0, -1):
        if short_configuration(serialization.digest({**configuration, "model": model})) == content.configuration:
            return model
    return None


def from_token(token: str, items: Items, key: Key, catalogues: Iterable[Items], parts: Mapping[str, Any]) -> Saved:
    """Return the search that a token carries, with the parts that it was begun with: see `Search.from_token`."""
    content = verify(token, key)
    configuration = SearchConfiguration.resolved(items, **parts)
    catalogue = configuration.catalogue
    given = light_configuration(configuration)
    model = _model_of(content, given)
    if model is not None:
        _check_model(model, "the token", InvalidToken, ": begin a new session")
    if short_configuration(serialization.digest(given)) != content.configuration:
        raise CatalogueMismatch(
            "the token belongs to a search with other settings: give the arguments that the search was begun with"
        )
    known = [catalogue, items, *catalogues]
    books = [named_catalogue(name, known) for name, _ in content.catalogues]

    def side(row: int) -> ItemId:
        for book in books:
            if row < book.n:
                return book.ids[row]
            row -= book.n
        raise InvalidToken("the token names a row that no catalogue has")

    events = []
    for packed in content.events:
        name = None if packed.query is None else serialization.query_name(*packed.query)
        event = [side(packed.left), side(packed.right), packed.outcome, name]
        events.append(serialization.event_of_light(event))
    pending = [Query(serialization.query_name(count, i), side(a), side(b)) for a, b, count, i in content.pending]
    sides = [name for event in events for name in (event.left, event.right)]
    removed: list[RemovedItem] = []
    for book in books[1:]:
        removed += removed_items([name for name in sides if book.find(name) >= 0], book, catalogue)  # type: ignore[misc]
    return carried(SearchRecord(content.seed, events, pending, removed), configuration, books[0])
