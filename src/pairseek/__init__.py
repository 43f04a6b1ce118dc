"""Preference learning: find what a person likes by asking which of two items they prefer.

Bayesian active search in an embedding, after Canal, Massimino, Davenport and Rozell, "Active embedding search via
noisy paired comparisons", ICML 2019.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek import errors
from pairseek._version import __version__
from pairseek.core.lazy import LazyMembers as _LazyMembers
from pairseek.core.types import Belief, Event, Query
from pairseek.errors import DefaultWarning, DimensionWarning, PairseekError, ScaleWarning
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.model.spaces import Space
from pairseek.model.unknowns import Beta, LogNormal, NoiseKinds, Normal, Unknown
from pairseek.numerics.parallel import set_thread_count
from pairseek.pairs.sources import AllPairs, Candidates, ListedPairs, Rest, SampledPairs
from pairseek.pairs.strategies import InfoGain, Random
from pairseek.posteriors import EP
from pairseek.search import Search
from pairseek.search.stopping import AfterAnswers, BestItemFound, GainBelow, InformationBelow, RadiusBelow

if _TYPE_CHECKING:
    from pairseek import datasets, embed, experiments
    from pairseek.model import bounds, metrics
    from pairseek.model.recommendations import Recommendation
    from pairseek.model.vectors import VectorMap
    from pairseek.pairs.strategies import EPMV, EUBO, MCMV, GreedyMSE, GreedyVolume, Shortlist
    from pairseek.pairs.strategies.baselines import ActRank, GaussCloud, GaussSearch
    from pairseek.people.population import Choices, Population
    from pairseek.people.ranking import Ranking, rank
    from pairseek.posteriors import Grid, Particles
    from pairseek.search.estimates import Estimate, IdealPoint
    from pairseek.search.simulate import SimulatedUser

# Members that are loaded at first use, because a default search does not need them.
_MEMBERS = _LazyMembers[_Any](
    {
        "bounds": "pairseek.model.bounds",
        "datasets": "pairseek.datasets",
        "embed": "pairseek.embed",
        "experiments": "pairseek.experiments",
        "metrics": "pairseek.model.metrics",
        "ActRank": "pairseek.pairs.strategies.baselines:ActRank",
        "Choices": "pairseek.people.population:Choices",
        "EPMV": "pairseek.pairs.strategies:EPMV",
        "EUBO": "pairseek.pairs.strategies:EUBO",
        "Estimate": "pairseek.search.estimates:Estimate",
        "GaussCloud": "pairseek.pairs.strategies.baselines:GaussCloud",
        "GaussSearch": "pairseek.pairs.strategies.baselines:GaussSearch",
        "GreedyMSE": "pairseek.pairs.strategies:GreedyMSE",
        "GreedyVolume": "pairseek.pairs.strategies:GreedyVolume",
        "Grid": "pairseek.posteriors:Grid",
        "IdealPoint": "pairseek.search.estimates:IdealPoint",
        "MCMV": "pairseek.pairs.strategies:MCMV",
        "Particles": "pairseek.posteriors:Particles",
        "Population": "pairseek.people.population:Population",
        "Ranking": "pairseek.people.ranking:Ranking",
        "Recommendation": "pairseek.model.recommendations:Recommendation",
        "Shortlist": "pairseek.pairs.strategies:Shortlist",
        "SimulatedUser": "pairseek.search.simulate:SimulatedUser",
        "VectorMap": "pairseek.model.vectors:VectorMap",
        "rank": "pairseek.people.ranking:rank",
    }
)

__all__ = [
    "EP",
    "EPMV",
    "EUBO",
    "MCMV",
    "ActRank",
    "AfterAnswers",
    "AllPairs",
    "Belief",
    "BestItemFound",
    "Beta",
    "Candidates",
    "Choices",
    "DefaultWarning",
    "DimensionWarning",
    "Estimate",
    "Event",
    "GainBelow",
    "GaussCloud",
    "GaussSearch",
    "GaussianPrior",
    "GreedyMSE",
    "GreedyVolume",
    "Grid",
    "IdealPoint",
    "InfoGain",
    "InformationBelow",
    "Items",
    "ListedPairs",
    "LogNormal",
    "Logistic",
    "NoiseKinds",
    "Normal",
    "PairseekError",
    "Particles",
    "Population",
    "Probit",
    "Query",
    "RadiusBelow",
    "Random",
    "Ranking",
    "Recommendation",
    "Rest",
    "SampledPairs",
    "ScaleWarning",
    "Search",
    "Shortlist",
    "SimulatedUser",
    "Space",
    "UniformBox",
    "Unknown",
    "VectorMap",
    "__version__",
    "bounds",
    "datasets",
    "embed",
    "errors",
    "experiments",
    "metrics",
    "rank",
    "set_thread_count",
]


def __getattr__(name: str) -> _Any:
    return _MEMBERS.attribute_of(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
