"""Group ranking of items with its uncertainty, and segments of people with alike tastes."""

from pairseek.people.ranking.ranking import RankedItem, Ranking, rank
from pairseek.people.ranking.segments import Segment, Segmentation, find_segments

__all__ = ["RankedItem", "Ranking", "Segment", "Segmentation", "find_segments", "rank"]
