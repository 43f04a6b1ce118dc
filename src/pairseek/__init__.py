"""Find a person's taste by asking which of two they prefer.

Bayesian active search in an embedding, after Canal, Massimino, Davenport and Rozell, "Active embedding search via
noisy paired comparisons", ICML 2019.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek import errors
from pairseek._version import __version__
from pairseek.candidates import AllPairs, Candidates, ListedPairs, Rest, SampledPairs
from pairseek.core.types import Belief, Event, Query
from pairseek.errors import DefaultWarning, DimensionWarning, PairseekError, ScaleWarning
from pairseek.estimates import Estimate, IdealPoint, Recommendation
from pairseek.model.items import Items, Space
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic, Probit
from pairseek.model.unknowns import Beta, LogNormal, NoiseKinds, Normal, Unknown
from pairseek.numerics.parallel import set_thread_count
from pairseek.posteriors import EP, Grid, Particles
from pairseek.search import Search
from pairseek.stopping import AfterAnswers, BestItemFound, GainBelow, InformationBelow, RadiusBelow
from pairseek.strategies import EPMV, EUBO, MCMV, GreedyMSE, GreedyVolume, InfoGain, Random, Shortlist

if _TYPE_CHECKING:
    from pairseek import datasets, embed, experiments
    from pairseek.model import bounds, metrics
    from pairseek.model.vectors import VectorMap
    from pairseek.population import Choices, Population
    from pairseek.ranking import Ranking, rank
    from pairseek.simulate import SimulatedUser
    from pairseek.strategies.baselines import ActRank, GaussCloud, GaussSearch

# Loaded when they are first named, because a search does without them.
_MODULES = {
    "bounds": "pairseek.model.bounds",
    "datasets": "pairseek.datasets",
    "embed": "pairseek.embed",
    "experiments": "pairseek.experiments",
    "metrics": "pairseek.model.metrics",
}
_MEMBERS = {
    "ActRank": "pairseek.strategies.baselines",
    "Choices": "pairseek.population",
    "GaussCloud": "pairseek.strategies.baselines",
    "GaussSearch": "pairseek.strategies.baselines",
    "Population": "pairseek.population",
    "Ranking": "pairseek.ranking",
    "SimulatedUser": "pairseek.simulate",
    "VectorMap": "pairseek.model.vectors",
    "rank": "pairseek.ranking",
}

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
    if name in _MODULES:
        return _import_module(_MODULES[name])
    if name in _MEMBERS:
        return getattr(_import_module(_MEMBERS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
