"""Checks that the configuration and the items of a study are compatible."""

from __future__ import annotations

from collections.abc import Iterator

from pairseek.core.limits import Size, limits_of
from pairseek.core.text import plural
from pairseek.embed.active import check_count
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.web.pages import languages
from pairseek.web.studies.attention_settings import KnownPair
from pairseek.web.studies.configuration import PracticePair, StudyConfiguration
from pairseek.web.studies.texts import check_texts

MIN_ITEMS = 4
"""Minimum number of items without coordinates."""


def check(configuration: StudyConfiguration, items: Items) -> None:
    """Raise an error unless every part of the configuration can be resolved and every item that it names exists."""
    if not items.d and items.n < MIN_ITEMS and not configuration.is_similarity:
        raise InvalidItems(
            f"the study has {plural(items.n, 'item')} without coordinates: it needs at least {MIN_ITEMS} to learn what "
            f"people like; add items"
        )
    if not items.d and not configuration.is_similarity and (configuration.standardize or configuration.scaled):
        setting = "standardize" if configuration.standardize else "scaled"
        raise InvalidParameter(
            f"the setting {setting!r} is true, but the items have no coordinates: leave it out", field=setting
        )
    for name, limit in limits_of(StudyConfiguration).items():
        limit.check(getattr(configuration, name), name, Size(items.n, items.d))
    try:
        if configuration.is_similarity:
            check_count(items.n)
            _check_map(configuration, items)
        else:
            configuration.check_limits(items)
            configuration.resolved(items)
    except (TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        # A setting of a part has the wrong type.
        raise InvalidParameter(f"the parts of the study do not fit together ({error}): check their settings") from None
    if configuration.language not in languages():
        raise InvalidParameter(
            f"the setting 'language' is {configuration.language!r}: expected one of {', '.join(languages())}",
            field="language",
        )
    check_texts(configuration.texts)
    apart = [] if configuration.attention is None else configuration.attention.items
    ids = {*items.ids, *(item.id for item in apart)}
    clash = next((item.id for item in apart if items.find(item.id) >= 0), None)
    if clash is not None:
        raise InvalidParameter(
            f"attention.items has an item {clash!r}, and so has the list of items: give it another id",
            field="attention",
        )
    for name, setting in _named_items(configuration):
        if name not in ids:
            raise InvalidParameter(
                f"{setting} names {name!r}, which is not an item of the study: use the id of an item", field=setting
            )


def _named_items(configuration: StudyConfiguration) -> Iterator[tuple[str, str]]:
    """Yield each item that a setting names, with the setting; check that only similarity studies have anchors."""
    attention = [] if configuration.attention is None else configuration.attention.pairs
    practice = [configuration.practice] if isinstance(configuration.practice, PracticePair) else []
    pairs: list[tuple[KnownPair | PracticePair, str]] = [(pair, "attention") for pair in attention]
    pairs += [(pair, "practice") for pair in practice]
    for pair, setting in pairs:
        if (pair.anchor is not None) != configuration.is_similarity:
            if configuration.is_similarity:
                problem, advice = "needs an anchor", "add anchor: ID"
            else:
                problem, advice = "has an anchor, which only similarity studies use", "remove it"
            raise InvalidParameter(
                f"the pair {pair.left!r}, {pair.right!r} of {setting} {problem}: {advice}",
                field=setting,
            )
        if pair.anchor in (pair.left, pair.right):
            raise InvalidParameter(
                f"the anchor {pair.anchor!r} of {setting} is one of the pair's two items: use a third item",
                field=setting,
            )
        yield from ((name, setting) for name in (pair.left, pair.right, pair.anchor) if name is not None)


def _check_map(configuration: StudyConfiguration, items: Items) -> None:
    if configuration.dimensions is not None and items.n < configuration.dimensions + 2:
        raise InvalidParameter(
            f"dimensions is {configuration.dimensions}, but the study has only {items.n} items: use at most "
            f"{items.n - 2}",
            field="dimensions",
        )
