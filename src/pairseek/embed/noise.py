"""Maximum likelihood fit of the noise constant k.

A triplet is treated as the answer of a user at the anchor (section 4 of the paper): P(near rather than far) =
f(k_pq (|anchor - far|² - |anchor - near|²)), where p and q are near and far. Similarity judgements do not depend on
appeal, but answers of people with known points do: their logit has an offset of k_pq/k times the difference in
appeal.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, Event, FloatArray, IntArray
from pairseek.embed.noise_scale import ScaleLimit, best_scale, likelihood
from pairseek.embed.objective import distances
from pairseek.embed.triplets import Triplets, as_triplets
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.noise import NOISES
from pairseek.model.responses import RESPONSES, Response
from pairseek.numerics.compilation import compilation_notice


@dataclass(frozen=True)
class NoiseFit:
    """Maximum likelihood estimate of k for a response model with a kind of noise.

    Attributes
    ----------
    response
        The response model with the fitted k, for a `Search`.
    standard_error
        Standard error of k, from the curvature of the likelihood; infinite at a bound.
    log_likelihood
        Log-likelihood of all answers, in nats.
    count
        Number of answers; a tie counts as one.
    cross_validated
        Mean log-likelihood of held-out answers; NaN without folds.
    bound
        ``"infinity"`` or ``"zero"`` if the likelihood has no maximum, so k is the bound where the search stopped;
        ``"flat"`` if the likelihood does not depend on k; otherwise empty.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import fit_noise, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((30, 2)))
    >>> truth = ps.Logistic(1.0, "constant")
    >>> judgements = simulate_triplets(items, 2000, rng=0, response=truth)
    >>> fit = fit_noise(items, judgements, rng=0)["logistic", "constant"]
    >>> round(fit.k, 1), fit.count, fit.bound
    (1.0, 2000, '')
    >>> fit.standard_error < 0.1
    True
    """

    response: Response
    standard_error: float
    log_likelihood: float
    count: int
    cross_validated: float
    bound: ScaleLimit

    @property
    def k(self) -> float:
        """The noise constant."""
        return self.response.constant

    @property
    def mean_log_likelihood(self) -> float:
        """Mean log-likelihood of an answer, in nats; -0.693 for random answers."""
        return self.log_likelihood / self.count

    @property
    def note(self) -> str:
        """Warning about this k; empty if there is nothing to warn about."""
        if self.bound == "infinity":
            return (
                f"k runs to infinity, because no answer contradicts the items (the search stopped at {self.k:.3g}); "
                f"give more answers, or triplets that the embedding was not fitted to"
            )
        if self.bound == "flat":
            return (
                "the answers do not determine k, because every logit is zero for any k: the items of each pair have "
                "the same coordinates or, with decaying noise, are too far apart; scale the items first"
            )
        if self.bound == "zero":
            return (
                f"k runs to zero, because more answers contradict the items than agree (the search stopped at "
                f"{self.k:.3g}); check that the triplets are (anchor, near, far) and belong to these items"
            )
        return ""

    def record(self) -> JSON:
        """Return the fit as plain data; infinite and missing numbers are None."""
        finite = {
            "standard_error": self.standard_error,
            "log_likelihood": self.log_likelihood,
            "mean_log_likelihood": self.mean_log_likelihood,
            "cross_validated": self.cross_validated,
        }
        return {
            "response": self.response.name,
            "noise": self.response.noise,
            "k": self.k,
            **{name: value if math.isfinite(value) else None for name, value in finite.items()},
            "count": self.count,
            "note": self.note,
        }


@dataclass(frozen=True)
class NoiseFits:
    """Fits of several response models and kinds of noise, in order of likelihood.

    Attributes
    ----------
    fits
        The fits, by decreasing log-likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import fit_noise, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((30, 2)))
    >>> truth = ps.Logistic(1.0, "constant")
    >>> judgements = simulate_triplets(items, 2000, rng=0, response=truth)
    >>> fits = fit_noise(items, judgements, rng=0)
    >>> fits.best.response.noise
    'constant'
    >>> fits["logistic", "decaying"].log_likelihood < fits.best.log_likelihood
    True
    """

    fits: tuple[NoiseFit, ...]

    @property
    def best(self) -> NoiseFit:
        """The most likely fit; all have one parameter, so their likelihoods are comparable."""
        return self.fits[0]

    @property
    def response(self) -> Response:
        """The most likely response model, for a `Search`."""
        return self.best.response

    def __iter__(self) -> Iterator[NoiseFit]:
        return iter(self.fits)

    def __len__(self) -> int:
        return len(self.fits)

    def __getitem__(self, key: tuple[str, str]) -> NoiseFit:
        """Return the fit of a response and a noise, by their names: ``fits["logistic", "normalized"]``."""
        for fit in self.fits:
            if (fit.response.name, fit.response.noise) == key:
                return fit
        fitted = ", ".join(f"{fit.response.name} {fit.response.noise}" for fit in self.fits)
        raise InvalidParameter(f"{key!r} was not fitted: use one of {fitted}", field="key")

    def __str__(self) -> str:
        return "\n".join(
            f"{fit.response.name:9}{fit.response.noise:11} k = {fit.k:.4g} ± {fit.standard_error:.2g}, "
            f"mean log-likelihood {fit.mean_log_likelihood:.5f}{'; ' if fit.note else ''}{fit.note}"
            for fit in self.fits
        )


def fit_noise(
    items: Items,
    triplets: Triplets | npt.ArrayLike,
    *,
    responses: Sequence[Response] | None = None,
    folds: int | None = 5,
    start: float | None = None,
    rng: int | np.random.Generator = 0,
) -> NoiseFits:
    """Fit k to triplets, for logistic and probit responses with each kind of noise.

    Use triplets that the embedding was not fitted to: training triplets overestimate k.

    Parameters
    ----------
    items
        The embedding as scaled for the search; k depends on the scale.
    triplets
        `Triplets`, or an (m, 3) array of rows of the items.
    responses
        Response models to fit, such as ``[ps.Logistic(noise="normalized")]``; their k is ignored. None: every link with
        every kind of noise.
    folds
        Number of folds for the mean log-likelihood of held-out triplets. None: no cross-validation.
    start
        Starting value of k. The result does not depend on it.
    rng
        Seed or generator for the folds.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import fit_noise, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((30, 2)))
    >>> truth = ps.Logistic(1.0, "constant")
    >>> judgements = simulate_triplets(items, 2000, rng=0, response=truth)
    >>> response = fit_noise(items, judgements, rng=0).response
    >>> search = ps.Search(items, response=response, rng=7)
    """
    rows = _item_rows(items, triplets)
    near, far = distances(rows, items.coordinates)
    length = 2.0 * np.sqrt(distances(rows[:, [1, 2, 0]], items.coordinates)[0])
    evidence = _OrientedAnswers(far - near, length, np.zeros(len(rows)), np.ones(len(rows)), np.arange(len(rows)))
    return _fit_all(evidence, responses, folds, start, rng)


def fit_noise_to_answers(
    items: Items,
    answers: Iterable[tuple[npt.ArrayLike, Sequence[Event]]],
    *,
    responses: Sequence[Response] | None = None,
    folds: int | None = 5,
    start: float | None = None,
    rng: int | np.random.Generator = 0,
) -> NoiseFits:
    """Fit k to the answers of people whose points are known.

    Parameters
    ----------
    items
        The items of the queries.
    answers
        The (d,) point and the history of each person, ``(point, search.history)``. A tie counts as half an answer for
        each item; skips are ignored.
    responses, folds, start, rng
        As for `fit_noise`.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import fit_noise_to_answers
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((30, 2)))
    >>> person = ps.SimulatedUser([0.5, -0.5], ps.Logistic(1.0, "constant"), rng=0)
    >>> search = ps.Search(items, strategy=ps.Random(), stop=40, rng=7)
    >>> while not search.finished:
    ...     query = search.ask()
    ...     search.tell(query, winner=person.answer(items, query))
    >>> fits = fit_noise_to_answers(items, [(person.point, search.history)], folds=None)
    >>> fits["logistic", "constant"].count
    40
    """
    evidence = _orient_answers(items, answers)
    return _fit_all(evidence, responses, folds, start, rng)


@dataclass(frozen=True, eq=False)
class _OrientedAnswers:
    """Answers, oriented towards the winner.

    Attributes
    ----------
    margins
        (m,) |w - loser|² - |w - winner|².
    lengths
        (m,) |a|, twice the distance between the two items.
    offsets
        (m,) difference in appeal.
    weights
        (m,) weights: 1, or 1/2 for each half of a tie.
    answer_index
        (m,) index of the answer, which keeps both halves of a tie in the same fold.
    """

    margins: FloatArray
    lengths: FloatArray
    offsets: FloatArray
    weights: FloatArray
    answer_index: IntArray


def _item_rows(items: Items, triplets: Triplets | npt.ArrayLike) -> IntArray:
    if isinstance(triplets, Triplets):
        return triplets.among(items)
    return Triplets(as_triplets(triplets).rows, items.ids).rows


def _orient_answers(items: Items, answers: Iterable[tuple[npt.ArrayLike, Sequence[Event]]]) -> _OrientedAnswers:
    rows: list[tuple[FloatArray, int, int, float, int]] = []
    count = 0
    for person, (point, events) in enumerate(answers):
        location = np.asarray(point, dtype=np.float64)
        if location.shape != (items.d,) or not np.all(np.isfinite(location)):
            raise InvalidParameter(f"the point of person {person} is {point!r}: give {items.d} finite numbers")
        for event in events:
            if event.outcome == "skip":
                continue
            first, second = (event.left, event.right) if event.winner is None else (event.winner, event.loser)
            pair = items.index(first), items.index(second)
            halves = [pair] if event.winner is not None else [pair, pair[::-1]]
            rows += [(location, *half, 1.0 / len(halves), count) for half in halves]
            count += 1
    if not count:
        raise InvalidParameter("there are no answers to fit: give (point, search.history) for at least one person")
    locations, chosen, other, weights, answer_index = map(np.array, zip(*rows, strict=True))
    p, q = items.coordinates[chosen], items.coordinates[other]
    return _OrientedAnswers(
        ((locations - q) ** 2).sum(axis=1) - ((locations - p) ** 2).sum(axis=1),
        2.0 * np.sqrt(((p - q) ** 2).sum(axis=1)),
        items.appeal[chosen] - items.appeal[other],
        weights,
        answer_index,
    )


def _fit_all(
    evidence: _OrientedAnswers,
    responses: Sequence[Response] | None,
    folds: int | None,
    start: float | None,
    rng: int | np.random.Generator,
) -> NoiseFits:
    if responses is None:
        responses = [kind(noise=noise) for kind in RESPONSES.values() for noise in NOISES]
    if start is not None and not (math.isfinite(start) and start > 0):
        raise InvalidParameter(f"start is {start!r}: give a number above 0", field="start")
    count = int(evidence.answer_index[-1]) + 1
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2):
        raise InvalidParameter(f"folds is {folds!r}: give a whole number, at least 2, or None", field="folds")
    fold = None
    if folds is not None and count >= folds:
        fold = (np.random.default_rng(rng).permutation(count) % folds)[evidence.answer_index]
    with compilation_notice():
        best_scale(np.array([1.0, -1.0]), responses[0].link)
    fits = [_fit_response(evidence, response, count, fold, start) for response in responses]
    return NoiseFits(tuple(sorted(fits, key=lambda fit: -fit.log_likelihood)))


def _fit_response(
    evidence: _OrientedAnswers, response: Response, count: int, fold: IntArray | None, start: float | None
) -> NoiseFit:
    unit_constant = dataclasses.replace(response, k=1.0).pair_constant(evidence.lengths)
    units, offsets, link = unit_constant * evidence.margins, unit_constant * evidence.offsets, response.link
    scale = best_scale(units, link, offsets=offsets, weights=evidence.weights, start=start)
    cross_validated = math.nan
    if fold is not None:
        total = 0.0
        for held_out_fold in range(int(fold.max()) + 1):
            (fitted_units, fitted), (held_units, held) = (
                (units[rows], {"offsets": offsets[rows], "weights": evidence.weights[rows]})
                for rows in (fold != held_out_fold, fold == held_out_fold)
            )
            k = best_scale(fitted_units, link, **fitted, start=scale.k).k
            total += likelihood(k, held_units, link, **held)[0]
        cross_validated = total / count
    fitted_response = dataclasses.replace(response, k=scale.k)
    return NoiseFit(fitted_response, scale.standard_error, scale.log_likelihood, count, cross_validated, scale.bound)
