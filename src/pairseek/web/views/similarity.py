"""View of a similarity study: map, error, vague items, forecast and findings."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

import numpy as np

from pairseek.core.maps import Frame
from pairseek.embed.active import JUDGEMENTS_PER_ITEM
from pairseek.embed.placement import MAX_UNDECIDED_SHARE
from pairseek.web.access.auth import Account
from pairseek.web.learning.similarity import MapVersion, all_versions
from pairseek.web.pages.contexts.maps import PlacedItem, SimilarityDrawing
from pairseek.web.pages.contexts.similarity import (
    CurveStep,
    DimensionContext,
    FindingContext,
    SimilarityContext,
    SimilarityPage,
)
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.researcher import study_page
from pairseek.web.views.result import project

_DRAWING_WIDTH = 1000.0
_DRAWING_MARGIN = 60.0
# Side of an item on the drawing, by the largest number of items for which it is used.
_ITEM_SIDES = ((25, 92.0), (60, 64.0), (150, 44.0))
# Side of an item if there are more items.
_MIN_ITEM_SIDE = 28.0
# Largest number of vague items in the list.
_MAX_VAGUE_ITEMS = 8


def similarity_page(
    service: Service, user: Account, study: Study, link: str, *, simulating: int, page: int, learning: bool = False
) -> SimilarityPage:
    """Return the context of the dashboard of a similarity study."""
    base = study_page(service, user, study, link, simulating=simulating, page=page, learning=learning)
    versions = all_versions(service.database, study)
    return {**base, "similarity": _similarity_context(study, versions)}


def _similarity_context(study: Study, versions: list[MapVersion]) -> SimilarityContext | None:
    if not versions:
        return None
    newest = versions[-1]
    learned = newest.learned
    choice = learned.choice
    vague = [int(row) for row in np.argsort(-learned.undecided) if learned.undecided[row] > MAX_UNDECIDED_SHARE]
    tried: list[DimensionContext] = [
        {"dimensions": d, "error": float(mean), "standard_error": float(error)}
        for d, mean, error in zip(choice.dimensions, choice.mean, choice.standard_error, strict=True)
    ]
    return {
        "version": newest.version,
        "created": newest.created_at,
        "judgements": learned.judgements,
        "apart": learned.held_out,
        "error": learned.error,
        "standard_error": learned.standard_error,
        "undecided": float(np.mean(learned.undecided)),
        "goal": MAX_UNDECIDED_SHARE,
        "forecast": learned.forecast,
        "usual": JUDGEMENTS_PER_ITEM * study.items.n,
        "dimensions": learned.final.d,
        "recommended": choice.chosen,
        "tried": tried,
        "k": learned.k,
        "drawing": _drawing(study, newest, set(vague)),
        "vague": [study.card(str(study.items.ids[row])) for row in vague[:_MAX_VAGUE_ITEMS]],
        "vague_count": len(vague),
        "curve": [_step(version) for version in versions if version.learned.error is not None],
        "findings": [cast("FindingContext", asdict(finding)) for finding in learned.findings],
    }


def _step(version: MapVersion) -> CurveStep:
    learned = version.learned
    assert learned.error is not None
    assert learned.standard_error is not None
    return {"judgements": learned.judgements, "error": learned.error, "standard_error": learned.standard_error}


def _drawing(study: Study, newest: MapVersion, vague: set[int]) -> SimilarityDrawing:
    """Draw the items with equal scales on both axes, the vaguest first, so that the others cover them."""
    items = newest.learned.final.items()
    points = project(items, items.coordinates)
    side = next((side for limit, side in _ITEM_SIDES if items.n <= limit), _MIN_ITEM_SIDE)
    inner_width = _DRAWING_WIDTH - 2 * _DRAWING_MARGIN
    frame = Frame.fitted(points, (inner_width, inner_width), (_DRAWING_MARGIN, _DRAWING_MARGIN))
    width, height = (
        max(positions) + _DRAWING_MARGIN for positions in zip(*(frame.place(x, y) for x, y in points), strict=True)
    )
    placed_items: list[PlacedItem] = []
    for row in np.argsort(-newest.learned.undecided).tolist():
        x, y = frame.place(*points[row])
        placed_items.append(
            {
                "card": study.card(str(study.items.ids[row])),
                "x": round(x, 1),
                "y": round(y, 1),
                "undecided": float(newest.learned.undecided[row]),
                "vague": row in vague,
            }
        )
    return {"width": round(width), "height": round(height), "side": side, "items": placed_items}
