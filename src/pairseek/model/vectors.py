"""Dimension reduction: linear maps from vectors to coordinates, and the number of dimensions worth keeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from pairseek.core.lazy import LazyModule
from pairseek.core.types import JSON, FloatArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidFile, InvalidItems, InvalidParameter
from pairseek.numerics.covariances import CHUNK_ROWS, chunks, principal_axes

if TYPE_CHECKING:
    from pairseek.core import files
else:
    files = LazyModule("pairseek.core.files")  # few maps are saved

DEFAULT_ANSWERS = 10
"""Number of answers that ``dimension="auto"`` assumes."""
AXES_PER_ANSWER = 3
"""Axes that ``dimension="auto"`` keeps for each answer.

The prior shrinks axes that the answers do not resolve. Without them, items that differ only along them would count as
the same.
"""
MAX_EXPLAINED_VARIANCE = 0.95
"""Fraction of the variance beyond which further axes are dropped."""
MAX_COORDINATES = 64
"""Largest number of coordinates without a `DimensionWarning`."""
# Columns count as having different units if the largest deviation is more than _MAX_MEDIAN_RATIO times the median or,
# in a table of at most _MAX_TABLE_COLUMNS columns (which probably mean something each), more than _MAX_RATIO times the
# smallest.
_MAX_MEDIAN_RATIO = 10.0
_MAX_RATIO = 20.0
_MAX_TABLE_COLUMNS = 32
# Number of rows from which the warning estimates how many axes matter.
_WARNING_SAMPLE_ROWS = 2000

Standardize: TypeAlias = bool | Literal["auto"]


@dataclass(frozen=True, eq=False)
class VectorMap:
    """Linear map from vectors to coordinates: ``(vectors - centre) @ axes + offset``.

    Attributes
    ----------
    centre
        (D,) point mapped to `offset`.
    axes
        (D, d) directions, scaled to the units of the coordinates.
    provenance
        How the map was made: vectors, variances, and the reason for the number of dimensions.
    offset
        (d,) coordinates of the centre; zeros if None.

    Examples
    --------
    >>> import pairseek as ps
    >>> keep_first = ps.VectorMap([0.0, 0.0, 0.0], [[1.0], [0.0], [0.0]])
    >>> keep_first.place([[5.0, 6.0, 7.0]]).tolist()
    [[5.0]]
    """

    centre: FloatArray
    axes: FloatArray
    provenance: JSON = field(default_factory=dict, repr=False)
    offset: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("centre", "axes", "offset"):
            value = getattr(self, name)
            array = np.array(np.zeros(np.shape(self.axes)[-1]) if value is None else value, dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        shapes = self.axes.ndim, self.centre.shape, np.asarray(self.offset).shape
        if shapes != (2, self.axes.shape[:1], self.axes.shape[1:]):
            raise InvalidParameter(
                f"centre has shape {shapes[1]}, axes {self.axes.shape} and offset {shapes[2]}: give (D,), (D, d) and "
                f"(d,)"
            )

    def __repr__(self) -> str:
        return f"VectorMap({len(self.centre)} to {self.axes.shape[1]} dimensions)"

    def place(self, vectors: object, ids: Sequence[object] | None = None) -> FloatArray:
        """Return the (n, d) coordinates of (n, D) vectors; no row depends on any other vector."""
        array = checked_vectors(vectors, ids, length=len(self.centre))
        # einsum, because the last bits of matrix products depend on the number of rows and threads.
        parts = [np.einsum("nD,Dd->nd", rows - self.centre, self.axes) for rows in chunks(array)]
        return np.concatenate(parts) + self.offset

    def save(self, path: str | Path) -> None:
        """Write the map to a JSON file with a checksum, atomically."""
        files.write(path, self.record(), files.VECTOR_MAP_FILE)

    def record(self) -> JSON:
        """Return the map as plain data."""
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "axes", "offset")}
        return {**arrays, "provenance": self.provenance}

    @classmethod
    def from_record(cls, record: JSON) -> Self:
        """Return the map written by `record`."""
        return cls(record["centre"], record["axes"], record["provenance"], record["offset"])

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a map written by `save`."""
        record = files.read(path, files.VECTOR_MAP_FILE)
        try:
            return cls.from_record(record)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(f"{path} is not a valid vector map: {error!r}; the file is unchanged") from error


def checked_vectors(
    vectors: object, ids: Sequence[object] | None = None, *, length: int | None = None
) -> npt.NDArray[Any]:
    """Return vectors as an (n, D) array after checking for finite real numbers; errors name the item."""
    try:
        array = np.asarray(vectors)
        if array.dtype.kind == "c":
            raise TypeError("they are complex")
        if array.dtype.kind not in "fiub":
            array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        reason = _length_mismatch(vectors, ids) or error
        raise InvalidItems(f"the vectors do not form a table of numbers ({reason}): give n rows of D numbers") from None
    if array.ndim != 2:
        raise InvalidItems(f"the vectors have {array.ndim} axes, shape {array.shape}: give an (n, D) array")
    if length is not None and array.shape[1] != length:
        raise InvalidItems(
            f"the vectors have {array.shape[1]} components but the map takes {length}: give vectors of the same model"
        )
    for start, rows in zip(range(0, len(array), CHUNK_ROWS), chunks(array), strict=True):
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0] + np.array([start, 0])
            name = f"item {row}" if ids is None or len(ids) != len(array) else f"item {ids[row]!r}"
            raise InvalidItems(
                f"component {column} of the vector of {name} is {array[row, column]}: remove the item, or recompute "
                f"its vector"
            )
    return array


def _length_mismatch(vectors: object, ids: Sequence[object] | None) -> str | None:
    """Describe the first vector whose length differs from the length of vector 0."""
    try:
        lengths = [len(vector) for vector in vectors]  # type: ignore[attr-defined]
    except TypeError:
        return None
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            name = row if ids is None or len(ids) != len(lengths) else repr(ids[row])
            return f"the vector of item {name} has {length} components but the first has {lengths[0]}"
    return None


def principal_map(
    vectors: object,
    *,
    dimension: int | Literal["auto"] = "auto",
    answers: int = DEFAULT_ANSWERS,
    standardize: Standardize = "auto",
    ids: Sequence[object] | None = None,
) -> VectorMap:
    """Return the map from vectors to their principal axes, with coordinates of mean variance 1.

    Parameters
    ----------
    vectors
        (n, D) finite numbers.
    dimension
        Number of axes. ``"auto"``: three for each answer, but no more than 64, or than it takes to explain 95 % of the
        variance.
    answers
        Intended number of answers.
    standardize
        Whether to divide each column by its standard deviation. ``"auto"``: if the columns have different units.
    ids
        Ids of the items, for error messages.
    """
    array = checked_vectors(vectors, ids)
    n, length = array.shape
    if n < 2:
        raise InvalidItems(f"there {'is 1 vector' if n == 1 else 'are no vectors'}: a pair needs at least 2")
    if not length:
        raise InvalidItems(f"the {n} vectors are empty: give at least one number each")
    answers = whole(answers, "answers", field="answers")
    with np.errstate(over="ignore", invalid="ignore"):
        centre = sum(rows.sum(axis=0) for rows in chunks(array)) / n
        deviations = np.sqrt(sum(((rows - centre) ** 2).sum(axis=0) for rows in chunks(array)) / (n - 1))
    if not np.all(np.isfinite(deviations)):
        raise InvalidItems("the squares of the vectors overflow double precision: rescale the vectors")
    # Rounding of the mean can give constant columns a small deviation.
    deviations[deviations <= 1e-12 * np.abs(centre)] = 0.0
    if not np.any(deviations > 0):
        raise InvalidItems(f"all {n} vectors are the same: no pair would be informative")
    is_standardized = _has_mixed_units(deviations) if standardize == "auto" else standardize
    if not isinstance(is_standardized, bool):
        raise InvalidParameter(f"standardize is {standardize!r}: give True, False or 'auto'", field="standardize")
    unit = np.where(deviations > 0, deviations, np.inf) if is_standardized else np.where(deviations > 0, 1.0, np.inf)
    values, directions = principal_axes(array, centre, unit)
    rank = int(np.sum(values > 1e-12 * values[0]))
    fractions = values / values.sum()
    largest = min(AXES_PER_ANSWER * answers, MAX_COORDINATES)
    needed = min(int(np.searchsorted(np.cumsum(fractions), MAX_EXPLAINED_VARIANCE)) + 1, rank)
    d = min(largest, needed) if dimension == "auto" else _checked_dimension(dimension)
    if d > rank:
        raise InvalidParameter(
            f"dimension is {d} but the vectors vary along {rank} directions: give at most {rank}", field="dimension"
        )
    axes = directions[:, :d] / unit[:, None]
    # Rounded to single precision, which is still finer than the vectors are accurate, so that machines that round
    # differently give the same map.
    axes = (axes / np.sqrt(values[:d].mean())).astype(np.float32).astype(np.float64)
    provenance: JSON = {
        "vectors": {"n": n, "length": length},
        "standardized": is_standardized,
        "directions": rank,
        "dimension": d,
        "chosen": dimension == "auto",
        "answers": answers,
        "needed_for_95_percent": needed,
        "variance_kept": float(fractions[:d].sum()),
        "variances": [float(fraction) for fraction in fractions[: max(d, 16)]],
    }
    return VectorMap(centre, axes, provenance)


def _checked_dimension(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidParameter(f"dimension is {value!r}: give a whole number, at least 1, or 'auto'", field="dimension")
    return int(value)


def _has_mixed_units(deviations: FloatArray) -> bool:
    """Return whether columns with these deviations seem to have different units, so that one would dominate."""
    varying = deviations[deviations > 0]
    widest = varying.max()
    is_table = len(deviations) <= _MAX_TABLE_COLUMNS
    return bool(widest > _MAX_MEDIAN_RATIO * np.median(varying) or (is_table and widest > _MAX_RATIO * varying.min()))


def dimension_note(coordinates: FloatArray) -> str | None:
    """Return a warning if there are more than `MAX_COORDINATES` coordinates, else None."""
    n, d = coordinates.shape
    if d <= MAX_COORDINATES:
        return None
    subsample = coordinates if n <= _WARNING_SAMPLE_ROWS else coordinates[:: -(-n // _WARNING_SAMPLE_ROWS)]
    provenance = principal_map(subsample).provenance
    dimension, percent = provenance["dimension"], 100 * provenance["variance_kept"]
    return (
        f"the items have {d} coordinates, and {dimension} principal axes explain {percent:.0f} % of the variance. The "
        f"search works, but slowly: use ps.Items.from_vectors(vectors), which keeps {dimension} for {DEFAULT_ANSWERS} "
        f"answers, or choose another number with dimension=..."
    )
