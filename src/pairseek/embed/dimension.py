"""Choice of the number of dimensions by cross-validation with the one-standard-error rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, FloatArray
from pairseek.embed.base import TripletEmbedding
from pairseek.embed.methods import CKL
from pairseek.embed.triplets import Triplets, as_triplets
from pairseek.errors import InvalidFile, InvalidItems, InvalidParameter
from pairseek.experiments.figure_style import INK, canvas, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DIMENSIONS = (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True, eq=False)
class DimensionChoice:
    """Cross-validated triplet error against the number of dimensions.

    Attributes
    ----------
    dimensions
        Candidate numbers of dimensions, in increasing order.
    errors
        (dimensions, folds) triplet error on the held-out fold.
    method
        Name of the method.
    count
        Number of triplets.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import choose_dimension, simulate_triplets
    >>> line = ps.Items(np.linspace(0.0, 1.0, 10)[:, None])
    >>> choice = choose_dimension(simulate_triplets(line, 600, rng=0), (1, 2), folds=2, rng=0)
    >>> choice.chosen, choice.errors.shape
    (1, (2, 2))
    >>> print(choice)
    d = 1   triplet error 0.0... ± 0.0...  chosen
    d = 2   triplet error 0.0... ± 0.0...
    """

    dimensions: tuple[int, ...]
    errors: FloatArray
    method: str
    count: int

    @property
    def mean(self) -> FloatArray:
        """(dimensions,) mean error over the folds."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """(dimensions,) standard error of the mean.

        This is the larger of the standard error between folds and the binomial standard error. A few folds may agree by
        chance, which would make the one-standard-error rule too strict.
        """
        between = self.errors.std(axis=1, ddof=1) / np.sqrt(self.errors.shape[1])
        return np.asarray(np.maximum(between, np.sqrt(self.mean * (1.0 - self.mean) / self.count)))

    @property
    def lowest(self) -> int:
        """Number of dimensions with the lowest error."""
        return self.dimensions[int(self.mean.argmin())]

    @property
    def chosen(self) -> int:
        """Smallest number of dimensions with an error within one standard error of the lowest."""
        best = int(self.mean.argmin())
        within = self.mean <= self.mean[best] + self.standard_error[best]
        return self.dimensions[int(within.argmax())]

    def __str__(self) -> str:
        lines = [
            f"d = {d:<3} triplet error {mean:.4f} ± {error:.4f}{'  chosen' if d == self.chosen else ''}"
            for d, mean, error in zip(self.dimensions, self.mean, self.standard_error, strict=True)
        ]
        return "\n".join(lines)

    def record(self) -> JSON:
        """Return the choice as plain data."""
        return {
            "method": self.method,
            "dimensions": list(self.dimensions),
            "triplet_error": self.mean.tolist(),
            "standard_error": self.standard_error.tolist(),
            "triplets": self.count,
            "folds": self.errors.shape[1],
            "lowest": self.lowest,
            "chosen": self.chosen,
        }

    def plot(self, path: str | Path) -> Path:
        """Draw the error against the dimension, as in the paper's figure of the triplet error fraction."""
        return write_dimensions(self, Path(path))


def choose_dimension(
    triplets: Triplets | npt.ArrayLike,
    dimensions: Iterable[int] = DIMENSIONS,
    *,
    method: TripletEmbedding | None = None,
    folds: int = 5,
    rng: int | np.random.Generator = 0,
    progress: Callable[[int, int, float], None] | None = None,
) -> DimensionChoice:
    """Choose the number of dimensions by cross-validated triplet error.

    Parameters
    ----------
    triplets
        `Triplets`, or an (m, 3) array.
    dimensions
        Candidate numbers of dimensions.
    method
        Embedding method, such as ``STE(tol=1e-4)``; its n_components is ignored. None: `CKL`.
    folds
        Number of folds, shared by all dimensions.
    rng
        Seed or generator for the folds and the fits.
    progress
        Function called after each fit with dimension, fold and error.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import STE, choose_dimension, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> triplets = simulate_triplets(items, 400, rng=0)
    >>> choose_dimension(triplets, (1, 2), method=STE(tol=1e-4), folds=2, rng=0).chosen
    2
    """
    data = as_triplets(triplets)
    candidates = tuple(sorted(set(dimensions)))
    if not candidates or any(isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1 for d in candidates):
        raise InvalidParameter(f"dimensions are {candidates!r}: give whole numbers, at least 1", field="dimensions")
    if data.n < candidates[-1] + 2:
        raise InvalidItems(f"{data.n} items for {candidates[-1]} dimensions: try at most {data.n - 2}")
    base = CKL() if method is None else method
    # Items only in the held-out fold are placed at the mean, and count towards its error.
    settings = {**base.get_params(), "unseen": "mean"}
    generator = np.random.default_rng(rng)
    seed = int(generator.integers(2**63))
    errors = np.empty((len(candidates), folds))
    for column, (fitted, held) in enumerate(data.folds(folds, generator)):
        for row, d in enumerate(candidates):
            embedding = type(base)(**{**settings, "n_components": int(d), "random_state": seed})
            errors[row, column] = 1.0 - embedding.fit(fitted).score(held)
            if progress is not None:
                progress(int(d), column, float(errors[row, column]))
    return DimensionChoice(tuple(int(d) for d in candidates), errors, base.name, len(data))


_CHOSEN_COLOUR = "#D55E00"


def write_dimensions(choice: DimensionChoice, path: Path) -> Path:
    """Draw the triplet error against dimension, with standard errors and the chosen dimension."""
    with drawing():
        figure, (axes,) = canvas(6.6, 3.4)
        mean, error = choice.mean, choice.standard_error
        axes.errorbar(choice.dimensions, mean, error, color=INK, marker="o", markersize=5, linewidth=1.5, capsize=3)
        best = int(mean.argmin())
        level = float(mean[best] + error[best])
        axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
        position = choice.dimensions.index(choice.chosen)
        axes.plot(
            [choice.chosen],
            [mean[position]],
            color=_CHOSEN_COLOUR,
            marker="o",
            markersize=11,
            fillstyle="none",
            markeredgewidth=2,
            linestyle="none",
            label=f"chosen: d = {choice.chosen}",
        )
        axes.annotate(
            "lowest + one standard error",
            (choice.dimensions[-1], level),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        axes.set_xticks(choice.dimensions)
        axes.set_xlabel("dimension")
        axes.set_ylabel("triplet error fraction")
        axes.set_title(f"{choice.method.upper()}, {choice.errors.shape[1]} folds: held-out triplets violated")
        axes.legend(loc="upper right")
        return save_figure(figure, path)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format that the file suffix names."""
    try:
        figure.savefig(path, dpi=160)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"cannot write the figure {path}: {error}") from error
    return path
