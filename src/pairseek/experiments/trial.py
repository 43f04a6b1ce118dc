"""A trial: a strategy's search for one simulated user, as a pure function of specification and task.

All strategies face the same users. A user has the same point for each strategy, and gives the same answer when a pair
is asked for the n-th time. Settings with equal priors share their users.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, Evidence, Query, Side
from pairseek.errors import Unsupported
from pairseek.experiments.measures import MEASURES, MeasurementContext
from pairseek.experiments.runs.plan import Outcome, Task
from pairseek.experiments.specification import ResponseSpec, Setting, Specification
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.sources import Rest, SampledPairs
from pairseek.pairs.strategies.base import Procedure, Utility
from pairseek.posteriors import EP, Particles, Posterior
from pairseek.posteriors.base import BasePosterior
from pairseek.search import Search
from pairseek.search.simulate import SimulatedUser

# Independent streams of random numbers within a trial.
_POINT_STREAM = 0
_ANSWERS_STREAM = 1
_SEARCH_STREAM = 2
_SUBSAMPLE_STREAM = 3
_BATCHES_STREAM = 4


def run_trial(specification: Specification, task: Task, items: Items | Space) -> Outcome:
    """Run one trial.

    Parameters
    ----------
    specification
        The experiment.
    task
        Indices of the setting (group), strategy (arm) and user (unit).
    items
        Items of the task's setting, from `load_items`.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender, Setting, Specification, Task, run_trial
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((20, 2)))
    >>> settings = (Setting(data=items, scaled=False, prior=None),)
    >>> strategies = (Contender(ps.InfoGain()),)
    >>> specification = Specification("tiny", settings, strategies, rate=None, queries=3)
    >>> outcome = run_trial(specification, Task(group=0, arm=0, unit=5), items)
    >>> outcome.asked, len(outcome.values)
    (3, 4)
    >>> run_trial(specification, outcome.task, items).values == outcome.values
    True
    """
    setting = specification.settings[task.group]
    seeds = (specification.seed, task.unit)
    items = _subsample(items, setting.subsample, (*seeds, _SUBSAMPLE_STREAM))
    search = _search(specification, task, items, _derive_seed(*seeds, _SEARCH_STREAM))
    has_posterior = not isinstance(search.posterior, _PriorAsPosterior)
    point = search.prior.sample(1, items.d, np.random.default_rng(np.random.SeedSequence([*seeds, _POINT_STREAM])))[0]
    user = _PairedUser(
        SimulatedUser(point, _true_response(setting, search.response), rng=_derive_seed(*seeds, _ANSWERS_STREAM)), items
    )
    measured_counts = set(specification.counts)
    values: list[tuple[float, ...]] = []
    seconds: list[float] = []
    search_seconds = 0.0
    for answers in range(specification.queries + 1):
        started = time.process_time()
        query = None if answers == 0 or search.finished else search.ask()
        search_seconds += time.process_time() - started
        if query is not None:
            winner = user.answer(query)
            search.tell(query, winner=winner, tie=winner is None)
        started = time.process_time()
        estimate = search.estimate()
        search_seconds += time.process_time() - started
        if answers in measured_counts:
            context = MeasurementContext(items, estimate, user.user.point, (*seeds, _BATCHES_STREAM))
            measures = [MEASURES[name] for name in specification.metrics]
            values.append(
                tuple(m.compute(context) if has_posterior or not m.of_posterior else math.nan for m in measures)
            )
            seconds.append(search_seconds)
    return Outcome(task, tuple(values), tuple(seconds), search.answers)


@dataclass(frozen=True)
class _PriorAsPosterior(BasePosterior):
    """The prior in place of the posterior, for procedures, which ask and estimate without a posterior."""

    name: ClassVar[str] = "not_inferred"
    infers_reliability: ClassVar[bool] = True
    takes_lapses: ClassVar[bool] = True
    takes_residuals: ClassVar[bool] = True
    uses_kernels: ClassVar[bool] = True

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief before any answer."""
        nothing = Evidence(evidence.slopes[:0], evidence.offsets[:0], evidence.decided[:0])
        return EP().infer(nothing, prior, response)


class _PairedUser:
    """A simulated user with a count of how often each pair was asked."""

    def __init__(self, user: SimulatedUser, items: Items | Space) -> None:
        self.user = user
        self._items = items
        self._asked: dict[frozenset[Side], int] = {}

    def answer(self, query: Query) -> Side | None:
        pair = frozenset((query.left, query.right))
        repeat = self._asked.get(pair, 0)
        self._asked[pair] = repeat + 1
        return self.user.answer(self._items, query, repeat=repeat)


def _derive_seed(*key: int) -> int:
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _search(specification: Specification, task: Task, items: Items | Space, seed: int) -> Search:
    setting, contender = specification.settings[task.group], specification.strategies[task.arm]
    rate = specification.rate if contender.rate is None else contender.rate
    sampled_pairs = None if rate is None or rate == "default" else SampledPairs(rate=rate)
    scores_pairs = isinstance(items, Items) and isinstance(contender.strategy, Utility)
    posterior: Posterior | None = specification.posterior
    if specification.samples is not None:
        posterior = Particles(specification.samples)
    if contender.posterior is not None:
        posterior = contender.posterior
    if isinstance(contender.strategy, Procedure) and not specification.procedure_posterior:
        posterior = _PriorAsPosterior()
    return Search(
        items,
        response=setting.response_model(items.d),
        prior=setting.prior,
        posterior=posterior,
        strategy=contender.strategy,
        candidates=sampled_pairs if scores_pairs else None,
        rest=Rest(pair=0) if scores_pairs and specification.repeats else None,
        rng=seed,
    )


def _true_response(setting: Setting, matched: Response) -> Response | None:
    if isinstance(setting.truth, Response):
        return setting.truth
    if isinstance(setting.truth, ResponseSpec):
        return setting.truth.response(setting.dimension)
    return matched if setting.truth == "matched" else None


def _subsample(items: Items | Space, count: int | None, key: tuple[int, ...]) -> Items | Space:
    if count is None or count >= len(items.coordinates):
        return items
    catalogue = items._require_catalogue(Unsupported("a continuous Space has no items"))
    rows = np.sort(np.random.default_rng(np.random.SeedSequence(key)).choice(catalogue.n, size=count, replace=False))
    ids = [catalogue.ids[row] for row in rows]
    return Items._without_warnings(catalogue.coordinates[rows], ids, appeal=catalogue.appeal[rows])
