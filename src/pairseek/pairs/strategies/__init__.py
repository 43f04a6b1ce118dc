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

# Loaded on first use: a default search needs only InfoGain.
_PLACES = {
    "infogain": "pairseek.pairs.strategies.infogain:InfoGain",
    "epmv": "pairseek.pairs.strategies.epmv:EPMV",
    "mcmv": "pairseek.pairs.strategies.mcmv:MCMV",
    "eubo": "pairseek.pairs.strategies.eubo:EUBO",
    "shortlist": "pairseek.pairs.strategies.shortlist:Shortlist",
    "greedy_mse": "pairseek.pairs.strategies.greedy:GreedyMSE",
    "greedy_volume": "pairseek.pairs.strategies.greedy:GreedyVolume",
    "random": "pairseek.pairs.strategies.random:Random",
}
UTILITIES = _LazyMembers[type[Utility]](_PLACES)
"""All utilities, by name."""
_MEMBERS = _LazyMembers[_Any]({place.partition(":")[2]: place for place in _PLACES.values()})


def strategies() -> dict[str, type[Utility] | type[Procedure]]:
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
    "strategies",
]
