"""Specification of a simulation experiment as immutable data, validated at construction.

A *setting* holds the items and two response models, one for the search and one for the simulated users. A *contender*
is a strategy with a label. Every contender runs in every setting with every simulated user.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from pairseek._version import MODEL_VERSION
from pairseek.core.types import JSON
from pairseek.core.user_parts import missing_members
from pairseek.core.validation import is_number, one_of, single_line, whole
from pairseek.datasets import food10k_facts
from pairseek.errors import InvalidParameter
from pairseek.experiments.measures import MEASURES
from pairseek.experiments.runs.part_records import default_label, part_record, strategy_record
from pairseek.experiments.runs.plan import RunPlan
from pairseek.model.items import Items
from pairseek.model.noise import NOISES, Noise
from pairseek.model.priors import Prior, UniformBox
from pairseek.model.responses import RESPONSES, Response
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import Procedure, Utility
from pairseek.posteriors.base import Posterior
from pairseek.search.serialization import digest

NAMED_DATA = ("food10k", "synthetic", "colours", "space")
"""Names of built-in data; any other string is the path of an items file."""
_DATA_WITH_PUBLISHED_K = ("food10k", "synthetic")
_PRIOR_METHODS = ("box", "quadratic", "moments", "entropy_bits", "sample")


@dataclass(frozen=True)
class ResponseSpec:
    """A response model in a specification.

    Parameters
    ----------
    name
        ``"logistic"``, or ``"probit"``: the paper's Gaussian noise.
    noise
        ``"constant"``, ``"normalized"``, ``"decaying"``, or ``"best"`` for the published noise with the highest
        likelihood.
    k
        A number; ``"published"`` for the constant that the authors fitted in this dimension (Food-10k and its synthetic
        stand-in only); or None for the default of a search, which suits the scale of the prior.

    Examples
    --------
    >>> from pairseek.experiments import ResponseSpec
    >>> ResponseSpec("probit", "normalized", k=1.2).response(2)
    Probit(k=1.2, noise='normalized', ...)
    >>> round(ResponseSpec("logistic", "normalized", "published").response(4).k, 3)
    1.564
    """

    name: str = "logistic"
    noise: Noise | Literal["best"] = "normalized"
    k: float | Literal["published"] | None = None

    def __post_init__(self) -> None:
        one_of(self.name, "response.name", RESPONSES)
        one_of(self.noise, "response.noise", (*NOISES, "best"))
        if isinstance(self.k, str) and self.k != "published":
            raise InvalidParameter(f"response.k is {self.k!r}: give a number, or 'published'", field="response.k")
        if self.noise == "best" and self.k != "published":
            raise InvalidParameter(
                f"response.noise is 'best' and k is {self.k!r}: give k = 'published', or name the noise"
            )
        if self.k != "published":
            self.response(None)

    def response(self, d: int | None) -> Response:
        """Return the response model in d dimensions."""
        if self.k != "published":
            return RESPONSES[self.name](self.k, self.noise)  # type: ignore[arg-type]
        facts = food10k_facts(-1 if d is None else d)
        noise = facts.best[self.name] if self.noise == "best" else self.noise
        return facts.response(self.name, noise)  # type: ignore[arg-type]


Truth: TypeAlias = ResponseSpec | Response | Literal["matched", "noiseless"]


@dataclass(frozen=True)
class Setting:
    """Items and prior, with the response models of the search and of the simulated users.

    Parameters
    ----------
    label
        Label in tables and figures; unique in a specification.
    data
        ``"food10k"``, ``"synthetic"`` (a stand-in with the shape of Food-10k), ``"colours"``, ``"space"`` (the prior's
        box as a continuous space), a file that `Items.from_file` reads, or an `Items` or `Space` object.
    dimension
        Number of dimensions; required for ``"food10k"``, ``"synthetic"`` and ``"space"``, otherwise None.
    subsample
        Number of items drawn at random for each user. None: all items.
    scaled
        Whether to centre and scale the items by the paper's rule.
    prior
        Distribution of the users and prior of the search. None: the default prior of the items.
    response
        Response model of the search: a `ResponseSpec`, or a response such as ``ps.Probit(1.0, lapse=0.1)``.
    truth
        Response model of the users: ``"matched"`` for the search's own, ``"noiseless"``, a `ResponseSpec`, or any
        response with known k and lapse, including one from another package.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments import ResponseSpec, Setting
    >>> believed = ResponseSpec(k=2.0)
    >>> matched = Setting("matched", data="colours", response=believed)
    >>> truth = ps.Logistic(2.0, "normalized", lapse=0.1)
    >>> careless = Setting("careless", data="colours", response=believed, truth=truth)
    >>> matched.truth, careless.truth.lapse
    ('matched', 0.1)
    """

    label: str = "simulation"
    data: str | Items | Space = "food10k"
    dimension: int | None = None
    subsample: int | None = None
    scaled: bool = True
    prior: Prior | None = field(default_factory=lambda: UniformBox(-1.0, 1.0))
    response: ResponseSpec | Response = field(default_factory=ResponseSpec)
    truth: Truth = "matched"

    def __post_init__(self) -> None:
        single_line(self.label, "label")
        if not isinstance(self.data, str | Items | Space):
            raise InvalidParameter(
                f"data is {self.data!r}: give {', '.join(NAMED_DATA)}, a file, Items or a Space", field="data"
            )
        if self.data in (*_DATA_WITH_PUBLISHED_K, "space"):
            if self.dimension is None:
                raise InvalidParameter(f"dimension is missing: data {self.data!r} needs one", field="dimension")
            whole(self.dimension, "dimension", 1)
            if self.data == "food10k":
                food10k_facts(self.dimension)
        elif self.dimension is not None and isinstance(self.data, str):
            whole(self.dimension, "dimension", 1)
        if self.subsample is not None:
            whole(self.subsample, "subsample", 2)
        if not isinstance(self.scaled, bool):
            raise InvalidParameter(f"scaled is {self.scaled!r}: give true or false", field="scaled")
        missing = () if self.prior is None else missing_members(self.prior, _PRIOR_METHODS)
        if missing:
            raise InvalidParameter(
                f"prior is {self.prior!r}, which lacks {missing[0]}(): give a prior such as UniformBox(-1, 1), or None",
                field="prior",
            )
        self._check_response()
        self._check_truth()

    def response_model(self, d: int | None) -> Response:
        """Return the response model of the search in d dimensions."""
        return self.response if isinstance(self.response, Response) else self.response.response(d)

    def _check_response(self) -> None:
        if not isinstance(self.response, ResponseSpec | Response):
            raise InvalidParameter(
                f"response is {self.response!r}: give a ResponseSpec, or a response such as Logistic(1.5)",
                field="response",
            )
        if isinstance(self.response, Response):
            # Posteriors in simulations evaluate compiled links, which some responses lack.
            _ = self.response.link
            if self.response.unknown and self.truth == "matched":
                raise InvalidParameter(
                    f"response is {self.response!r} and truth is 'matched': simulated users need a known k and lapse; "
                    f"give a truth such as Logistic(1.5)",
                    field="response",
                )

    def _check_truth(self) -> None:
        if isinstance(self.truth, str):
            one_of(self.truth, "truth", ("matched", "noiseless"))
        elif isinstance(self.truth, Response):
            _ = self.truth.constant, self.truth.lapse_rate
        elif not isinstance(self.truth, ResponseSpec):
            raise InvalidParameter(
                f"truth is {self.truth!r}: give 'matched', 'noiseless', a ResponseSpec, or a response with a known k",
                field="truth",
            )
        elif self.truth.k is None:
            raise InvalidParameter("truth.k is missing: give a number, or 'published'", field="truth.k")
        for name in ("response", "truth"):
            part = getattr(self, name)
            if isinstance(part, ResponseSpec) and part.k == "published":
                if self.data not in _DATA_WITH_PUBLISHED_K:
                    raise InvalidParameter(
                        f"{name}.k is 'published' and data is {self.data!r}: constants were published for food10k "
                        f"only; give a number"
                    )
                part.response(self.dimension)


@dataclass(frozen=True)
class Contender:
    """A strategy with a label.

    Parameters
    ----------
    strategy
        A strategy from pairseek or another package; it must be a dataclass.
    label
        Label in tables and figures. Empty: the name of the strategy.
    rate
        Fraction of all pairs that are candidates, or ``"default"`` for the default of a search. None: the rate of the
        specification.
    posterior
        Posterior of the search. None: the posterior of the specification.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender
    >>> Contender(ps.InfoGain()).label
    'InfoGain'
    >>> Contender(ps.EPMV(), label="EPMV, particles", posterior=ps.Particles(500)).label
    'EPMV, particles'
    """

    strategy: Utility | Procedure
    label: str = ""
    rate: float | Literal["default"] | None = None
    posterior: Posterior | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, Utility | Procedure):
            raise InvalidParameter(f"{self.strategy!r} is not a strategy: it needs score(), or next() and estimate()")
        object.__setattr__(self, "label", single_line(self.label or default_label(self.strategy), "label"))
        if self.rate is not None:
            object.__setattr__(self, "rate", _checked_rate(self.rate, f"rate of {self.label}"))
        _check_posterior(self.posterior, f"posterior of {self.label}")


@dataclass(frozen=True)
class Specification:
    """A simulation experiment.

    Parameters
    ----------
    name, title
        Name in files, and title in reports.
    settings, strategies
        Settings and strategies; every strategy runs in every setting.
    rate
        Fraction of all pairs that are candidates for a query, β in the paper. ``"default"`` or None: the default source
        of a search.
    samples
        Number of `Particles` in the posterior. None: `EP`, unless ``posterior`` is given.
    repeats
        Whether a pair may be asked again at once, as in algorithm 1 of the paper. False: as late as possible, as in a
        search by default. Procedures ignore it, because they choose their own pairs.
    procedure_posterior
        Whether to infer the Bayesian posterior for procedures as well, although they do not use it. False: measures of
        the posterior are NaN for them, and their trials are much faster.
    posterior
        Posterior of the search, as an alternative to ``samples``; it must be a dataclass, and may come from another
        package.
    queries
        Number of answers in a trial.
    trials
        Number of simulated users in each setting.
    metrics
        Names among `MEASURES`.
    every
        Number of answers between two measurements; the first and last states are always measured.
    seed
        Seed; all random numbers derive from it and the index of the trial.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender, Setting, Specification
    >>> strategies = (Contender(ps.InfoGain()), Contender(ps.Random()))
    >>> settings = (Setting(data="colours"),)
    >>> specification = Specification("colours", settings, strategies, queries=20, every=5)
    >>> specification.labels, specification.counts
    (('InfoGain', 'Random'), (0, 5, 10, 15, 20))
    """

    name: str
    settings: tuple[Setting, ...]
    strategies: tuple[Contender, ...]
    title: str = ""
    rate: float | Literal["default"] | None = 1e-3
    samples: int | None = None
    queries: int = 80
    trials: int = 50
    metrics: tuple[str, ...] = ("squared_error", "posterior_trace")
    every: int = 1
    seed: int = 2019
    posterior: Posterior | None = None
    repeats: bool = False
    procedure_posterior: bool = True

    def __post_init__(self) -> None:
        single_line(self.name, "name")
        minimums = {"queries": 1, "trials": 1, "every": 1, "seed": 0} | ({} if self.samples is None else {"samples": 2})
        for name, minimum in minimums.items():
            object.__setattr__(self, name, whole(getattr(self, name), name, minimum))
        for name in ("repeats", "procedure_posterior"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(f"{name} is {getattr(self, name)!r}: give true or false", field=name)
        self._check_posterior()
        if self.rate is not None:
            rate = _checked_rate(self.rate, "rate")
            object.__setattr__(self, "rate", None if rate == "default" else rate)
        for name in ("settings", "strategies", "metrics"):
            value = tuple(getattr(self, name))
            if not value:
                raise InvalidParameter(f"{name} is empty: give at least one", field=name)
            object.__setattr__(self, name, value)
        for metric in self.metrics:
            one_of(metric, "metrics", MEASURES)
        for name in ("settings", "strategies"):
            labels = [part.label for part in getattr(self, name)]
            duplicate = next((label for label in labels if labels.count(label) > 1), None)
            if duplicate is not None:
                raise InvalidParameter(f"{name} has the label {duplicate!r} twice: use unique labels", field=name)

    def _check_posterior(self) -> None:
        if self.posterior is not None and self.samples is not None:
            raise InvalidParameter(
                f"samples is {self.samples} and posterior is {self.posterior!r}: give only one of them", field="samples"
            )
        _check_posterior(self.posterior, "posterior")

    @property
    def counts(self) -> tuple[int, ...]:
        """Answer counts at which measures are computed, in increasing order."""
        return tuple(sorted({*range(0, self.queries, self.every), self.queries}))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the strategies."""
        return tuple(contender.label for contender in self.strategies)

    def record(self) -> JSON:
        """Return the specification as plain data, which `read_record` reads back."""
        numbers = ("name", "title", "samples", "queries", "trials", "every", "seed")
        return {
            **{name: getattr(self, name) for name in numbers},
            "metrics": list(self.metrics),
            "rate": "default" if self.rate is None else self.rate,
            **({"repeats": True} if self.repeats else {}),
            **({} if self.procedure_posterior else {"procedure_posterior": False}),
            **({} if self.posterior is None else {"posterior": part_record("posterior", self.posterior)}),
            "settings": [_setting_record(setting) for setting in self.settings],
            "strategies": [_contender_record(contender) for contender in self.strategies],
        }

    def plan(self, items: tuple[Items | Space, ...]) -> RunPlan:
        """Return the plan of all trials, given the items from `load_items`."""
        groups = tuple(setting.label for setting in self.settings)
        return RunPlan(groups, self.labels, self.trials, self.record(), self.identity(items))

    def identity(self, items: tuple[Items | Space, ...]) -> str:
        """Return the SHA-256 hash of everything that a trial depends on, including the content of the items.

        The number of trials is left out, because trial i does not depend on it.
        """
        record = {"model": MODEL_VERSION, **self.record()}
        for name in ("name", "title", "trials"):
            record.pop(name, None)
        for setting, content in zip(record["settings"], items, strict=True):
            setting["data"] = content._fingerprint
        return digest(record)


def _checked_rate(value: object, name: str) -> float | Literal["default"]:
    if value == "default":
        return "default"
    if not is_number(value) or not 0 < float(value) <= 1:  # type: ignore[arg-type]
        raise InvalidParameter(
            f"{name} is {value!r}: give a fraction of all pairs, above 0 and at most 1, or 'default'", field=name
        )
    return float(value)  # type: ignore[arg-type]


def _check_posterior(posterior: Posterior | None, name: str) -> None:
    if posterior is not None and missing_members(posterior, ("infer",)):
        raise InvalidParameter(
            f"{name} is {posterior!r}, which lacks infer(): give a posterior such as EP()", field=name
        )


def _response_record(part: Truth) -> Any:
    if isinstance(part, str):
        return part
    if isinstance(part, Response):
        record = part_record("response", part)
        defaults = {"lapse": 0.0, "reliability": 1.0, "tie_width": 0.0, "curvature": 1.0}
        return {name: value for name, value in record.items() if defaults.get(name) != value}
    return {f.name: getattr(part, f.name) for f in fields(part) if getattr(part, f.name) is not None}


def _setting_record(setting: Setting) -> JSON:
    data = setting.data
    record: JSON = {"label": setting.label, "data": data if isinstance(data, str) else data._key}
    for name in ("dimension", "subsample"):
        if getattr(setting, name) is not None:
            record[name] = getattr(setting, name)
    record["scaled"] = setting.scaled
    record["prior"] = "items" if setting.prior is None else part_record("prior", setting.prior)
    record["response"], record["truth"] = _response_record(setting.response), _response_record(setting.truth)
    return record


def _contender_record(contender: Contender) -> JSON:
    record = {**strategy_record(contender.strategy), "label": contender.label}
    if contender.rate is not None:
        record["rate"] = contender.rate
    if contender.posterior is not None:
        record["posterior"] = part_record("posterior", contender.posterior)
    return record
