"""Data sets that come with pairseek or are downloaded on demand.

Examples
--------
>>> import pairseek as ps
>>> ps.datasets.colours().n, ps.datasets.synthetic(4, n=50).d
(949, 4)
"""

from pairseek.datasets.colours import colours, hex_from_oklab, oklab_from_srgb, srgb_from_oklab
from pairseek.datasets.food10k import Food10kFacts, food10k, food10k_dimensions, food10k_facts, synthetic

__all__ = [
    "Food10kFacts",
    "colours",
    "food10k",
    "food10k_dimensions",
    "food10k_facts",
    "hex_from_oklab",
    "oklab_from_srgb",
    "srgb_from_oklab",
    "synthetic",
]
