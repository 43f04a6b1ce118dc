"""Checks that the configuration and the items of a study fit together."""

from __future__ import annotations

from collections.abc import Iterator

from pairseek.core.limits import Size, limits_of
from pairseek.core.text import plural
from pairseek.embed.active import check_count
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.web.pages import languages
from pairseek.web.studies.configuration import KnownPair, PracticePair, StudyConfiguration

MIN_ITEMS = 4
"""Minimum number of items without coordinates."""


def check(configuration: StudyConfiguration, items: Items) -> None:
    """Check that configuration and items fit together: resolve every part and look up every item."""
    if not items.d and items.n < MIN_ITEMS and not configuration.is_similarity:
        raise InvalidItems(
            f"there {'is' if items.n == 1 else 'are'} {plural(items.n, 'item')} without coordinates: a study needs at "
            f"least {MIN_ITEMS} of them to learn what people like; add items"
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
        # Some setting of a part has the wrong type.
        raise InvalidParameter(f"the parts of the study do not fit together ({error}): check their settings") from None
    if configuration.language not in languages():
        raise InvalidParameter(
            f"the setting 'language' is {configuration.language!r}: expected one of {', '.join(languages())}",
            field="language",
        )
    ids = set(items.ids)
    for name, where in _named_items(configuration):
        if name not in ids:
            raise InvalidParameter(
                f"{where} names {name!r}, which is not an item of the study: use the id of an item",
                field=where,
            )


def _named_items(configuration: StudyConfiguration) -> Iterator[tuple[str, str]]:
    """Yield each item named in a setting, with the setting; check that pairs have an anchor exactly if needed."""
    attention = [] if configuration.attention is None else configuration.attention.pairs
    practice = [configuration.practice] if isinstance(configuration.practice, PracticePair) else []
    pairs: list[tuple[KnownPair | PracticePair, str]] = [(pair, "attention") for pair in attention]
    pairs += [(pair, "practice") for pair in practice]
    for pair, where in pairs:
        if (pair.anchor is not None) != configuration.is_similarity:
            if configuration.is_similarity:
                problem, advice = "needs an anchor", "add anchor: ID"
            else:
                problem, advice = "has an anchor, which only similarity studies use", "remove it"
            raise InvalidParameter(
                f"the pair {pair.left!r}, {pair.right!r} of {where} {problem}: {advice}",
                field=where,
            )
        if pair.anchor in (pair.left, pair.right):
            raise InvalidParameter(
                f"the anchor {pair.anchor!r} of {where} is one of the pair's two items: use a third item", field=where
            )
        yield from ((name, where) for name in (pair.left, pair.right, pair.anchor) if name is not None)


def _check_map(configuration: StudyConfiguration, items: Items) -> None:
    if configuration.dimensions is not None and items.n < configuration.dimensions + 2:
        raise InvalidParameter(
            f"dimensions is {configuration.dimensions}, but the study has only {items.n} items: use at most "
            f"{items.n - 2}",
            field="dimensions",
        )
