"""Scales of coordinates: contrast of their standard deviations, standardization, and the paper's scaling."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidItems

MAX_DEVIATION_RATIO = 20.0
"""Coordinates are uneven if their standard deviations differ by more than this factor."""
# A column whose range is below this fraction of its largest magnitude is constant up to rounding.
_MAX_CONSTANT_RANGE = 1e-14


@dataclass(frozen=True, slots=True)
class ColumnScale:
    """Range and standard deviation of one column of coordinates.

    Attributes
    ----------
    index
        Position among the coordinates, from 0.
    name
        Name in the source file; None without a file.
    low, high, deviation
        Minimum, maximum and standard deviation.
    """

    index: int
    name: str | None
    low: float
    high: float
    deviation: float

    def __str__(self) -> str:
        name = self.index if self.name is None else repr(self.name)
        return f"column {name} runs from {self.low:.4g} to {self.high:.4g} (standard deviation {self.deviation:.3g})"


@dataclass(frozen=True, slots=True)
class ScaleContrast:
    """The non-constant columns with the largest and smallest standard deviations."""

    widest: ColumnScale
    narrowest: ColumnScale

    @property
    def ratio(self) -> float:
        """Return the ratio of the two standard deviations."""
        # The standard deviation of subnormal numbers can round to zero.
        return self.widest.deviation / max(self.narrowest.deviation, sys.float_info.min)

    @property
    def uneven(self) -> bool:
        """Return whether the ratio is so large that the narrowest column hardly affects distances."""
        return self.ratio > MAX_DEVIATION_RATIO

    def __str__(self) -> str:
        factor = f"{self.ratio:,.0f}" if self.ratio < 1e6 else f"{self.ratio:.0e}"
        return f"by a factor of {factor}: {self.widest}, {self.narrowest}"


def scale_contrast(coordinates: FloatArray, names: Sequence[str] | None = None) -> ScaleContrast | None:
    """Return the widest and the narrowest column; None if all columns are constant.

    Parameters
    ----------
    coordinates
        (n, d) finite numbers, n >= 2.
    names
        Name of each column. None: columns are identified by their index.
    """
    _, unit, deviations = _normalized(coordinates)
    varying = np.flatnonzero(deviations)
    if not len(varying):
        return None
    with np.errstate(over="ignore"):
        widths = deviations[varying] * unit[varying]

    def column(position: int) -> ColumnScale:
        index = int(varying[position])
        values = coordinates[:, index]
        name = None if names is None else str(names[index])
        return ColumnScale(index, name, float(values.min()), float(values.max()), float(widths[position]))

    return ScaleContrast(column(int(widths.argmax())), column(int(widths.argmin())))


def scale_note(coordinates: FloatArray, names: Sequence[str] | None = None) -> str | None:
    """Return a warning about columns on very different scales; None if their scales are comparable."""
    contrast = scale_contrast(coordinates, names)
    if contrast is None or not contrast.uneven:
        return None
    return (
        f"the columns of the items differ in scale {contrast}; distances, and so preferences, depend only on "
        f"the widest columns: use items.standardized(), or standardize: true in a study, or scale the columns yourself"
    )


def standardize(coordinates: FloatArray) -> FloatArray:
    """Return the columns centred and divided by their standard deviations; constant columns become zero."""
    normalized, _, deviations = _normalized(coordinates)
    varying = deviations > 0
    centred = np.where(varying, normalized - normalized.mean(axis=0), 0.0)
    return np.asarray(centred / np.where(varying, deviations, 1.0))


def cover_cube(coordinates: FloatArray) -> FloatArray:
    """Return coordinates centred and scaled by the paper's rule: see `Items.scaled`."""
    centred = coordinates - coordinates.mean(axis=0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(centred, rowvar=False)))
    if values[0] <= 1e-12 * values[-1]:
        direction = ", ".join(f"{x:.3g}" for x in vectors[:, 0])
        raise InvalidItems(
            f"the items are flat: they do not vary along the direction ({direction}), so no scale makes them cover a "
            f"cube; reduce them by PCA to fewer dimensions first"
        )
    return np.asarray(centred * (np.sqrt(coordinates.shape[1]) / (3.0 * np.sqrt(values[0]))))


def _normalized(coordinates: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n, d) columns over their largest magnitude, these (d,) magnitudes, and (d,) standard deviations.

    No square of a normalized value overflows. The standard deviation of a constant column is exactly zero.
    """
    largest = np.abs(coordinates).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    normalized = coordinates / unit
    is_constant = np.ptp(normalized, axis=0) <= _MAX_CONSTANT_RANGE
    return normalized, unit, np.where(is_constant, 0.0, normalized.std(axis=0, ddof=1))
