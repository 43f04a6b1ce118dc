"""From judgements to a searchable catalogue: embeddings from triplets or vectors, fitted noise, a health check.

>>> from pairseek.embed import CKL, Triplets, choose_dimension, fit_noise  # doctest: +SKIP
"""

from pairseek.embed.methods import CKL, GNMDS, METHODS, STE, TSTE
from pairseek.embed.triplets import Triplets

__all__ = ["CKL", "GNMDS", "METHODS", "STE", "TSTE", "Triplets"]
