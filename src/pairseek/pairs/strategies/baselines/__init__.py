"""Baselines: procedures that choose pairs by themselves, and `PROCEDURES`, their table of names."""

from pairseek.pairs.strategies.base import Procedure
from pairseek.pairs.strategies.baselines.actrank import ActRank
from pairseek.pairs.strategies.baselines.gausscloud import GaussCloud
from pairseek.pairs.strategies.baselines.gausssearch import GaussSearch

PROCEDURES: dict[str, type[Procedure]] = {strategy.name: strategy for strategy in (ActRank, GaussCloud, GaussSearch)}

__all__ = ["PROCEDURES", "ActRank", "GaussCloud", "GaussSearch"]
