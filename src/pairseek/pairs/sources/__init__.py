"""Sources of candidate pairs, with their features and the rest rules between repetitions."""

from pairseek.pairs.features import PairFeatures
from pairseek.pairs.rest import Rest
from pairseek.pairs.sources.all_pairs import AllPairs
from pairseek.pairs.sources.listed import ListedPairs
from pairseek.pairs.sources.proposed import ProposedPairs
from pairseek.pairs.sources.sampled import SampledPairs
from pairseek.pairs.sources.weighted import WeightedPairs

Candidates = PairFeatures
"""Public name of `PairFeatures`, as in the signature of a strategy's `score`."""
SOURCES = {source.name: source for source in (AllPairs, ListedPairs, ProposedPairs, SampledPairs, WeightedPairs)}

__all__ = [
    "SOURCES",
    "AllPairs",
    "Candidates",
    "ListedPairs",
    "PairFeatures",
    "ProposedPairs",
    "Rest",
    "SampledPairs",
    "WeightedPairs",
]
