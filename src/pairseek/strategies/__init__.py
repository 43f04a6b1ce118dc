"""Strategies for choosing the next pair, and `strategies`, the name table of saved files, commands, HTTP and tests."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek.core.lazy import LazyMembers as _LazyMembers
from pairseek.strategies.base import Procedure, Utility
from pairseek.strategies.infogain import InfoGain
from pairseek.strategies.random import Random

if _TYPE_CHECKING:
    from pairseek.strategies.epmv import EPMV
    from pairseek.strategies.eubo import EUBO
    from pairseek.strategies.greedy import GreedyMSE, GreedyVolume
    from pairseek.strategies.mcmv import MCMV
    from pairseek.strategies.shortlist import Shortlist

# Loaded when they are first named, because a default search does without most of them.
_PLACES = {
    "infogain": "pairseek.strategies.infogain:InfoGain",
    "epmv": "pairseek.strategies.epmv:EPMV",
    "mcmv": "pairseek.strategies.mcmv:MCMV",
    "eubo": "pairseek.strategies.eubo:EUBO",
    "shortlist": "pairseek.strategies.shortlist:Shortlist",
    "greedy_mse": "pairseek.strategies.greedy:GreedyMSE",
    "greedy_volume": "pairseek.strategies.greedy:GreedyVolume",
    "random": "pairseek.strategies.random:Random",
}
UTILITIES = _LazyMembers[type[Utility]](_PLACES)
"""All utilities by name."""
_MEMBERS = _LazyMembers[_Any]({place.partition(":")[2]: place for place in _PLACES.values()})


def strategies() -> dict[str, type[Utility] | type[Procedure]]:
    """Return all strategies by name; the baselines, which few searches use, are loaded by this call."""
    from pairseek.strategies.baselines import PROCEDURES

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
