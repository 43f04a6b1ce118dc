"""Results that a quiz should show, computed by the search itself."""

from __future__ import annotations

import pairseek as ps


def by_share(search: ps.Search, count: int) -> list:
    """Return recommended items with their choice shares, in the order of the result page."""
    best = search.recommend(count)
    return sorted(zip(best, search.choice_shares(item.id for item in best), strict=True), key=lambda pair: -pair[1])
