"""Find a person's taste by asking which of two they prefer.

Bayesian active search in an embedding, after Canal, Massimino, Davenport and Rozell, "Active embedding search via
noisy paired comparisons", ICML 2019.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek import errors
from pairseek._version import __version__
from pairseek.candidates import AllPairs, Candidates, ListedPairs, Rest, SampledPairs
from pairseek.core.lazy import LazyMembers as _LazyMembers
from pairseek.core.types import Belief, Event, Query
from pairseek.errors import DefaultWarning, DimensionWarning, PairseekError, ScaleWarning
from pairseek.estimates import Estimate, IdealPoint, Recommendation
from pairseek.model.items import Items, Space
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.model.unknowns import Beta, LogNormal, NoiseKinds, Normal, Unknown
from pairseek.numerics.parallel import set_thread_count
from pairseek.posteriors import EP
from pairseek.search import Search
from pairseek.stopping import AfterAnswers, BestItemFound, GainBelow, InformationBelow, RadiusBelow
from pairseek.strategies import InfoGain, Random

if _TYPE_CHECKING:
    from pairseek import datasets, embed, experiments
    from pairseek.model import bounds, metrics
    from pairseek.model.vectors import VectorMap
    from pairseek.population import Choices, Population
    from pairseek.posteriors import Grid, Particles
    from pairseek.ranking import Ranking, rank
    from pairseek.simulate import SimulatedUser
    from pairseek.strategies import EPMV, EUBO, MCMV, GreedyMSE, GreedyVolume, Shortlist
    from pairseek.strategies.baselines import ActRank, GaussCloud, GaussSearch

# Loaded when they are first named, because a search does without them.
_MEMBERS = _LazyMembers[_Any](
    {
        "bounds": "pairseek.model.bounds",
        "datasets": "pairseek.datasets",
        "embed": "pairseek.embed",
        "experiments": "pairseek.experiments",
        "metrics": "pairseek.model.metrics",
        "ActRank": "pairseek.strategies.baselines:ActRank",
        "Choices": "pairseek.population:Choices",
        "EPMV": "pairseek.strategies:EPMV",
        "EUBO": "pairseek.strategies:EUBO",
        "GaussCloud": "pairseek.strategies.baselines:GaussCloud",
        "GaussSearch": "pairseek.strategies.baselines:GaussSearch",
        "GreedyMSE": "pairseek.strategies:GreedyMSE",
        "GreedyVolume": "pairseek.strategies:GreedyVolume",
        "Grid": "pairseek.posteriors:Grid",
        "MCMV": "pairseek.strategies:MCMV",
        "Particles": "pairseek.posteriors:Particles",
        "Population": "pairseek.population:Population",
        "Ranking": "pairseek.ranking:Ranking",
        "Shortlist": "pairseek.strategies:Shortlist",
        "SimulatedUser": "pairseek.simulate:SimulatedUser",
        "VectorMap": "pairseek.model.vectors:VectorMap",
        "rank": "pairseek.ranking:rank",
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
