"""Embedding methods for triplets: CKL, STE, t-STE and GNMDS.

In their formulas, s = |anchor - near|² and t = |anchor - far|².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.embed.base import TripletEmbedding
from pairseek.embed.losses import HINGE_LOSS, LOGISTIC_LOSS, POWER_LOSS, RATIO_LOSS
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidParameter


@dataclass(kw_only=True, eq=False)
class CKL(TripletEmbedding):
    """Crowd Kernel Learning: P = (μ + t)/(2μ + s + t), the paper's choice.

    Tamuz, Liu, Belongie, Shamir and Kalai, "Adaptively learning the crowd kernel", ICML 2011, equation 3. They
    confine the points to the unit ball; here shrinkage bounds them, so only λμ matters, and μ is the unit of squared
    length.

    For other settings, methods and results see `TripletEmbedding`.

    Parameters
    ----------
    mu
        Unit of squared length μ, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import CKL, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> triplets = simulate_triplets(items, 400, rng=0)
    >>> embedding = CKL(n_components=2, random_state=0).fit(triplets)
    >>> embedding.score(triplets) > 0.9
    True
    >>> search = ps.Search(embedding.to_items(scaled=True), rng=7)
    """

    mu: float = 1.0
    name: ClassVar[str] = "ckl"
    kind: ClassVar[int] = RATIO_LOSS

    def _parameter(self) -> float:
        return self.mu

    def _unit(self) -> float:
        return float(np.sqrt(self.mu))

    def _logits(self, near: FloatArray, far: FloatArray) -> FloatArray:
        return np.asarray(np.log((self.mu + far) / (self.mu + near)))

    def _check(self, triplets: Triplets) -> None:
        if not (np.isfinite(self.mu) and self.mu > 0):
            raise InvalidParameter(f"mu is {self.mu!r}: give a number above 0", field="mu")
        super()._check(triplets)


@dataclass(kw_only=True, eq=False)
class STE(TripletEmbedding):
    """Stochastic Triplet Embedding: P = 1/(1 + e^(s - t)).

    Van der Maaten and Weinberger, "Stochastic triplet embedding", MLSP 2012, equation 3. This is the logistic
    response with constant noise and k = 1.

    For settings, methods and results see `TripletEmbedding`.

    Examples
    --------
    The score on held-out triplets measures how well the embedding predicts judgements.

    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import STE, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> fitted, held_out = simulate_triplets(items, 400, rng=0).split(0.2, rng=0)
    >>> STE(n_components=2, random_state=0).fit(fitted).score(held_out) > 0.85
    True
    """

    name: ClassVar[str] = "ste"
    kind: ClassVar[int] = LOGISTIC_LOSS


@dataclass(kw_only=True, eq=False)
class TSTE(TripletEmbedding):
    """STE with a Student-t kernel: P = K(s)/(K(s) + K(t)), K(s) = (1 + s/α)^(-(α + 1)/2).

    Van der Maaten and Weinberger (2012), equation 6. With α = 1 it equals `CKL` with μ = 1.

    For other settings, methods and results see `TripletEmbedding`.

    Parameters
    ----------
    alpha
        Degrees of freedom α, above 0. None: n_components - 1 as in the paper, but at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import TSTE, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> triplets = simulate_triplets(items, 400, rng=0)
    >>> embedding = TSTE(n_components=2, alpha=2.0, random_state=0).fit(triplets)
    >>> embedding.score(triplets) > 0.9
    True
    """

    alpha: float | None = None
    name: ClassVar[str] = "tste"
    kind: ClassVar[int] = POWER_LOSS

    def _parameter(self) -> float:
        return max(self.n_components - 1.0, 1.0) if self.alpha is None else self.alpha

    def _unit(self) -> float:
        return float(np.sqrt(self._parameter()))

    def _logits(self, near: FloatArray, far: FloatArray) -> FloatArray:
        alpha = self._parameter()
        return np.asarray(0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near)))

    def _check(self, triplets: Triplets) -> None:
        if self.alpha is not None and not (np.isfinite(self.alpha) and self.alpha > 0):
            raise InvalidParameter(f"alpha is {self.alpha!r}: give a number above 0, or None", field="alpha")
        super()._check(triplets)


@dataclass(kw_only=True, eq=False)
class GNMDS(TripletEmbedding):
    """Generalized non-metric multidimensional scaling: the squared hinge max(0, 1 + s - t)², without probabilities.

    Agarwal, Wills, Cayton, Lanckriet, Kriegman and Belongie, "Generalized non-metric multidimensional scaling",
    AISTATS 2007. The loss is convex in the matrix of inner products, and the shrinkage is its trace. Here the hinge is
    squared to have a gradient everywhere, and the optimiser works on n x d coordinates instead of an n x n matrix.

    For settings, methods and results see `TripletEmbedding`.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import GNMDS, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> triplets = simulate_triplets(items, 400, rng=0)
    >>> embedding = GNMDS(n_components=2, random_state=0).fit(triplets)
    >>> embedding.score(triplets) > 0.9
    True
    """

    name: ClassVar[str] = "gnmds"
    kind: ClassVar[int] = HINGE_LOSS


METHODS: dict[str, type[TripletEmbedding]] = {method.name: method for method in (CKL, STE, TSTE, GNMDS)}
"""Triplet embeddings by name, for ``pairseek embed --method``.

Examples
--------
>>> from pairseek.embed import METHODS
>>> sorted(METHODS)
['ckl', 'gnmds', 'ste', 'tste']
>>> METHODS["ste"](n_components=3)
STE(n_components=3, ...)
"""
