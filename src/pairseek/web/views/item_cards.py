"""Views of items as people see them: cards, and a summary."""

from __future__ import annotations

from pairseek.core.media import MEDIA
from pairseek.model.items import Items
from pairseek.web.pages.contexts.items import GalleryContext, ItemSummary
from pairseek.web.studies.cards import shows_name
from pairseek.web.studies.catalogue import Study

FIRST_ITEMS = 20
"""Number of items that the page of a study shows."""
# Items whose names are looked at for the summary; the first ones stand for a larger catalogue.
_NAMES_CHECKED = 2000


def gallery_context(study: Study, first: int, count: int) -> GalleryContext:
    """Return the cards of ``count`` items from a row on, and a summary of all items."""
    items, names = study.items, study.configuration.names
    return {
        "summary": item_summary(items, names=names),
        "cards": [study.card(str(item)) for item in items.ids[first : first + count]],
        "names": names,
        "switchable": any(name in items.data for name, medium in MEDIA.items() if medium.conversion != "caption"),
    }


def item_summary(items: Items, *, names: bool | None) -> ItemSummary:
    """Count the items of a study and their media, and say whether their cards show names."""
    counts = {
        name: sum(map(bool, items.data[name]))
        for name, medium in MEDIA.items()
        if name in items.data and medium.conversion != "caption"
    }
    shown = [_shows_name(items, row, names=names) for row in range(min(items.n, _NAMES_CHECKED))]
    return {
        "count": items.n,
        "media": [{"medium": name, "count": count} for name, count in counts.items() if count],
        "dimensions": items.d,
        "named": "all" if all(shown) else "some" if any(shown) else "none",
    }


def _shows_name(items: Items, row: int, *, names: bool | None) -> bool:
    has_media = any(
        items.data[name][row] for name, medium in MEDIA.items() if name in items.data and medium.conversion != "caption"
    )
    return not has_media or (shows_name(items, row) if names is None else names)
