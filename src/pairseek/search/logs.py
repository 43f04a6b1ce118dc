"""Flat records of questions and recommendations, for the logs of a back end."""

from __future__ import annotations

from collections.abc import Sequence

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.types import JSON, Query
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.recommendations import Recommendation
from pairseek.search.state import SearchState


def log_record(state: SearchState, shown: Query | Sequence[Recommendation]) -> JSON:
    """Return the record of a question that the search chose, or of recommended items."""
    configuration = state.configuration
    common: JSON = {
        "pairseek": __version__,
        "model": MODEL_VERSION,
        "items": configuration.items.hash if isinstance(configuration.items, Items) else None,
        "goal": configuration.goal.name,
        "answers": sum(event.outcome == "answer" for event in state.events),
    }
    if not isinstance(shown, Query):
        return {
            "kind": "recommendation",
            **common,
            "recommended": [item.id for item in shown],
            "probabilities": [item.probability for item in shown],
            "utilities": [item.expected_utility for item in shown],
            "chance": 1.0,
        }
    if shown.info is None:
        raise InvalidParameter(f"the search did not choose the pair of the query {shown.id!r}: log one from ask()")
    return {
        "kind": "question",
        **common,
        "query": shown.id,
        "left": shown.left,
        "right": shown.right,
        "strategy": shown.info.strategy,
        "information": shown.info.information,
        "probability_left": shown.info.probability_left,
        "probability_tie": shown.info.probability_tie,
        "chance": shown.info.chance,
        "seconds": shown.info.seconds,
    }
