"""Maps of high-dimensional vectors to a few coordinates, and the number of coordinates that answers can resolve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from pairseek.core import files
from pairseek.core.types import JSON, FloatArray
from pairseek.errors import InvalidFile, InvalidItems, InvalidParameter
from pairseek.numerics.covariances import CHUNK, chunks, principal_axes

KIND = files.FileFormat("pairseek vector map", 1, "a map of vectors")
ANSWERS = 10
"""Number of answers for which ``dimension="auto"`` chooses."""
BITS = 1.0
"""Most information that one answer can tell, in bits."""
VARIANCE = 0.95
"""Share of the variance beyond which further axes are not kept."""
MOST_BY_HAND = 64
"""Largest number of coordinates that are accepted without a `DimensionWarning`."""
# Columns are of different units if the widest has so many deviations of the median column, or, in a table of few
# columns of which each has a meaning, of the narrowest.
_WIDE, _UNEVEN, _TABLE = 10.0, 20.0, 32
# Rows that suffice for a warning.
_SAMPLE = 2000

Standardize: TypeAlias = bool | Literal["auto"]


@dataclass(frozen=True, eq=False)
class VectorMap:
    """A linear map of vectors to coordinates: ``(vectors - centre) @ axes + offset``.

    Attributes
    ----------
    centre
        (D,) point that is mapped to 0.
    axes
        (D, d) directions, with the scale of the coordinates.
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
                f"a VectorMap has a centre of shape {self.centre.shape} and axes of shape {self.axes.shape}: give "
                f"(D,) and (D, d)"
            )

    def __repr__(self) -> str:
        return f"VectorMap({len(self.centre)} to {self.axes.shape[1]} dimensions)"

    def place(self, vectors: object, ids: Sequence[object] | None = None) -> FloatArray:
        """Return the (n, d) coordinates of (n, D) vectors, each of which depends on its own vector alone."""
        array = checked_vectors(vectors, ids, length=len(self.centre))
        # einsum, because the last digits of matrix products depend on the number of rows and of threads.
        parts = [np.einsum("nD,Dd->nd", rows - self.centre, self.axes) for rows in chunks(array)]
        return np.concatenate(parts) + self.offset

    def save(self, path: str | Path) -> None:
        """Write the map to a JSON file with a checksum, atomically."""
        files.write(path, self.record(), KIND)

    def record(self) -> JSON:
        """Return the map as plain data."""
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "axes", "offset")}
        return {**arrays, "provenance": self.provenance}

    @classmethod
    def from_record(cls, record: JSON) -> Self:
        """Return the map that `record` described."""
        return cls(record["centre"], record["axes"], record["provenance"], record["offset"])

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a map that `save` wrote."""
        record = files.read(path, KIND)
        try:
            return cls.from_record(record)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(f"{path} is not a valid map of vectors: {error!r}; the file was not changed") from error


def checked_vectors(
    vectors: object, ids: Sequence[object] | None = None, *, length: int | None = None
) -> npt.NDArray[Any]:
    """Return vectors as an (n, D) array of finite real numbers in its own precision; errors name the item."""
    try:
        array = np.asarray(vectors)
        if array.dtype.kind == "c":
            raise TypeError("they are complex")
        if array.dtype.kind not in "fiub":
            array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidItems(
            f"the vectors do not form a table of numbers ({_uneven(vectors, ids) or error}): give n rows of D numbers, "
            f"all of one length"
        ) from None
    if array.ndim != 2:
        raise InvalidItems(f"the vectors have {array.ndim} axes, shape {array.shape}: give an (n, D) array")
    if length is not None and array.shape[1] != length:
        raise InvalidItems(
            f"the vectors have {array.shape[1]} numbers each and the map takes {length}: give vectors of the same model"
        )
    for start, rows in zip(range(0, len(array), CHUNK), chunks(array), strict=True):
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0] + np.array([start, 0])
            name = f"item {row}" if ids is None or len(ids) != len(array) else f"item {ids[row]!r}"
            raise InvalidItems(
                f"number {column} of the vector of {name} is {array[row, column]}: remove the item, or compute its "
                f"vector again"
            )
    return array


def _uneven(vectors: object, ids: Sequence[object] | None) -> str | None:
    """Return the first vector whose length differs from that of the first one, in words."""
    try:
        lengths = [len(vector) for vector in vectors]  # type: ignore[attr-defined]
    except TypeError:
        return None
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            name = row if ids is None or len(ids) != len(lengths) else repr(ids[row])
            return f"the vector of item {name} has {length} numbers and the first one has {lengths[0]}"
    return None


def resolved_dimensions(variances: npt.ArrayLike, answers: int = ANSWERS) -> int:
    """Return the number of axes, with these variances in decreasing order, that so many answers can resolve.

    Answers that tell B bits about a Gaussian point leave the least squared error if they go to the axes whose variance
    exceeds a level θ, ½ log2(variance/θ) bits each (reverse water-filling: Cover and Thomas, *Elements of Information
    Theory*, section 10.3.3), and one answer tells about one direction. Axes below the level are not worth an answer.
    """
    logs = np.log2(np.maximum(np.sort(np.asarray(variances, dtype=np.float64))[::-1], 1e-300))
    logs = logs[: max(int(answers), 1)]
    bits = BITS * answers
    # With the level at the variance of the next axis, the first i axes have taken cost[i] bits.
    cost = 0.5 * (np.cumsum(logs) - np.arange(1, len(logs) + 1) * logs)
    return int(np.searchsorted(cost, bits, side="right"))


def principal_map(
    vectors: object,
    *,
    dimension: int | Literal["auto"] = "auto",
    answers: int = ANSWERS,
    standardize: Standardize = "auto",
    ids: Sequence[object] | None = None,
) -> VectorMap:
    """Return the map of vectors to their principal axes, with coordinates of mean variance 1.

    Parameters
    ----------
    vectors
        (n, D) finite numbers.
    dimension
        Number of axes. ``"auto"``: as many as the answers can resolve, and no more than 95 % of the variance needs.
    answers
        Intended number of answers.
    standardize
        Whether to divide each column by its standard deviation. ``"auto"``: if the columns are of different units.
    ids
        Names of the items, for messages.
    """
    array = checked_vectors(vectors, ids)
    n, length = array.shape
    if n < 2:
        raise InvalidItems(f"there {'is 1 vector' if n == 1 else 'are no vectors'}: a pair needs at least 2")
    if not length:
        raise InvalidItems(f"the {n} vectors are empty: give at least one number each")
    answers = _count(answers, "answers")
    with np.errstate(over="ignore", invalid="ignore"):
        centre = sum(rows.sum(axis=0) for rows in chunks(array)) / n
        deviations = np.sqrt(sum(((rows - centre) ** 2).sum(axis=0) for rows in chunks(array)) / (n - 1))
    if not np.all(np.isfinite(deviations)):
        raise InvalidItems("the squares of the vectors overflow double precision: use another unit")
    # Rounding of the mean leaves a deviation to columns that are constant.
    deviations[deviations <= 1e-12 * np.abs(centre)] = 0.0
    if not np.any(deviations > 0):
        raise InvalidItems(f"all {n} vectors are the same: no pair can tell anything")
    scaled = _of_units(deviations) if standardize == "auto" else standardize
    if not isinstance(scaled, bool):
        raise InvalidParameter(f"standardize is {standardize!r}: give True, False or 'auto'", field="standardize")
    unit = np.where(deviations > 0, deviations, np.inf) if scaled else np.where(deviations > 0, 1.0, np.inf)
    values, directions = principal_axes(array, centre, unit)
    most = int(np.sum(values > 1e-12 * values[0]))
    shares = values / values.sum()
    resolved = min(resolved_dimensions(values[:most], answers), most)
    needed = min(int(np.searchsorted(np.cumsum(shares), VARIANCE)) + 1, most)
    d = min(resolved, needed) if dimension == "auto" else _count(dimension, "dimension")
    if d > most:
        raise InvalidParameter(
            f"dimension is {d} and the vectors vary along {most} directions: give at most {most}", field="dimension"
        )
    axes = directions[:, :d] / unit[:, None]
    # Single precision is more than vectors have, and leaves the same digits to machines that round differently.
    axes = (axes / np.sqrt(values[:d].mean())).astype(np.float32).astype(np.float64)
    provenance: JSON = {
        "vectors": {"n": n, "length": length},
        "standardized": scaled,
        "directions": most,
        "dimension": d,
        "chosen": dimension == "auto",
        "answers": answers,
        "resolved_by_answers": resolved,
        "needed_for_95_percent": needed,
        "variance_kept": float(shares[:d].sum()),
        "variances": [float(share) for share in shares[: max(d, 16)]],
    }
    return VectorMap(centre, axes, provenance)


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidParameter(f"{what} is {value!r}: give a whole number, at least 1, or 'auto'", field=what)
    return int(value)


def _of_units(deviations: FloatArray) -> bool:
    """Return whether columns with these deviations are of different units, so that one would count for all."""
    varying = deviations[deviations > 0]
    widest = varying.max()
    return bool(widest > _WIDE * np.median(varying) or (len(deviations) <= _TABLE and widest > _UNEVEN * varying.min()))


def dimension_note(coordinates: FloatArray) -> str | None:
    """Return a warning about coordinates that are too many for a few answers; None up to 64."""
    n, d = coordinates.shape
    if d <= MOST_BY_HAND:
        return None
    some = coordinates if n <= _SAMPLE else coordinates[:: -(-n // _SAMPLE)]
    found = principal_map(some).provenance
    return (
        f"the items have {d} coordinates, and {ANSWERS} answers resolve about {found['resolved_by_answers']} "
        f"directions; {found['dimension']} principal axes hold {100 * found['variance_kept']:.0f} % of the variance. "
        f"The search works, but slowly, and spends answers on directions of little weight: use "
        f"ps.Items.from_vectors(vectors), which keeps {found['dimension']}, or dimension=... for another number"
    )
