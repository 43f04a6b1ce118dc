"""Simulated triplets, for tests and examples."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import IntArray
from pairseek.core.validation import whole
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Response

_CHUNK_SIZE = 1 << 18


def simulate_triplets(
    items: Items, count: int, rng: int | np.random.Generator, *, response: Response | None = None
) -> Triplets:
    """Draw random triplets of items, and simulate judgements of them.

    Parameters
    ----------
    items
        At least three items.
    count
        Number of triplets, each of three different random items.
    rng
        Seed or generator.
    response
        Response model, with k, of a user at the anchor. None: noiseless judgements.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.embed import simulate_triplets
    >>> items = ps.Items([[0.0], [1.0], [5.0]], ids=["plum", "cherry", "leek"])
    >>> triplets = simulate_triplets(items, 4, rng=0)
    >>> [tuple(triplets.ids[i] for i in row) for row in triplets.rows[:2].tolist()]
    [('leek', 'cherry', 'plum'), ('cherry', 'plum', 'leek')]
    """
    if items.n < 3:
        raise InvalidParameter(f"{items.n} items are too few for a triplet: give at least 3")
    count = whole(count, "count")
    generator = np.random.default_rng(rng)
    parts = [
        _draw_triplets(items, min(_CHUNK_SIZE, count - start), generator, response)
        for start in range(0, count, _CHUNK_SIZE)
    ]
    return Triplets(np.concatenate(parts), items.ids)


def _draw_triplets(items: Items, count: int, rng: np.random.Generator, response: Response | None) -> IntArray:
    n, points = items.n, items.coordinates
    anchor = rng.integers(n, size=count)
    first = (anchor + rng.integers(1, n, size=count)) % n
    # Draw from the n - 2 other items, then skip the indices of the two taken, the lower one first.
    second = rng.integers(n - 2, size=count)
    low, high = np.minimum(anchor, first), np.maximum(anchor, first)
    second += second >= low
    second += second >= high
    if response is None:
        margin = ((points[anchor] - points[second]) ** 2).sum(1) - ((points[anchor] - points[first]) ** 2).sum(1)
        in_order = margin >= 0
    else:
        slopes, offsets = response.planes(points[first], points[second])
        logits = np.einsum("md,md->m", slopes, points[anchor]) + offsets
        in_order = response.simulate(logits, rng).astype(bool)
    near, far = np.where(in_order, first, second), np.where(in_order, second, first)
    return np.column_stack([anchor, near, far])
