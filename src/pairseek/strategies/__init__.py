"""Strategies for choosing the next pair, and `STRATEGIES`, the name table of saved files, commands, HTTP and tests."""

from pairseek.strategies.base import Procedure, Utility
from pairseek.strategies.baselines.actrank import ActRank
from pairseek.strategies.baselines.gausscloud import GaussCloud
from pairseek.strategies.baselines.gausssearch import GaussSearch
from pairseek.strategies.epmv import EPMV
from pairseek.strategies.eubo import EUBO
from pairseek.strategies.greedy import GreedyMSE, GreedyVolume
from pairseek.strategies.infogain import InfoGain
from pairseek.strategies.mcmv import MCMV
from pairseek.strategies.random import Random
from pairseek.strategies.shortlist import Shortlist

UTILITIES: dict[str, type[Utility]] = {
    strategy.name: strategy
    for strategy in (
        InfoGain,
        EPMV,
        MCMV,
        EUBO,
        Shortlist,
        GreedyMSE,
        GreedyVolume,
        Random,
    )
}
PROCEDURES: dict[str, type[Procedure]] = {strategy.name: strategy for strategy in (ActRank, GaussCloud, GaussSearch)}
STRATEGIES: dict[str, type[Utility] | type[Procedure]] = {**UTILITIES, **PROCEDURES}

__all__ = [
    "EPMV",
    "EUBO",
    "MCMV",
    "PROCEDURES",
    "STRATEGIES",
    "UTILITIES",
    "ActRank",
    "GaussCloud",
    "GaussSearch",
    "GreedyMSE",
    "GreedyVolume",
    "InfoGain",
    "Procedure",
    "Random",
    "Shortlist",
    "Utility",
]
