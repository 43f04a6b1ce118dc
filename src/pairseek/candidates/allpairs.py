"""The best of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.candidates.sampled import pair_rows
from pairseek.candidates.scene import Choice, Scene, best_of
from pairseek.errors import InvalidParameter


@dataclass(frozen=True)
class AllPairs:
    """Every pair of items.

    Parameters
    ----------
    rescore
        How many of the best are scored again by samples; 0 for none.
    """

    rescore: int = 512
    name: ClassVar[str] = "all_pairs"

    def __post_init__(self) -> None:
        if self.rescore < 0:
            raise InvalidParameter(f"AllPairs(rescore={self.rescore}): give 0 or more")

    def choose(self, scene: Scene, rng: np.random.Generator) -> Choice | None:
        """The best of all."""
        n = len(scene.points)
        total = n * (n - 1) // 2
        first, second = pair_rows(np.arange(total), n)
        return best_of(scene, first, second, rng, rescore=self.rescore, words=f"all {total:,} pairs")
