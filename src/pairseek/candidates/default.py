"""What is done when nobody says where pairs come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.candidates.allpairs import AllPairs, any_pair, best_by_list
from pairseek.candidates.scene import Choice, Scene
from pairseek.candidates.weighted import WeightedPairs
from pairseek.errors import InvalidParameter
from pairseek.surface import surface_of

# Up to so many pairs are scored one by one: for a strategy that declares no surface, and for any other, where that is
# as fast as a search and spares the compilation of its kernels.
_LISTED = 500_000
_FEW = 100_000
# Where k is unknown the utility is flat, so that certainty takes long, and it would be of a score that is near the
# truth and not the truth: the best found with so many looks.
_ROUGH = 2_000_000


@dataclass(frozen=True)
class DefaultPairs:
    """All pairs for a strategy whose score can be bounded, else as many as are cheap, drawn where good pairs are.

    Parameters
    ----------
    gap
        See `AllPairs`. One part in a hundred of a question's worth is not noticed, and for flat utilities the search
        for it takes most of the time.
    budget
        See `AllPairs`.
    rescore
        How many of the best are scored again by samples; 0 for none.
    """

    gap: float = 0.01
    budget: int = AllPairs.budget
    rescore: int = 32
    name: ClassVar[str] = "default"

    def __post_init__(self) -> None:
        try:
            AllPairs(self.gap, self.budget, self.rescore)
        except InvalidParameter as error:
            raise InvalidParameter(str(error).replace("AllPairs", "DefaultPairs")) from None

    def choose(self, scene: Scene, rng: np.random.Generator) -> Choice | None:
        """The best found; None if the rules leave none."""
        n = len(scene.points)
        surface = surface_of(scene.strategy)
        if surface is not None and surface.shape == "even":
            return any_pair(scene, rng)
        if n * (n - 1) // 2 <= (_LISTED if surface is None else _FEW):
            return best_by_list(scene, rng, rescore=self.rescore)
        if surface is None:
            return WeightedPairs(rescore=self.rescore).choose(scene, rng)
        budget = self.budget if scene.belief.reliability is None else min(self.budget, _ROUGH)
        return AllPairs(self.gap, budget, self.rescore).choose(scene, rng)
