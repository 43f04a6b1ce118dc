"""Scales of coordinate columns: how far their standard deviations differ, and standardization."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray

MOST = 20.0
"""Columns whose standard deviations differ by more than this factor are reported."""
# A column whose range is below this share of its largest value is constant up to rounding.
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class ColumnScale:
    """Range and standard deviation of one column of coordinates.

    Attributes
    ----------
    index
        Position among the coordinates, from 0.
    name
        Name in the file that the items were read from; None without one.
    low, high, deviation
        Smallest value, largest value and standard deviation.
    """

    index: int
    name: str | None
    low: float
    high: float
    deviation: float

    def __str__(self) -> str:
        called = self.index if self.name is None else repr(self.name)
        return f"column {called} runs from {self.low:.4g} to {self.high:.4g} (standard deviation {self.deviation:.3g})"


@dataclass(frozen=True, slots=True)
class ScaleContrast:
    """The columns with the largest and the smallest standard deviation, constant columns left out."""

    widest: ColumnScale
    narrowest: ColumnScale

    @property
    def ratio(self) -> float:
        """Return the ratio of the two standard deviations."""
        # The standard deviation of subnormal numbers can round to zero.
        return self.widest.deviation / max(self.narrowest.deviation, sys.float_info.min)

    @property
    def uneven(self) -> bool:
        """Return whether the ratio is so large that the narrowest column hardly influences distances."""
        return self.ratio > MOST

    def __str__(self) -> str:
        factor = f"{self.ratio:,.0f}" if self.ratio < 1e6 else f"{self.ratio:.0e}"
        return f"by a factor of {factor}: {self.widest}, {self.narrowest}"


def scale_contrast(coordinates: FloatArray, names: Sequence[str] | None = None) -> ScaleContrast | None:
    """Return the widest and the narrowest column; None if every column is constant.

    Parameters
    ----------
    coordinates
        (n, d) finite numbers, n >= 2.
    names
        A name for each column. None: columns are called by their index.
    """
    _, unit, deviations = _in_shares(coordinates)
    varying = np.flatnonzero(deviations)
    if not len(varying):
        return None
    with np.errstate(over="ignore"):
        widths = deviations[varying] * unit[varying]

    def column(place: int) -> ColumnScale:
        index = int(varying[place])
        values = coordinates[:, index]
        name = None if names is None else str(names[index])
        return ColumnScale(index, name, float(values.min()), float(values.max()), float(widths[place]))

    return ScaleContrast(column(int(widths.argmax())), column(int(widths.argmin())))


def scale_note(coordinates: FloatArray, names: Sequence[str] | None = None) -> str | None:
    """Return a warning about columns of very different scale; None if their scales are comparable."""
    contrast = scale_contrast(coordinates, names)
    if contrast is None or not contrast.uneven:
        return None
    return (
        f"the columns of the items differ in scale {contrast}; distances, and so preferences, depend on the widest "
        f"columns alone: use items.standardized(), or standardize: true in a study, or scale the columns yourself"
    )


def standardize(coordinates: FloatArray) -> FloatArray:
    """Return the columns centred and divided by their standard deviations; zeros for a constant column."""
    shares, _, deviations = _in_shares(coordinates)
    varying = deviations > 0
    centred = np.where(varying, shares - shares.mean(axis=0), 0.0)
    return np.asarray(centred / np.where(varying, deviations, 1.0))


def _in_shares(coordinates: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n, d) shares of each column's largest magnitude, (d,) that magnitude, (d,) deviations of the shares.

    In shares no square overflows. The deviation of a constant column is exactly zero.
    """
    largest = np.abs(coordinates).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    shares = coordinates / unit
    constant = np.ptp(shares, axis=0) <= _ROUNDING
    return shares, unit, np.where(constant, 0.0, shares.std(axis=0, ddof=1))
