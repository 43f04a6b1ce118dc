"""Other people: their choices, populations and rankings, and what a study learns from its own people."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek.core.lazy import LazyMembers as _LazyMembers

if _TYPE_CHECKING:
    from pairseek.people.choices import Choices
    from pairseek.people.learning import learn
    from pairseek.people.population import Population
    from pairseek.people.ranking import Ranking, find_segments, rank

# Loaded on first use: a search without a population needs none of them.
_MEMBERS = _LazyMembers[_Any](
    {
        "Choices": "pairseek.people.choices:Choices",
        "Population": "pairseek.people.population:Population",
        "Ranking": "pairseek.people.ranking:Ranking",
        "find_segments": "pairseek.people.ranking:find_segments",
        "learn": "pairseek.people.learning:learn",
        "rank": "pairseek.people.ranking:rank",
    }
)

__all__ = ["Choices", "Population", "Ranking", "find_segments", "learn", "rank"]


def __getattr__(name: str) -> _Any:
    return _MEMBERS.attribute_of(__name__, name)
