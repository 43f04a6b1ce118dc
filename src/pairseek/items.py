"""The things to choose between: points with ids, or a continuous space."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pairseek._types import FloatArray, ItemId, Point
from pairseek.errors import InvalidItems, InvalidParameter, UnknownItem

ID_COLUMNS = ("id", "item", "name")
LABEL_COLUMN = "label"
APPEAL_COLUMN = "appeal"


def _coordinates(values: npt.ArrayLike) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidItems(
            f"coordinates do not form a table of numbers ({error}): give n rows of d numbers, all of one length"
        ) from None
    if array.ndim != 2:
        raise InvalidItems(f"coordinates have {array.ndim} axes, shape {array.shape}: give an (n, d) array")
    n, d = array.shape
    if n < 2:
        raise InvalidItems(f"there {'is 1 item' if n == 1 else 'are no items'}: a pair needs at least 2")
    if d < 1:
        raise InvalidItems(f"the {n} items have no coordinates: give at least one dimension")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0]
        raise InvalidItems(
            f"coordinate {column} of item {row} is {array[row, column]} ({len(bad)} not finite in all): "
            f"remove the item or fill it in"
        )
    if np.all(array == array[0]):
        raise InvalidItems(f"all {n} items are at the same point: no pair can tell anything")
    return array


def _identifiers(ids: Sequence[object] | npt.NDArray[np.generic] | None, n: int) -> tuple[ItemId, ...]:
    if ids is None:
        return tuple(range(n))
    plain = [value.item() if isinstance(value, np.generic) else value for value in ids]
    if len(plain) != n:
        raise InvalidItems(f"{len(plain)} ids for {n} items: give one for each")
    seen: dict[ItemId, int] = {}
    out: list[ItemId] = []
    for index, value in enumerate(plain):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise InvalidItems(f"id {value!r} of item {index} is a {type(value).__name__}: use int or str")
        if value in seen:
            raise InvalidItems(f"items {seen[value]} and {index} have the same id {value!r}: make ids unique")
        seen[value] = index
        out.append(value)
    return tuple(out)


@dataclass(frozen=True, eq=False)
class Items:
    """Items in an embedding: validated once, immutable ever after.

    Parameters
    ----------
    coordinates
        (n, d) finite numbers, n >= 2, d >= 1. Items may share a point; such a pair is never asked.
    ids
        One int or str for each; 0..n-1 if None.
    labels
        One text for each, to show to people; the ids if None.
    appeal
        One number for each, added to the item's logit whoever is asked; zero if None.
    data
        Further columns, kept as they are: a sequence of n for each name.

    Examples
    --------
    >>> items = Items([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]], ids=["a", "b", "c"])
    >>> items.n, items.d, items.index("b")
    (3, 2, 1)
    """

    coordinates: FloatArray
    ids: tuple[ItemId, ...]
    labels: tuple[str, ...]
    appeal: FloatArray
    data: Mapping[str, tuple[object, ...]] = field(repr=False)

    def __init__(
        self,
        coordinates: npt.ArrayLike,
        ids: Sequence[object] | npt.NDArray[np.generic] | None = None,
        labels: Sequence[str] | None = None,
        appeal: npt.ArrayLike | None = None,
        data: Mapping[str, Sequence[object]] | None = None,
    ) -> None:
        points = _coordinates(coordinates)
        n = len(points)
        names = _identifiers(ids, n)
        texts = tuple(map(str, names)) if labels is None else tuple(map(str, labels))
        if len(texts) != n:
            raise InvalidItems(f"{len(texts)} labels for {n} items: give one for each")
        offsets = np.zeros(n) if appeal is None else np.array(appeal, dtype=np.float64)
        if offsets.shape != (n,):
            raise InvalidItems(f"appeal has shape {offsets.shape}: give {n} numbers, one for each item")
        if not np.all(np.isfinite(offsets)):
            raise InvalidItems(f"appeal of item {names[int(np.argmin(np.isfinite(offsets)))]!r} is not finite")
        columns = {name: tuple(values) for name, values in (data or {}).items()}
        for name, values in columns.items():
            if len(values) != n:
                raise InvalidItems(f"column {name!r} has {len(values)} values for {n} items: give one for each")
        points.flags.writeable = False
        offsets.flags.writeable = False
        for attribute, value in (
            ("coordinates", points),
            ("ids", names),
            ("labels", texts),
            ("appeal", offsets),
            ("data", MappingProxyType(columns)),
        ):
            object.__setattr__(self, attribute, value)

    def __len__(self) -> int:
        return len(self.coordinates)

    def __repr__(self) -> str:
        return f"Items(n={self.n}, d={self.d}, hash={self.hash[:8]})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.coordinates.shape[0])

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return int(self.coordinates.shape[1])

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what a search depends on: coordinates, ids and appeal."""
        digest = hashlib.sha256(repr((self.coordinates.shape, self.ids)).encode())
        digest.update(self.coordinates.astype("<f8").tobytes())
        digest.update(self.appeal.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def _positions(self) -> dict[ItemId, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def index(self, item: object) -> int:
        """Row of the item with this id."""
        plain = item.item() if isinstance(item, np.generic) else item
        try:
            return self._positions[plain]  # type: ignore[index]
        except (KeyError, TypeError):
            raise UnknownItem(
                f"no item has the id {item!r}: the ids run from {self.ids[0]!r} to {self.ids[-1]!r}"
            ) from None

    @cached_property
    def spread(self) -> float:
        """sqrt(tr cov(items)), the λ of EPMV in the paper's experiments."""
        return float(np.sqrt(np.var(self.coordinates, axis=0, ddof=1).sum()))

    def scaled(self) -> Self:
        """Centred, and scaled by sqrt(d)/(3 sqrt(smallest eigenvalue of the covariance)).

        The paper's rule (supplement, "Performance across dimensions"): three standard deviations of the
        narrowest direction reach the corner of [-1, 1]^d.
        """
        centred = self.coordinates - self.coordinates.mean(axis=0)
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(centred, rowvar=False)))
        if values[0] <= 1e-12 * values[-1]:
            direction = ", ".join(f"{x:.3g}" for x in vectors[:, 0])
            raise InvalidItems(
                f"the items are flat: they do not vary along the direction ({direction}), so no scale makes "
                f"them cover a cube; drop that direction (PCA to fewer dimensions) first"
            )
        factor = np.sqrt(self.d) / (3.0 * np.sqrt(values[0]))
        return type(self)(centred * factor, self.ids, self.labels, self.appeal, self.data)

    @classmethod
    def from_csv(cls, path: str | Path, *, keep: Sequence[str] = ()) -> Self:
        """Read a CSV file with a header row.

        The column ``id`` (or ``item`` or ``name``, or else the first column if it is not numeric) names the
        items, ``label`` is shown to people, ``appeal`` is appeal, the columns in `keep` are kept as data, and
        all others are coordinates. Ids and data are read as text: item ``"7"``, not 7.
        """
        return cls(**_from_rows(Path(path), tuple(keep)))

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file that `from_csv` reads back, ``keep`` naming the columns of data."""
        columns = [f"x{i}" for i in range(self.d)]
        taken = sorted({"id", LABEL_COLUMN, APPEAL_COLUMN, *columns} & set(self.data))
        if taken:
            raise InvalidItems(f"data has a column {taken[0]!r}, which the file needs for itself: give it another name")
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "label", "appeal", *self.data, *columns])
            for row in range(self.n):
                writer.writerow(
                    [
                        self.ids[row],
                        self.labels[row],
                        repr(float(self.appeal[row])),
                        *(values[row] for values in self.data.values()),
                        *map(repr, self.coordinates[row].tolist()),
                    ]
                )

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read ``.csv``; ``.npy``; ``.npz`` (arrays ``coordinates`` or ``X``, optional ``ids``); ``.mat`` (``X``)."""
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix == ".csv":
            return cls.from_csv(path)
        if not path.exists():
            raise InvalidItems(f"there is no file {path}")
        try:
            if suffix == ".npy":
                return cls(np.load(path, allow_pickle=False))
            if suffix == ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive.files}
            elif suffix == ".mat":
                from scipy.io import loadmat

                arrays = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
            else:
                raise InvalidItems(f"{path} has an unknown ending {suffix!r}: use .csv, .npy, .npz or .mat")
        except InvalidItems:
            raise
        except Exception as error:  # noqa: BLE001 - the readers raise many kinds for damaged files
            raise InvalidItems(f"{path} cannot be read as {suffix}: {error}") from None
        for name in ("coordinates", "X"):
            if name in arrays:
                ids = arrays.get("ids") if suffix == ".npz" else None
                return cls(arrays[name], None if ids is None else list(ids))
        raise InvalidItems(f"{path} holds {sorted(arrays)}: name the array of coordinates 'X'")


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and numbered rows of a CSV file, all of one length."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except FileNotFoundError:
        raise InvalidItems(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidItems(f"{path} cannot be read as CSV: {error}") from None
    if not rows:
        raise InvalidItems(f"{path} is empty: give a header row, then one row for each item")
    header = [name.strip() for name in rows[0][1]]
    if len(set(header)) != len(header):
        raise InvalidItems(f"{path} has two columns of the same name in its header {header}")
    body = rows[1:]
    if not body:
        raise InvalidItems(f"{path} has a header and no items: give one row for each item")
    for line, row in body:
        if len(row) != len(header):
            raise InvalidItems(f"{path}, line {line}: {len(row)} cells under {len(header)} columns")
    return header, body


def _from_rows(path: Path, keep: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of `Items` that a CSV file holds."""
    header, body = _table(path)
    unknown = [name for name in keep if name not in header]
    if unknown:
        raise InvalidItems(f"{path} has no column {unknown[0]!r}: its columns are {', '.join(header)}")
    table = {name: [row[column].strip() for _, row in body] for column, name in enumerate(header)}
    lines = [line for line, _ in body]
    named = next((name for name in ID_COLUMNS if name in table and name not in keep), None)
    if named is None and header[0] not in keep and not all(map(_is_number, table[header[0]])):
        named = header[0]
    special = {named, LABEL_COLUMN, APPEAL_COLUMN, *keep}
    numeric = [name for name in header if name not in special]
    if not numeric:
        raise InvalidItems(f"{path} has no coordinates: its columns are {', '.join(header)}")
    return {
        "coordinates": np.column_stack([_numbers(path, name, table[name], lines) for name in numeric]),
        "ids": None if named is None else table[named],
        "labels": table.get(LABEL_COLUMN),
        "appeal": _numbers(path, APPEAL_COLUMN, table[APPEAL_COLUMN], lines) if APPEAL_COLUMN in table else None,
        "data": {name: table[name] for name in keep},
    }


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, column: str, cells: list[str], lines: list[int]) -> FloatArray:
    out = np.empty(len(cells))
    for row, (cell, line) in enumerate(zip(cells, lines, strict=True)):
        try:
            out[row] = float(cell)
        except ValueError:
            raise InvalidItems(
                f"{path}, line {line}, column {column!r}: {cell!r} is not a number; mend it, or keep the "
                f"column as data with keep=[{column!r}]"
            ) from None
        if not np.isfinite(out[row]):
            raise InvalidItems(f"{path}, line {line}, column {column!r}: {cell!r} is not a finite number")
    return out


@dataclass(frozen=True)
class Space:
    """A box in which any point can be shown: colours, faces, recipes, sounds.

    A query is then two points mirrored in the chosen plane, as far apart as serves the noise model.

    Parameters
    ----------
    low, high
        One number for each dimension.
    min_separation, max_separation
        Bounds on the distance between the two points. None for the upper one: whatever fits into the box.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    min_separation: float = 0.0
    max_separation: float | None = None

    def __post_init__(self) -> None:
        low = np.atleast_1d(np.asarray(self.low, dtype=np.float64))
        high = np.atleast_1d(np.asarray(self.high, dtype=np.float64))
        if low.ndim != 1 or low.shape != high.shape or not len(low):
            raise InvalidParameter(f"a Space takes as many lows as highs, received {low.shape} and {high.shape}")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise InvalidParameter(f"the space from {self.low} to {self.high} is empty or infinite")
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))
        most = float(np.min(high - low)) if self.max_separation is None else float(self.max_separation)
        if not 0 <= self.min_separation <= most or most <= 0:
            raise InvalidParameter(
                f"min_separation {self.min_separation} and max_separation {self.max_separation} leave nothing: "
                f"need 0 <= min <= max, and min at most the narrowest side ({float(np.min(high - low)):g})"
            )

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return len(self.low)

    def point(self, value: object) -> Point:
        """A point of the space as a tuple of floats."""
        array = np.asarray(value, dtype=np.float64)
        if array.shape != (self.d,) or not np.all(np.isfinite(array)):
            raise UnknownItem(f"{value!r} is not a point of this space: give {self.d} finite numbers")
        return tuple(array.tolist())
