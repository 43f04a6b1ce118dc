"""Plan of a study of items without coordinates: what a number of people and answers will tell about their ranking."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from pairseek.core.columns import ColumnRules
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.people.ranking.precision import RankingPrecision, ranking_precision


def show_precision(items: Path | None, count: int | None, *, people: int, answers: int, as_json: bool) -> None:
    """Print the expected precision of a ranking; `count` is the number of items if no file is given."""
    if (items is None) == (count is None):
        raise InvalidParameter(
            "give either --items, a file, or --count, the number of items, together with --people", field="count"
        )
    if items is not None:
        count = Items._of_file(items, ColumnRules(media=True, optional=True)).n
    precision = ranking_precision(count or 0, people, answers)
    typer.echo(json.dumps(_record(precision), indent=1) if as_json else _text(precision))


def _record(precision: RankingPrecision) -> dict[str, float | bool]:
    return {
        "items": precision.items,
        "people": precision.people,
        "answers": precision.answers,
        "ranks": precision.ranks,
        "best_found": precision.best_found,
        "best_found_is_bound": precision.is_bound,
        "tells_apart": precision.tells_apart,
    }


def _text(precision: RankingPrecision) -> str:
    chance = f"{'at most ' if precision.is_bound else ''}{precision.best_found:.0%}"
    lines = [
        f"{precision.items:,} items, {precision.people:,} people, {precision.answers:,} answers each:",
        f"  the 90 % interval of a rank spans about {precision.ranks:,.0f} of {precision.items:,} places",
        f"  the item ranked first is the best with a probability of {chance}",
    ]
    if not precision.tells_apart:
        lines.append("  Warning: these answers cannot tell the items apart. Ask more people or use fewer items.")
    return "\n".join(lines)
