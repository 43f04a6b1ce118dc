"""Demonstration study with 949 named colours."""

from __future__ import annotations

from pairseek.datasets import colours
from pairseek.model.items import Items
from pairseek.web.studies.configuration import StudyConfiguration, configured


def colour_items() -> Items:
    """Return the colours as items of a study."""
    items = colours()
    return Items(items.coordinates, items.ids, items.labels, items.appeal, {"colour": items.data["hex"]})


def colour_study() -> StudyConfiguration:
    """Return the configuration of the demonstration study."""
    return configured(
        {
            "title": "A colour for you",
            "slug": "colours",
            "question": "Which colour do you prefer?",
            "instructions": "You see two colours at a time. **Choose the one that you like better.** There is no right "
            "or wrong answer, and you can undo an answer. At the end you see where your taste lies among 949 colours.",
            "answers": 15,
            "offer": {"tie": True, "skip": True, "undo": True},
        }
    )
