"""Notebook representation of a search."""

from __future__ import annotations

from collections.abc import Sequence

from pairseek.core import notebook
from pairseek.core.text import plural
from pairseek.core.types import Query
from pairseek.model.recommendations import recommended_rows
from pairseek.search.estimates import estimate_panel
from pairseek.search.state import SearchState


def search_panel(state: SearchState, pending: Sequence[Query], note: str) -> str:
    """Return a search as HTML: a map with the estimate, the recommended items and the pending queries."""
    configuration, estimate = state.configuration, state.estimate()
    title = f"Search after {plural(state.answers, 'answer')}"
    if not len(configuration.items.coordinates):
        return notebook.panel(title, notebook.Html(estimate_panel(estimate)), note=note)
    items = configuration.catalogue
    best = state.recommend(5)
    names = {items.index(item.id): item.label for item in best}
    drawing, axes = notebook.items_map(items, names, estimate.point, estimate.covariance)
    facts: list[tuple[str, object]] = [("strategy", configuration.strategy.name), ("goal", configuration.goal.name)]
    # Only stop rules are checked: whether a procedure has finished is known only once it is asked for a pair.
    if any(rule.reached(state) for rule in configuration.stop):
        facts.append(("finished", state.stopped(pending=bool(pending))))
    for query in pending:
        texts = (items.labels[items.index(side)] for side in (query.left, query.right))
        facts.append(("asks", " or ".join(texts) + "?"))
    remarks = " ".join(filter(None, (estimate.note, axes)))
    return notebook.panel(title, drawing, recommended_rows(items, best), notebook.facts(facts), note=remarks)
