"""Base class of triplet embeddings, with the interface of a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from pairseek.core.text import quoted
from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import whole
from pairseek.embed.noise_scale import best_scale
from pairseek.embed.objective import Objective, distances, padded
from pairseek.embed.shrinkage_path import PathSettings, PathStep, descend, fit_at
from pairseek.embed.triplets import Triplets, as_triplets
from pairseek.errors import InvalidItems, InvalidParameter, InvalidTriplets, MissingExtra
from pairseek.model.items import Items
from pairseek.model.metrics import triplet_error
from pairseek.numerics.compilation import compilation_notice


@dataclass(frozen=True)
class FitProgress:
    """A step of the optimiser.

    Attributes
    ----------
    stage
        ``"path"`` while the shrinkage decreases, ``"all triplets"`` in the final fit.
    shrinkage
        Current λ.
    iteration
        Number of the step at this shrinkage.
    loss
        Mean objective over the triplets.
    validation_loss
        Validation loss of the last completed shrinkage; NaN before the first.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import STE, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> steps = []
    >>> method = STE(random_state=0, progress=steps.append)
    >>> embedding = method.fit(simulate_triplets(items, 200, rng=0))
    >>> steps[0].stage, steps[-1].stage
    ('path', 'all triplets')
    """

    stage: str
    shrinkage: float
    iteration: int
    loss: float
    validation_loss: float

    def __str__(self) -> str:
        held = "" if self.validation_loss != self.validation_loss else f", held out {self.validation_loss:.4f}"
        return f"{self.stage}: shrinkage {self.shrinkage:.3g}, step {self.iteration}, loss {self.loss:.4f}{held}"


@contextlib.contextmanager
def reporting(
    progress: bool | Callable[[FitProgress], None],  # noqa: FBT001 - the public parameter of the embedding
) -> Iterator[Callable[[FitProgress], None]]:
    """Yield a function that receives progress: the caller's, one that updates a bar, or one that does nothing."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        raise MissingExtra("a progress bar", "cli") from None
    console = Console(stderr=True)
    columns = (BarColumn(bar_width=12), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step: bar.update(task, description=str(step))


# Fits along the path only provide starting points, so their tolerance is larger by this factor.
_PATH_TOLERANCE_FACTOR = 10.0


@dataclass(kw_only=True, eq=False)
class TripletEmbedding:
    """Base class of embeddings that place similar items close together: settings and results of all methods.

    Parameters
    ----------
    n_components
        Number of dimensions.
    shrinkage
        λ, weight of the sum of squared coordinates in the objective; larger values suppress noise. None: halve it until
        the validation loss stops decreasing.
    validation
        Fraction of triplets held out to choose the shrinkage. The final fit uses all triplets.
    n_init
        Number of starts: one spectral, the others random. The one with the lowest objective continues.
    max_iter, tol
        Maximum number of optimiser steps at each shrinkage, and relative decrease at which the optimiser stops (ten
        times as large along the path).
    unseen
        How to treat items that occur in no triplet: ``"refuse"`` them, or place them at the ``"mean"``.
    random_state
        Seed or generator. Equal seeds give bit-identical results on any number of threads.
    progress
        True for a progress bar on standard error, or a function that receives each `FitProgress`.

    Attributes
    ----------
    embedding_
        (n, d) coordinates, centred and rotated to their principal axes.
    ids_
        Ids of the items, in the order of the coordinates.
    shrinkage_
        λ of the final fit.
    path_
        A `PathStep` for each shrinkage along the path.
    validation_error_
        Fraction of validation triplets violated before the final fit; NaN without any.
    loss_
        Mean loss of all triplets in the final fit.
    n_iter_
        Total number of optimiser steps.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import CKL, TripletEmbedding, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> triplets = simulate_triplets(items, 400, rng=0)
    >>> embedding = CKL(n_components=2, random_state=0).fit(triplets)
    >>> isinstance(embedding, TripletEmbedding), embedding.embedding_.shape
    (True, (12, 2))
    >>> embedding.get_params()["n_init"]
    3
    """

    n_components: int = 2
    shrinkage: float | None = None
    validation: float = 0.1
    n_init: int = 3
    max_iter: int = 500
    tol: float = 1e-6
    unseen: Literal["refuse", "mean"] = "refuse"
    random_state: int | np.random.Generator | None = None
    progress: bool | Callable[[FitProgress], None] = False

    name: ClassVar[str] = ""
    kind: ClassVar[int] = 0

    embedding_: FloatArray = dataclasses.field(init=False, repr=False)
    ids_: tuple[ItemId, ...] = dataclasses.field(init=False, repr=False)
    shrinkage_: float = dataclasses.field(init=False, repr=False)
    path_: tuple[PathStep, ...] = dataclasses.field(init=False, repr=False)
    validation_error_: float = dataclasses.field(init=False, repr=False)
    loss_: float = dataclasses.field(init=False, repr=False)
    n_iter_: int = dataclasses.field(init=False, repr=False)

    # Hooks for subclasses

    def _parameter(self) -> float:
        """Return the parameter of the loss, μ or α."""
        return 0.0

    def _unit(self) -> float:
        """Return the unit of length of the method."""
        return 1.0

    def _logits(self, near: FloatArray, far: FloatArray) -> FloatArray:
        """Return the log odds of triplets, given their squared distances."""
        return far - near

    # Interface of a scikit-learn estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - as in scikit-learn
        """Return the settings by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    def set_params(self, **params: object) -> Self:
        """Change settings by name."""
        settings = self.get_params()
        for name, value in params.items():
            if name not in settings:
                raise InvalidParameter(
                    f"{type(self).__name__} has no setting {name!r}: use one of {', '.join(settings)}"
                )
            setattr(self, name, value)
        return self

    def fit(self, X: Triplets | npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Fit the embedding.

        Parameters
        ----------
        X
            `Triplets`, an (m, 3) array of rows (anchor, near, far), or cblearn's ordered lists.
        y
            cblearn's responses to such lists, 1 or -1. None: all lists are in order.
        """
        triplets = as_triplets(X, y)
        self._check(triplets)
        rng = np.random.default_rng(self.random_state)
        # Compile on a single triplet, or a long fit would be reported as a long compilation.
        with compilation_notice():
            rows = triplets.rows[:1]
            points = padded(np.zeros((triplets.n, self.n_components)))
            Objective(rows, triplets.n, self.kind, self._parameter())(points)
            self._validation_loss_and_error(rows, points)
        with reporting(self.progress) as report:
            points = self._learn(triplets, rng, report)
        self.embedding_ = _principal(points)
        self.ids_ = triplets.ids
        return self

    def fit_transform(self, X: Triplets | npt.ArrayLike, y: npt.ArrayLike | None = None) -> FloatArray:
        """Fit the embedding and return its (n, d) coordinates."""
        return self.fit(X, y).embedding_

    def score(self, X: Triplets | npt.ArrayLike, y: npt.ArrayLike | None = None) -> float:
        """Return the fraction of triplets that the embedding satisfies; equal distances count half."""
        self._require_fitted()
        rows = as_triplets(X, y).among(self.ids_) if isinstance(X, Triplets) else as_triplets(X, y).rows
        return 1.0 - triplet_error(self.embedding_, rows)

    def to_items(self, *, scaled: bool = False, labels: Sequence[str] | None = None) -> Items:
        """Return the embedding as `Items` for a `Search`."""
        self._require_fitted()
        items = Items._without_warnings(self.embedding_, self.ids_, labels)
        return items.scaled() if scaled else items

    # Optimisation

    def _learn(self, triplets: Triplets, rng: np.random.Generator, report: Callable[[FitProgress], None]) -> FloatArray:
        n, d = triplets.n, self.n_components
        training_rows, held_out_rows = triplets.rows, np.empty((0, 3), dtype=np.int64)
        if self.validation > 0 and len(triplets) > 1:
            training, held_out = triplets.split(self.validation, rng)
            training_rows, held_out_rows = training.rows, held_out.rows
        stage = "path"
        validation_loss = np.nan

        def report_step(shrinkage: float, iteration: int, loss: float) -> None:
            report(FitProgress(stage, shrinkage, iteration, loss, validation_loss))

        def validate(points: FloatArray) -> tuple[float, float]:
            nonlocal validation_loss
            validation_loss, error = self._validation_loss_and_error(held_out_rows, points)
            return validation_loss, error

        settings = PathSettings(
            d, self._unit(), self.n_init, _PATH_TOLERANCE_FACTOR * self.tol, self.max_iter, report_step
        )
        objective = Objective(training_rows, n, self.kind, self._parameter())
        points, shrinkage, steps = descend(objective, n, settings, rng, shrinkage=self.shrinkage, validate=validate)
        self.validation_error_ = next(step.validation_error for step in steps if step.shrinkage == shrinkage)
        stage = "all triplets"
        objective = Objective(triplets.rows, n, self.kind, self._parameter()) if len(held_out_rows) else objective
        fit = fit_at(objective, points, shrinkage, dataclasses.replace(settings, tolerance=self.tol))
        self.shrinkage_, self.path_ = shrinkage, tuple(steps)
        self.loss_ = objective(fit.point)[0] / len(objective)
        self.n_iter_ = fit.iterations + sum(step.iterations for step in steps)
        return fit.point[:, :d]

    def _validation_loss_and_error(self, held_out_rows: IntArray, points: FloatArray) -> tuple[float, float]:
        # Rescale first: shrinkage reduces all distances, which the noise constant compensates for later.
        if not len(held_out_rows):
            return np.nan, np.nan
        logits = self._logits(*distances(held_out_rows, points))
        return -best_scale(logits, 0).log_likelihood / len(held_out_rows), triplet_error(points, held_out_rows)

    def _require_fitted(self) -> None:
        if not hasattr(self, "embedding_"):
            raise InvalidParameter(f"this {type(self).__name__} is not fitted yet: call fit first")

    def _check(self, triplets: Triplets) -> None:
        d = self.n_components
        for name, value, minimum in (
            ("n_components", d, 1),
            ("n_init", self.n_init, 1),
            ("max_iter", self.max_iter, 1),
        ):
            whole(value, name, minimum)
        if not 0 <= self.validation < 1:
            raise InvalidParameter(
                f"validation is {self.validation!r}: give a fraction from 0 to below 1", field="validation"
            )
        if not 0 < self.tol < 1:
            raise InvalidParameter(f"tol is {self.tol!r}: give a number between 0 and 1", field="tol")
        if self.shrinkage is None and (self.validation == 0 or len(triplets) < 2):
            raise InvalidParameter(
                "shrinkage is None and no triplets are held out to choose it: give shrinkage, or validation above 0",
                field="shrinkage",
            )
        if self.shrinkage is not None and not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise InvalidParameter(
                f"shrinkage is {self.shrinkage!r}: give a number, at least 0, or None", field="shrinkage"
            )
        if self.unseen not in ("refuse", "mean"):
            raise InvalidParameter(f"unseen is {self.unseen!r}: use 'refuse' or 'mean'", field="unseen")
        if triplets.n < d + 2:
            raise InvalidItems(
                f"{triplets.n} items for {d} dimensions: an embedding needs at least {d + 2}; use fewer dimensions"
            )
        missing = triplets.unseen
        if missing and self.unseen == "refuse":
            raise InvalidTriplets(
                f"{len(missing)} of {triplets.n} items are in no triplet: {quoted(missing)}; leave them out, or "
                f"place them at the mean with unseen='mean'"
            )


def _principal(points: FloatArray) -> FloatArray:
    """Centre and rotate to the principal axes, widest first; the largest coordinate along each axis is positive."""
    centred = points - points.mean(axis=0)
    _, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", centred, centred))
    rotated = np.einsum("ni,ij->nj", centred, vectors[:, ::-1])
    signs = np.sign(rotated[np.abs(rotated).argmax(axis=0), np.arange(rotated.shape[1])])
    return np.ascontiguousarray(rotated * np.where(signs == 0, 1.0, signs))
