"""What a quiz shows at its end, by the search itself."""

from __future__ import annotations

import pairseek as ps


def by_share(search: ps.Search, count: int) -> list:
    """Recommended items with the share of items over which each would be chosen, as the result page orders them."""
    best = search.recommend(count)
    return sorted(zip(best, search.choice_shares(one.id for one in best), strict=True), key=lambda one: -one[1])
