"""Items of attention pairs: named by label, and kept apart from the items that are ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from pairseek.core.media import MEDIA, PICTURE_FILE
from pairseek.model.items import Items
from pairseek.web.studies.attention_settings import Attention, AttentionItem, KnownPair
from pairseek.web.studies.configuration import StudyConfiguration


def with_ids(configuration: StudyConfiguration, items: Items) -> StudyConfiguration:
    """Replace the labels in attention pairs by ids; a name that is an id, or the label of several items, stays."""
    rule = configuration.attention
    if rule is None:
        return configuration
    count = Counter(items.labels)
    ids = {label: str(name) for label, name in zip(items.labels, items.ids, strict=True) if count[label] == 1}
    ids |= {str(name): str(name) for name in items.ids}
    pairs = [
        pair.model_copy(
            update={
                name: ids.get(value, value)
                for name in ("left", "right", "answer", "anchor")
                if (value := getattr(pair, name)) is not None
            }
        )
        for pair in rule.pairs
    ]
    return _with_attention(configuration, rule.model_copy(update={"pairs": pairs}))


def set_apart(configuration: StudyConfiguration, items: Items) -> tuple[StudyConfiguration, Items]:
    """Move the items of attention pairs from the list into the settings if the study wants that."""
    rule = configuration.attention
    if rule is None or not rule.apart:
        return configuration, items
    names = {name for pair in rule.pairs for name in _names(pair)}
    chosen = np.array([str(name) in names for name in items.ids])
    shown = [name for name in (*MEDIA, PICTURE_FILE) if name in items.data]
    records = [
        AttentionItem(
            id=str(items.ids[row]),
            label=items.labels[row],
            media={name: str(items.data[name][row]) for name in shown if str(items.data[name][row])},
        )
        for row in np.flatnonzero(chosen).tolist()
    ]
    kept = items.subset(np.flatnonzero(~chosen))
    return _with_attention(configuration, rule.model_copy(update={"items": [*rule.items, *records]})), kept


def attention_items(configuration: StudyConfiguration) -> Items | None:
    """Return the items that were set apart; None if there are none."""
    rule = configuration.attention
    if rule is None or not rule.items:
        return None
    names = dict.fromkeys(name for item in rule.items for name in item.media)
    data: Mapping[str, list[str]] = {name: [item.media.get(name, "") for item in rule.items] for name in names}
    ids, labels = [item.id for item in rule.items], [item.label for item in rule.items]
    return Items._without_warnings(None, ids, labels, np.zeros(len(ids)), dict(data), (), least=1)


def _names(pair: KnownPair) -> list[str]:
    return [pair.left, pair.right, *([] if pair.anchor is None else [pair.anchor])]


def _with_attention(configuration: StudyConfiguration, rule: Attention) -> StudyConfiguration:
    return configuration.model_copy(update={"attention": rule})
