"""Baselines: procedures that choose pairs themselves, and `PROCEDURES`, the table of their names."""

from pairseek.pairs.strategies.base import Procedure
from pairseek.pairs.strategies.baselines.actrank import ActRank
from pairseek.pairs.strategies.baselines.gausscloud import GaussCloud
from pairseek.pairs.strategies.baselines.gausssearch import GaussSearch

PROCEDURES: dict[str, type[Procedure]] = {strategy.name: strategy for strategy in (ActRank, GaussCloud, GaussSearch)}

__all__ = ["PROCEDURES", "ActRank", "GaussCloud", "GaussSearch"]
