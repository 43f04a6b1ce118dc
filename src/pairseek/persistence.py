"""Saved searches: files with their items, light records that name the items by a hash, and signed tokens.

The functions read and write a `SearchLog`. `Search` makes the search itself, because defaults follow from the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from pairseek import serialization
from pairseek._version import MODEL_VERSION, __version__
from pairseek.catalogues import GoneItem, gone_items
from pairseek.core.types import JSON, Event, ItemId, Query, Side
from pairseek.core.validation import whole
from pairseek.errors import InvalidFile, InvalidParameter, InvalidToken, OtherCatalogue, PairseekError, Unsupported
from pairseek.model.items import Items, Space
from pairseek.tokens import Key, PackedEvent, TokenContent, short_configuration, sign

_PARTS = ("response", "prior", "posterior", "strategy", "candidates", "rest", "stop")
_LETTERS = {"left": "l", "right": "r", "tie": "t", "skip": "s"}


@dataclass(frozen=True, eq=False)
class SearchLog:
    """Seed, events and pending queries of a search.

    Attributes
    ----------
    seed
        Seed of the search.
    events, pending
        Events in their order, and queries without an answer.
    gone
        Items that events are about and that the catalogue has no more.
    """

    seed: int
    events: tuple[Event, ...] = ()
    pending: tuple[Query, ...] = ()
    gone: tuple[GoneItem, ...] = ()

    def carried(self, before: Items, items: Items) -> Self:
        """Return the log of a search among other items: pending queries about items that are gone are dropped."""
        check_dimension(before, items)
        gone = {one.id: one for one in self.gone if items.find(one.id) < 0}
        sides = [side for event in self.events for side in (event.left, event.right)]
        names = [side for side in sides if not isinstance(side, tuple) and side not in gone]
        gone.update((one.id, one) for one in gone_items(names, before, items))
        kept = [query for query in self.pending if min(items.find(query.left), items.find(query.right)) >= 0]
        return replace(self, pending=tuple(kept), gone=tuple(gone.values()))


def check_dimension(before: Items, items: Items) -> None:
    """Raise `OtherCatalogue` if the answers of a search cannot carry over to other items."""
    if items.d != before.d:
        raise OtherCatalogue(
            f"the items have {items.d} coordinates and those of the search have {before.d}: place both by the same map"
        )


def catalogue_of(items: Items | Space) -> Items:
    """Return the items of a search that can be named by a hash."""
    if not isinstance(items, Items):
        raise Unsupported("a continuous Space has no catalogue: use save()")
    return items


def query_name(events: int, index: int) -> str:
    """Return the id of the query with this index after a number of events."""
    return f"q{events}" if index == 0 else f"q{events}.{index}"


def _check_model(model: object, what: str, error: type[InvalidFile | InvalidToken], hint: str = "") -> None:
    """Raise an error that names both versions unless a saved search has the model version of this pairseek."""
    if model != MODEL_VERSION:
        raise error(f"{what} has version {model!r} of the model, and this pairseek expects {MODEL_VERSION}{hint}")


# Files


def file_record(log: SearchLog, items: Items | Space, configuration: JSON, askable: Any) -> JSON:
    """Return a search as plain data with its items."""
    return {
        "pairseek_version": __version__,
        "configuration": configuration,
        "seed": log.seed,
        "items": serialization.items_record(items),
        "askable": askable,
        "gone": [one.record() for one in log.gone],
        "events": [serialization.event_record(event) for event in log.events],
        "pending": [serialization.query_record(query) for query in log.pending],
    }


def read_file_record(record: JSON, own: Mapping[str, Any]) -> tuple[JSON, SearchLog]:
    """Return the arguments of the search of a `file_record`, and its log; `own` are parts that replace the stored."""
    saved = record["configuration"]
    _check_model(saved["model"], "it", InvalidFile)
    parts = {
        kind: serialization.decode_saved(kind, saved[kind]) if part is None else part for kind, part in own.items()
    }
    if record["seed"] is None:
        raise InvalidFile("its seed is null")
    arguments = {
        "items": serialization.items_from(record["items"]),
        "rest": serialization.decode_saved("rest", saved["rest"]),
        "rng": record["seed"],
        "goal": saved.get("goal", "taste"),
        "askable": record.get("askable"),
        **parts,
    }
    log = SearchLog(
        record["seed"],
        tuple(serialization.event_from(event) for event in record["events"]),
        tuple(serialization.query_from(query) for query in record["pending"]),
        tuple(map(GoneItem.of_record, record.get("gone", []))),
    )
    return arguments, log


# Light records


def light_configuration(given: Mapping[str, Any], stop: Iterable[Any], goal: str, askable: Any) -> JSON:
    """Return what a search was given besides the items, as plain data; defaults follow from the items."""
    parts: JSON = {name: serialization.light_part(part) for name, part in given.items() if name != "stop"}
    if "stop" in given:
        parts["stop"] = [serialization.light_part(rule) for rule in stop]
    some = askable if askable is None or isinstance(askable, int) else {"sha256": serialization.digest(askable)}
    return {"model": MODEL_VERSION, "goal": goal, "askable": some, **parts}


def light_record(log: SearchLog, items: Items | Space, configuration: JSON) -> JSON:
    """Return a search as plain data that names its items by their hash."""
    return {
        "pairseek_version": __version__,
        "items": catalogue_of(items).hash,
        "configuration": configuration,
        "seed": log.seed,
        "gone": [one.record() for one in log.gone],
        "events": [serialization.light_event(event) for event in log.events],
        "pending": [[query.id, query.left, query.right] for query in log.pending],
    }


def read_light_record(
    record: Mapping[str, Any], parts: Mapping[str, Any], askable: Any, *, population: bool
) -> tuple[JSON, SearchLog, str]:
    """Return the arguments of the search of a `light_record`, its log, and the hash of its items.

    `parts` and `askable` are what the caller gives again; a population provides response and prior.
    """
    try:
        saved = dict(record["configuration"])
        # First, because parts of another version may not be readable.
        _check_model(saved["model"], "the saved search", InvalidFile, ": load it with the pairseek that wrote it")
        known = {kind: _light_part(kind, saved[kind], parts.get(kind)) for kind in _PARTS if kind in saved}
        if population:
            known = {kind: part for kind, part in known.items() if kind not in ("response", "prior")}
        log = SearchLog(
            whole(record["seed"], "the seed", 0),
            tuple(serialization.event_of_light(event) for event in record["events"]),
            tuple(Query(str(name), left, right) for name, left, right in record["pending"]),
            tuple(map(GoneItem.of_record, record["gone"])),
        )
        asked, goal, name = saved["askable"], saved["goal"], record["items"]
    except PairseekError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise InvalidFile(f"this is not a record of to_dict(): {error!r}") from error
    if asked is not None and not isinstance(asked, int) and askable is None:
        raise InvalidParameter("the search had a list of items to ask about: give it again, askable=...")
    arguments = {"rng": log.seed, "goal": goal, "askable": asked if isinstance(asked, int) else askable}
    return {**arguments, **known, **parts}, log, name


def _light_part(kind: str, record: Any, given: Any) -> Any:
    """Return a part of a light record; one that is named by its hash alone must be given."""
    if kind == "stop":
        return given if given is not None else [_light_part("stop rule", rule, None) for rule in record]
    if isinstance(record, Mapping) and "sha256" in record:
        if given is None or serialization.digest(serialization.encode(given)) != record["sha256"]:
            what = "is missing" if given is None else "is another one"
            raise OtherCatalogue(
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
    raise OtherCatalogue(
        f"this search is about the catalogue {str(name)[:16]}, and the given items are {given}: give the items "
        f"that it was begun with, or catalogues=[...] with the earlier ones"
    )


# Tokens


def signed_token(log: SearchLog, items: Items | Space, configuration: JSON, key: Key, lifetime: float | None) -> str:
    """Return a token with seed and events, which names items and configuration by hashes."""
    catalogue, gone = catalogue_of(items), {one.id: one for one in log.gone}
    places = {catalogue.hash: 0}
    catalogues, total = [(catalogue.hash, catalogue.n)], catalogue.n
    for one in log.gone:
        if one.catalogue not in places:
            places[one.catalogue] = total
            catalogues.append((one.catalogue, one.n))
            total += one.n

    def row(side: Side) -> int:
        found = catalogue.find(side)
        if found >= 0:
            return found
        one = gone[side]  # type: ignore[index]
        return places[one.catalogue] + one.row

    events = [
        PackedEvent(
            row(event.left),
            row(event.right),
            event.outcome if event.winner is None else "left" if event.winner == event.left else "right",
            None if event.query is None else serialization.order(event.query),
        )
        for event in log.events
    ]
    pending = [(row(query.left), row(query.right), *serialization.order(query)) for query in log.pending]
    model, digest = configuration["model"], serialization.digest(configuration)
    return sign(TokenContent(tuple(catalogues), model, digest, log.seed, tuple(events), tuple(pending)), key, lifetime)


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


def read_token(
    content: TokenContent, configuration: JSON, catalogue: Items, known: Sequence[Items]
) -> tuple[SearchLog, Items]:
    """Return the log that a token carries, and the items that it is about, of the known ones.

    `configuration` is that of the search which goes on, among the items of `catalogue`.
    """
    model = _model_of(content, configuration)
    if model is not None:
        _check_model(model, "the token", InvalidToken, ": begin a new session")
    if short_configuration(serialization.digest(configuration)) != content.configuration:
        raise OtherCatalogue(
            "the token belongs to a search with other settings: give the arguments that the search was begun with"
        )
    books = [named_catalogue(name, known) for name, _ in content.catalogues]

    def side(row: int) -> ItemId:
        for book in books:
            if row < book.n:
                return book.ids[row]
            row -= book.n
        raise InvalidToken("the token names a row that no catalogue has")

    events = []
    for packed in content.events:
        name = None if packed.query is None else query_name(*packed.query)
        event = [side(packed.left), side(packed.right), _LETTERS[packed.outcome], name]
        events.append(serialization.event_of_light(event))
    pending = tuple(Query(query_name(count, index), side(a), side(b)) for a, b, count, index in content.pending)
    sides = [name for event in events for name in (event.left, event.right)]
    gone: list[GoneItem] = []
    for book in books[1:]:
        gone += gone_items([name for name in sides if book.find(name) >= 0], book, catalogue)  # type: ignore[misc]
    return SearchLog(content.seed, tuple(events), pending, tuple(gone)), books[0]
