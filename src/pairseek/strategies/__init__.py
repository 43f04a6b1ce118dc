"""Strategies for choosing the next pair, and `strategies`, the name table of saved files, commands, HTTP and tests."""

from pairseek.strategies.base import Procedure, Utility
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


def strategies() -> dict[str, type[Utility] | type[Procedure]]:
    """Return all strategies by name; the baselines, which few searches use, are loaded by this call."""
    from pairseek.strategies.baselines import PROCEDURES

    return {**UTILITIES, **PROCEDURES}


__all__ = [
    "EPMV",
    "EUBO",
    "MCMV",
    "UTILITIES",
    "GreedyMSE",
    "GreedyVolume",
    "InfoGain",
    "Procedure",
    "Random",
    "Shortlist",
    "Utility",
    "strategies",
]
