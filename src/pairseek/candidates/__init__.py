"""Sources of candidate pairs, their features, and the rules of rest between repetitions."""

from pairseek.candidates.all_pairs import AllPairs
from pairseek.candidates.listed import ListedPairs
from pairseek.candidates.proposed import ProposedPairs
from pairseek.candidates.rest import Rest
from pairseek.candidates.sampled import SampledPairs
from pairseek.candidates.weighted import WeightedPairs
from pairseek.strategies.features import PairFeatures

Candidates = PairFeatures
"""The name of `PairFeatures` in the signature of a strategy's `score`."""
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
