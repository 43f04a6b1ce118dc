"""Group rankings of items with their uncertainty, and segments of people with similar tastes."""

from pairseek.people.ranking.ranking import RankedItem, Ranking, rank
from pairseek.people.ranking.segments import Segment, Segmentation, find_segments

__all__ = ["RankedItem", "Ranking", "Segment", "Segmentation", "find_segments", "rank"]
