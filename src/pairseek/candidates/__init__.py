"""Pairs that might be asked: how they are described, where they come from, and how soon they may come again."""

from pairseek.candidates.allpairs import AllPairs
from pairseek.candidates.described import Candidates
from pairseek.candidates.rest import Rest
from pairseek.candidates.sampled import SampledPairs

SOURCES = {source.name: source for source in (AllPairs, SampledPairs)}

__all__ = ["SOURCES", "AllPairs", "Candidates", "Rest", "SampledPairs"]
