"""Strategies for choosing the next pair, and the table of their names in files, commands and HTTP."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek.core.lazy import LazyMembers as _LazyMembers
from pairseek.pairs.strategies.base import Procedure, Utility
from pairseek.pairs.strategies.infogain import InfoGain
from pairseek.pairs.strategies.random import Random

if _TYPE_CHECKING:
    from pairseek.pairs.strategies.epmv import EPMV
    from pairseek.pairs.strategies.eubo import EUBO
    from pairseek.pairs.strategies.greedy import GreedyMSE, GreedyVolume
    from pairseek.pairs.strategies.mcmv import MCMV
    from pairseek.pairs.strategies.shortlist import Shortlist

# Modules are loaded on first use, because a default search needs only InfoGain. Random is imported above because
# `pairs.context` needs it in any case.
_LOCATIONS = {
    "infogain": "pairseek.pairs.strategies.infogain:InfoGain",
    "epmv": "pairseek.pairs.strategies.epmv:EPMV",
    "mcmv": "pairseek.pairs.strategies.mcmv:MCMV",
    "eubo": "pairseek.pairs.strategies.eubo:EUBO",
    "shortlist": "pairseek.pairs.strategies.shortlist:Shortlist",
    "greedy_mse": "pairseek.pairs.strategies.greedy:GreedyMSE",
    "greedy_volume": "pairseek.pairs.strategies.greedy:GreedyVolume",
    "random": "pairseek.pairs.strategies.random:Random",
}
UTILITIES = _LazyMembers[type[Utility]](_LOCATIONS)
"""All utilities, by name."""
_MEMBERS = _LazyMembers[_Any]({location.partition(":")[2]: location for location in _LOCATIONS.values()})


def all_strategies() -> dict[str, type[Utility] | type[Procedure]]:
    """Return all strategies by name. This call loads the baselines, which few searches use."""
    from pairseek.pairs.strategies.baselines import PROCEDURES

    return {**UTILITIES, **PROCEDURES}


def __getattr__(name: str) -> _Any:
    return _MEMBERS.attribute_of(__name__, name)


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
    "all_strategies",
]
