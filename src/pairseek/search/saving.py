"""Formats of a saved search: files with the items, light records that name the items by a hash, and signed tokens.

All three hold a `SearchRecord` and the configuration. They differ in which parts they only identify by a hash, so that
the caller must give them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

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
from pairseek.search.record import FULL_FORMAT, LIGHT_FORMAT, SearchRecord, StateAndPending, convert_read_errors
from pairseek.search.serialization import ModelChoice
from pairseek.search.state import SearchState
from pairseek.search.tokens import Key, PackedEvent, TokenContent, short_configuration_hash, sign, verify

if TYPE_CHECKING:
    from pairseek.people.population import Population

_SAVED_PARTS = (*PARTS, "stop")


def carry_over(record: SearchRecord, configuration: SearchConfiguration, earlier_items: Items) -> StateAndPending:
    """Carry a search over to the items of another configuration.

    Removed items keep their coordinates from the earlier catalogue; pending queries about them are dropped.
    """
    items = configuration.catalogue
    check_same_dimension(earlier_items, items)
    removed = [item for item in record.removed if items.find(item.id) < 0]
    removed_ids = {item.id for item in removed}
    sides = [side for event in record.events for side in (event.left, event.right)]
    names = [side for side in sides if not isinstance(side, tuple) and side not in removed_ids]
    removed += removed_items(names, earlier_items, items)
    pending = [query for query in record.pending if min(items.find(query.left), items.find(query.right)) >= 0]
    return replace(record, pending=pending, removed=removed).restore(configuration)


def move_to_items(
    state: SearchState,
    pending: Sequence[Query],
    items: Items,
    population: Population | None,
    askable: Selected,
) -> StateAndPending:
    """Carry the answers and parts of a search over to other items: see `Search.moved_to`."""
    earlier_configuration = state.configuration
    check_same_dimension(earlier_configuration.catalogue, items)
    choice = earlier_configuration.askable_choice
    if askable is None and choice is not None:
        askable = choice if isinstance(choice, int) else [name for name in choice if items.find(name) >= 0]
    parts = earlier_configuration.given_parts if population is None else earlier_configuration.caller_parts
    configuration = SearchConfiguration.resolved(
        items, population=population, askable=askable, goal=earlier_configuration.goal.name, **parts
    )
    return carry_over(SearchRecord.of(state, pending), configuration, earlier_configuration.catalogue)


def check_same_dimension(earlier_items: Items, items: Items) -> None:
    """Raise `CatalogueMismatch` if the answers of a search cannot carry over to other items."""
    if items.d != earlier_items.d:
        raise CatalogueMismatch(
            f"the new items have {items.d} coordinates and the items of the search have {earlier_items.d}: place both "
            f"with the same map"
        )


# Files


def to_file(state: SearchState, pending: Sequence[Query]) -> JSON:
    """Return a search as plain data with its items.

    The names of the given parts tell a later model version which parts it may replace by its own defaults.
    """
    configuration = state.configuration
    return {
        "pairseek_version": __version__,
        "configuration": configuration.record(),
        "given": sorted(configuration.given_parts),
        "items": configuration.items.record(),
        "askable": configuration.askable_choice,
        **SearchRecord.of(state, pending).as_json(FULL_FORMAT),
    }


def from_file(record: JSON, path: object, parts: Mapping[str, Any], model: ModelChoice) -> StateAndPending:
    """Restore the search that `to_file` described; ``parts`` replace parts of the record."""
    for name in parts:
        if name not in _SAVED_PARTS:
            raise TypeError(f"a saved search with its items takes no {name!r}: use only {', '.join(_SAVED_PARTS)}")
    with convert_read_errors(
        lambda why: f"{path} is not a valid saved search: {why}; the file was not changed", wrap_own_errors=True
    ):
        return _from_file(record, parts, model)


def _from_file(record: JSON, replacements: Mapping[str, Any], model: ModelChoice) -> StateAndPending:
    saved = record["configuration"]
    earlier = _earlier_model(saved["model"], model, "it", InvalidFile)
    replacements = {kind: part for kind, part in replacements.items() if part is not None}
    # Files of the first model versions do not name the given parts, so all parts count as given.
    given_names = {*record.get("given", _SAVED_PARTS), *replacements}
    kinds = _SAVED_PARTS if earlier is None else [kind for kind in _SAVED_PARTS if kind in given_names]
    parts = {
        kind: replacements[kind] if kind in replacements else serialization.decode_saved(kind, saved[kind])
        for kind in kinds
    }
    configuration = SearchConfiguration.resolved(
        items_from(record["items"]),
        goal=saved.get("goal", "taste"),
        askable=record.get("askable"),
        **parts,
    )
    given_parts = {kind: part for kind, part in parts.items() if kind in given_names}
    configuration = replace(configuration, caller_parts=given_parts, given_parts=given_parts)
    return _mark_as_migrated(SearchRecord.read(record, FULL_FORMAT), earlier).restore(configuration)


def _earlier_model(
    version: object, model: ModelChoice, noun: str, error: type[InvalidFile | InvalidToken]
) -> int | None:
    """Return the model version of a saved search that must be migrated; None if it is the present version.

    Raises
    ------
    InvalidFile, InvalidToken
        If the search has a later model version, or an earlier one although ``model`` is ``"as saved"``.
    """
    if model not in get_args(ModelChoice):
        raise InvalidParameter(f"model is {model!r}: use 'present' or 'as saved'", field="model")
    if version == MODEL_VERSION:
        return None
    versions = f"{noun} has model version {version!r}, and this pairseek has {MODEL_VERSION}"
    if not isinstance(version, int) or version > MODEL_VERSION:
        raise error(f"{versions}: upgrade pairseek")
    if model == "as saved":
        raise error(f"{versions}: without model='as saved', its belief is inferred again with the present model")
    return version


def _mark_as_migrated(record: SearchRecord, earlier: int | None) -> SearchRecord:
    """Return the record with the model version that it is migrated from; None leaves it unchanged."""
    return record if earlier is None else replace(record, migrated_from=earlier)


# Light records


def light_configuration(configuration: SearchConfiguration) -> JSON:
    """Return the given settings of a search, except the items, as plain data; defaults follow from the items."""
    given_parts, askable = configuration.given_parts, configuration.askable_choice
    parts: JSON = {name: serialization.light_part(part) for name, part in given_parts.items() if name != "stop"}
    if "stop" in given_parts:
        parts["stop"] = [serialization.light_part(rule) for rule in configuration.stop]
    choice = askable if askable is None or isinstance(askable, int) else {"sha256": serialization.digest(askable)}
    return {"model": MODEL_VERSION, "goal": configuration.goal.name, "askable": choice, **parts}


def to_light(state: SearchState, pending: Sequence[Query]) -> JSON:
    """Return a search as plain data that identifies its items by their hash."""
    configuration = state.configuration
    return {
        "pairseek_version": __version__,
        "items": configuration.catalogue.hash,
        "configuration": light_configuration(configuration),
        **SearchRecord.of(state, pending).as_json(LIGHT_FORMAT),
    }


def from_light(
    record: Mapping[str, Any],
    items: Items,
    catalogues: Iterable[Items],
    model: ModelChoice,
    *,
    population: Population | None = None,
    askable: Selected = None,
    **parts: Any,
) -> StateAndPending:
    """Restore the search that `to_light` described: see `Search.from_dict`."""
    with convert_read_errors(lambda why: f"this is not a record from to_dict(): {why}"):
        saved = dict(record["configuration"])
        # Checked first, because parts of a later version may be unreadable.
        earlier = _earlier_model(saved["model"], model, "the saved search", InvalidFile)
        stored_parts = {kind: _light_part(kind, saved[kind], parts.get(kind)) for kind in _SAVED_PARTS if kind in saved}
        search = _mark_as_migrated(SearchRecord.read(record, LIGHT_FORMAT), earlier)
        saved_askable, goal, name = saved["askable"], saved["goal"], record["items"]
    if population is not None:
        stored_parts = {kind: part for kind, part in stored_parts.items() if kind not in ("response", "prior")}
    if saved_askable is not None and not isinstance(saved_askable, int) and askable is None:
        raise InvalidParameter(
            "the search had a list of items to ask about: give it again, askable=...", field="askable"
        )
    askable = saved_askable if isinstance(saved_askable, int) else askable
    configuration = SearchConfiguration.resolved(
        items, population=population, askable=askable, goal=goal, **{**stored_parts, **parts}
    )
    earlier_items = find_catalogue(name, [configuration.catalogue, items, *catalogues])
    return carry_over(search, configuration, earlier_items)


def _light_part(kind: str, record: Any, replacement: object) -> Any:
    """Return a part of a light record; a part identified only by its hash must be given."""
    if kind == "stop":
        return replacement if replacement is not None else [_light_part("stop rule", rule, None) for rule in record]
    if isinstance(record, Mapping) and "sha256" in record:
        if replacement is None or serialization.digest(serialization.encode(replacement)) != record["sha256"]:
            problem = "none was given" if replacement is None else "a different one was given"
            raise CatalogueMismatch(
                f"the record identifies the {kind} of the search only by its hash, and {problem}: give it again, "
                f"{kind}=..., or the population that it came from"
            )
        return replacement
    return (
        serialization.decode_saved("stop" if kind == "stop rule" else kind, record)
        if replacement is None
        else replacement
    )


def find_catalogue(name: str, catalogues: Iterable[Items]) -> Items:
    """Return the catalogue whose hash starts with this text."""
    choices = list(catalogues)
    for items in choices:
        if isinstance(name, str) and name and items.hash.startswith(name):
            return items
    hashes = " and ".join(dict.fromkeys(items.hash[:16] for items in choices))
    raise CatalogueMismatch(
        f"this search is about the catalogue {str(name)[:16]}, but the given items are {hashes}: give the items that "
        f"it started with, or catalogues=[...] with the earlier ones"
    )


# Tokens


def to_token(state: SearchState, pending: Sequence[Query], key: Key, lifetime: float | None) -> str:
    """Return a signed token that holds seed and events, and identifies items and configuration by hashes."""
    configuration = state.configuration
    catalogue, removed = configuration.catalogue, configuration.removed
    row_offsets = {catalogue.hash: 0}
    catalogues, total = [(catalogue.hash, catalogue.n)], catalogue.n
    for item in removed.values():
        if item.catalogue not in row_offsets:
            row_offsets[item.catalogue] = total
            catalogues.append((item.catalogue, item.n))
            total += item.n

    def row(side: Side) -> int:
        own_row = catalogue.find(side)
        if own_row >= 0:
            return own_row
        item = removed[side]  # type: ignore[index]
        return row_offsets[item.catalogue] + item.row

    packed_events = []
    for event in state.events:
        _, _, letter, _ = serialization.light_event(event)
        query_position = None if event.query is None else serialization.query_position(event.query)
        packed_events.append(PackedEvent(row(event.left), row(event.right), letter, query_position))
    queries = [(row(query.left), row(query.right), *serialization.query_position(query)) for query in pending]
    settings = light_configuration(configuration)
    model, digest = settings["model"], serialization.digest(settings)
    content = TokenContent(tuple(catalogues), model, digest, state.seed, tuple(packed_events), tuple(queries))
    return sign(content, key, lifetime)


def _model_of(content: TokenContent, configuration: JSON) -> int | None:
    """Return the model version of a token.

    A token of the previous format does not store it. Return the version under which the configuration has the token's
    hash instead, or None if no version does.
    """
    if content.model is not None:
        return content.model
    for model in range(MODEL_VERSION, 0, -1):
        if short_configuration_hash(serialization.digest({**configuration, "model": model})) == content.configuration:
            return model
    return None


def from_token(
    token: str,
    items: Items,
    key: Key,
    catalogues: Iterable[Items],
    model: ModelChoice,
    parts: Mapping[str, Any],
) -> StateAndPending:
    """Restore the search in a token from the parts that it started with: see `Search.from_token`."""
    content = verify(token, key)
    configuration = SearchConfiguration.resolved(items, **parts)
    catalogue = configuration.catalogue
    settings = light_configuration(configuration)
    version = _model_of(content, settings)
    earlier = None if version is None else _earlier_model(version, model, "the token", InvalidToken)
    if short_configuration_hash(serialization.digest({**settings, "model": version})) != content.configuration:
        raise CatalogueMismatch(
            "the token belongs to a search with other settings: give the arguments that the search started with"
        )
    catalogues_to_search = [catalogue, items, *catalogues]
    token_catalogues = [find_catalogue(name, catalogues_to_search) for name, _ in content.catalogues]

    def side(row: int) -> ItemId:
        for items in token_catalogues:
            if row < items.n:
                return items.ids[row]
            row -= items.n
        raise InvalidToken("the token names a row that is in none of its catalogues: begin a new session")

    events = []
    for packed in content.events:
        name = None if packed.query is None else serialization.query_id(*packed.query)
        event = [side(packed.left), side(packed.right), packed.outcome, name]
        events.append(serialization.event_from_light(event))
    pending = [Query(serialization.query_id(count, i), side(a), side(b)) for a, b, count, i in content.pending]
    sides = [name for event in events for name in (event.left, event.right)]
    removed: list[RemovedItem] = []
    for earlier_items in token_catalogues[1:]:
        removed += removed_items([name for name in sides if earlier_items.find(name) >= 0], earlier_items, catalogue)  # type: ignore[misc]
    record = SearchRecord(content.seed, events, pending, removed, earlier)
    return carry_over(record, configuration, token_catalogues[0])
