"""Items, which are points with ids, and continuous spaces."""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pairseek.core import notebook
from pairseek.core.columns import (
    APPEAL_COLUMN,
    LABEL_COLUMN,
    are_named_as_coordinates,
    columns_note,
    items_of_frame,
    read_items,
)
from pairseek.core.csv import is_table
from pairseek.core.frames import Backend, frame_of
from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, FloatArray, IntArray, ItemId, Point, Side
from pairseek.core.validation import caller_level
from pairseek.errors import DimensionWarning, InvalidItems, InvalidParameter, ScaleWarning, UnknownItem
from pairseek.model import scales as _scales
from pairseek.model import vectors as _vectors
from pairseek.model.vectors import VectorMap


def _real(values: object) -> FloatArray:
    """Return a new array of real numbers; numpy alone would drop the imaginary part of complex ones."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError("they are complex")
    return np.array(array, dtype=np.float64, order="C")


def _listed(values: object, what: str, n: int) -> list[object]:
    """Return values as a list with one entry for each item."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidItems(f"{what} is {values!r}: give a list of {n}, one for each item")
    out = list(values)
    if len(out) != n:
        raise InvalidItems(f"{len(out)} {what} for {n} items: give one for each")
    return out


def _coordinates(values: npt.ArrayLike) -> FloatArray:
    try:
        array = _real(values)
    except (TypeError, ValueError, OverflowError) as error:
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


def _without_coordinates(ids: object, least: int) -> FloatArray:
    """Return (n, 0) coordinates for items that have ids alone."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidItems(f"the items have no coordinates and ids is {ids!r}: give coordinates, or a list of ids")
    n = len(list(ids))
    if n < least:
        raise InvalidItems(f"there {'is 1 item' if n == 1 else 'are no items'}: a pair needs at least 2")
    return np.empty((n, 0))


def _identifiers(ids: Sequence[object] | npt.NDArray[np.generic] | None, n: int) -> tuple[ItemId, ...]:
    if ids is None:
        return tuple(range(n))
    plain = [value.item() if isinstance(value, np.generic) else value for value in _listed(ids, "ids", n)]
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


class Askable(Hashable, Protocol):
    """What there is to ask about, `Items` or a `Space`: members that return the same kind again."""

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        ...

    @property
    def coordinates(self) -> FloatArray:
        """Return the (n, d) coordinates of the items."""
        ...

    @property
    def appeal(self) -> FloatArray:
        """Return the (n,) appeals of the items."""
        ...

    def scaled(self) -> Self:
        """Return it in the scale of the paper's rule."""
        ...

    def _placed(self, coordinates: FloatArray, appeal: FloatArray) -> Self:
        """Return the same items at other coordinates, with other appeals."""
        ...


Asked = TypeVar("Asked", bound=Askable)


@dataclass(frozen=True, eq=False)
class Items:
    """Items in an embedding, validated at construction and immutable.

    Columns of coordinates whose standard deviations differ by more than a factor of 20 give a `ScaleWarning`:
    the others hardly influence distances. `standardized` brings them to one scale.

    Parameters
    ----------
    coordinates
        (n, d) finite numbers, n >= 2, d >= 1. Items may share a point; such a pair is asked only where the response has
        residual utilities. None: the items have no coordinates, d = 0, and `ids` is needed.
    ids
        One int or str for each; 0..n-1 if None.
    labels
        One text for each, to show to people; the ids if None.
    appeal
        One number for each, added to the item's logit for every person; zero if None.
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
    # Names of the coordinates in the file that they were read from, for messages.
    _columns: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    vector_map: VectorMap | None = field(default=None, init=False, repr=False)
    """The map from vectors to these coordinates, of items that `from_vectors` made; otherwise None."""

    def __init__(
        self,
        coordinates: npt.ArrayLike | None = None,
        ids: Sequence[object] | npt.NDArray[np.generic] | None = None,
        labels: Sequence[str] | None = None,
        appeal: npt.ArrayLike | None = None,
        data: Mapping[str, Sequence[object]] | None = None,
    ) -> None:
        self._fill(coordinates, ids, labels, appeal, data)
        self._warned()

    @classmethod
    def _unwarned(
        cls,
        coordinates: npt.ArrayLike | None,
        ids: Sequence[object] | npt.NDArray[np.generic] | None = None,
        labels: Sequence[str] | None = None,
        appeal: npt.ArrayLike | None = None,
        data: Mapping[str, Sequence[object]] | None = None,
        columns: Sequence[str] | None = None,
        vector_map: VectorMap | None = None,
        *,
        least: int = 2,
    ) -> Self:
        """Return validated items without warnings: parts of other items, or items reported elsewhere.

        There are at least two, or `least` without coordinates: one item may be added to others.
        """
        items = cls.__new__(cls)
        items._fill(coordinates, ids, labels, appeal, data, least)
        object.__setattr__(items, "_columns", None if columns is None else tuple(columns))
        object.__setattr__(items, "vector_map", vector_map)
        return items

    def _warned(self) -> Self:
        """Issue a `ScaleWarning` if the scales differ, a `DimensionWarning` if there are many; return the items."""
        if self.scale_note is not None:
            warnings.warn(self.scale_note, ScaleWarning, stacklevel=caller_level())
        note = _vectors.dimension_note(self.coordinates)
        if note is not None:
            warnings.warn(note, DimensionWarning, stacklevel=caller_level())
        return self

    def _fill(
        self,
        coordinates: npt.ArrayLike | None,
        ids: Sequence[object] | npt.NDArray[np.generic] | None,
        labels: Sequence[str] | None,
        appeal: npt.ArrayLike | None,
        data: Mapping[str, Sequence[object]] | None,
        least: int = 2,
    ) -> None:
        """Validate and set all attributes."""
        points = _without_coordinates(ids, least) if coordinates is None else _coordinates(coordinates)
        n = len(points)
        names = _identifiers(ids, n)
        texts = tuple(map(str, names if labels is None else _listed(labels, "labels", n)))
        try:
            offsets = np.zeros(n) if appeal is None else _real(appeal)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidItems(f"appeal is {appeal!r} ({error}): give {n} numbers, one for each item") from None
        if offsets.shape != (n,):
            raise InvalidItems(f"appeal has shape {offsets.shape}: give {n} numbers, one for each item")
        if not np.all(np.isfinite(offsets)):
            raise InvalidItems(f"appeal of item {names[int(np.argmin(np.isfinite(offsets)))]!r} is not finite")
        if data is not None and not isinstance(data, Mapping):
            raise InvalidItems(f"data is {data!r}: give a dict with a list of {n} for each name")
        columns = {
            name: tuple(_listed(values, f"values of the column {name!r}", n)) for name, values in (data or {}).items()
        }
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

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        # Unpickling calls the constructor, so that copies are validated and read-only too.
        parts = (
            self.coordinates if self.d else None,
            self.ids,
            self.labels,
            self.appeal,
            dict(self.data),
            self._columns,
            self.vector_map,
        )
        return type(self)._unwarned, parts

    def __repr__(self) -> str:
        read = "" if self.columns_note is None else f"; {self.columns_note}"
        return f"Items(n={self.n}, d={self.d}, hash={self.hash[:8]}{read})"

    def _repr_html_(self) -> str:
        return notebook.items_panel(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def n(self) -> int:
        """Return the number of items."""
        return int(self.coordinates.shape[0])

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        return int(self.coordinates.shape[1])

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of all that a search depends on: coordinates, ids and appeal."""
        digest = hashlib.sha256(repr((self.coordinates.shape, self.ids)).encode())
        digest.update(self.coordinates.astype("<f8").tobytes())
        digest.update(self.appeal.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def _positions(self) -> dict[ItemId, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def index(self, item: object) -> int:
        """Return the row of the item with this id."""
        plain = item.item() if isinstance(item, np.generic) else item
        # True == 1, but a bool is never meant as an id.
        if not isinstance(plain, bool):
            try:
                return self._positions[plain]  # type: ignore[index]
            except (KeyError, TypeError):
                pass
        twin = self._twin(plain)
        if twin is not None:
            raise UnknownItem(f"{twin!r} is an id, {plain!r} is not: ids that are read from a CSV file are text")
        raise UnknownItem(f"no item has the id {item!r}: the ids run from {self.ids[0]!r} to {self.ids[-1]!r}")

    def find(self, item: Side) -> int:
        """Return the row of the item with this id, or -1 if there is none."""
        return self._positions.get(item, -1)  # type: ignore[arg-type]

    def _placed(self, coordinates: FloatArray, appeal: FloatArray) -> Self:
        """Return the same items at other coordinates, with other appeals."""
        return self._unwarned(coordinates, self.ids, self.labels, appeal, self.data)

    def _side(self, value: object) -> Side:
        """Return the id of an item, as one side of a query."""
        return self.ids[self.index(value)]

    def _side_of(self, row: int, point: FloatArray) -> Side:  # noqa: ARG002
        """Return the id of the item in this row, as one side of a query."""
        return self.ids[row]

    def _place_of(self, side: Side) -> tuple[FloatArray, float]:
        """Return the (d,) coordinates and the appeal of one side of a query."""
        row = self.index(side)
        return self.coordinates[row], float(self.appeal[row])

    def _catalogue(self, otherwise: Exception) -> Items:  # noqa: ARG002
        """Return the items themselves; a `Space`, which has none, raises the error."""
        return self

    def record(self) -> JSON:
        """Return all that a file holds of the items, as plain data."""
        return {
            "kind": "items",
            "hash": self.hash,
            "ids": list(self.ids),
            "labels": list(self.labels),
            "coordinates": self.coordinates.tolist(),
            "appeal": self.appeal.tolist(),
            "data": {name: list(map(str, values)) for name, values in self.data.items()},
        }

    @property
    def _fingerprint(self) -> str:
        """Return a text that tells these items from others: their hash."""
        return self.hash

    @property
    def _key(self) -> str:
        """Return the name of these items in the record of an experiment."""
        return f"items:{self.hash}"

    @property
    def _summary(self) -> str:
        """Return what there is to ask about, in words."""
        return f"{self.n} items"

    def _twin(self, value: object) -> ItemId | None:
        """Return the id that is written like this value and is of the other type, text or number."""
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        if isinstance(value, int):
            return str(value) if str(value) in self._positions else None
        return next((name for name in self.ids if isinstance(name, int) and str(name) == value.strip()), None)

    def subset(self, rows: IntArray) -> Self:
        """Return the items in these rows, in this order."""
        chosen = rows.tolist()
        return self._unwarned(
            self.coordinates[rows] if self.d else None,
            [self.ids[row] for row in chosen],
            [self.labels[row] for row in chosen],
            self.appeal[rows],
            {name: [values[row] for row in chosen] for name, values in self.data.items()},
            self._columns,
            self.vector_map,
        )

    @cached_property
    def spread(self) -> float:
        """Return sqrt(tr cov(items)), the λ of EPMV in the paper's experiments."""
        return float(np.sqrt(np.var(self.coordinates, axis=0, ddof=1).sum()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates: those of the file that they were read from, or x0, x1 and so on."""
        return tuple(f"x{i}" for i in range(self.d)) if self._columns is None else self._columns

    @property
    def columns_note(self) -> str | None:
        """Return which columns of their file are coordinates and which were kept as data; None without a file."""
        return None if self._columns is None else columns_note(self._columns, list(self.data)) or None

    @property
    def _columns_guess(self) -> str | None:
        """Return `columns_note` if the names of the columns do not tell that they are coordinates."""
        return None if are_named_as_coordinates(self.columns) else self.columns_note

    @cached_property
    def scale_contrast(self) -> _scales.ScaleContrast | None:
        """Return the columns with the largest and the smallest standard deviation; None if every column is constant."""
        return _scales.scale_contrast(self.coordinates, self._columns)

    @cached_property
    def scale_note(self) -> str | None:
        """Return a warning if the standard deviations of two columns differ by more than a factor of 20; else None."""
        return _scales.scale_note(self.coordinates, self._columns)

    def standardized(self) -> Self:
        """Return the items with each coordinate centred and divided by its standard deviation.

        A coordinate that is the same for all items becomes zero. Ids, labels, appeal and data stay as they are.

        Examples
        --------
        >>> wines = Items([[10.0, 0.0], [20.0, 1.0], [30.0, 2.0]])
        >>> wines.standardized().coordinates.round(6).tolist()
        [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]
        """
        if not self.d:
            return self
        points = _scales.standardize(self.coordinates)
        return self._unwarned(points, self.ids, self.labels, self.appeal, self.data, self._columns)

    def scaled(self) -> Self:
        """Return the items centred and scaled by sqrt(d)/(3 sqrt(smallest eigenvalue of the covariance)).

        The paper's rule (supplement, "Performance across dimensions"): three standard deviations of the
        narrowest direction reach the corner of [-1, 1]^d.
        """
        if not self.d:
            return self
        centred = self.coordinates - self.coordinates.mean(axis=0)
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(centred, rowvar=False)))
        if values[0] <= 1e-12 * values[-1]:
            direction = ", ".join(f"{x:.3g}" for x in vectors[:, 0])
            raise InvalidItems(
                f"the items are flat: they do not vary along the direction ({direction}), so no scale makes "
                f"them cover a cube; drop that direction (PCA to fewer dimensions) first"
            )
        factor = np.sqrt(self.d) / (3.0 * np.sqrt(values[0]))
        return self._unwarned(centred * factor, self.ids, self.labels, self.appeal, self.data, self._columns)

    @classmethod
    def from_vectors(
        cls,
        vectors: object,
        ids: Sequence[object] | npt.NDArray[np.generic] | None = None,
        *,
        labels: Sequence[str] | None = None,
        appeal: npt.ArrayLike | None = None,
        data: Mapping[str, Sequence[object]] | None = None,
        dimension: int | Literal["auto"] = "auto",
        answers: int = _vectors.ANSWERS,
        standardize: _vectors.Standardize = "auto",
        vector_map: VectorMap | None = None,
    ) -> Self:
        """Return items in a few dimensions from vectors of many, such as embeddings of texts or images.

        Parameters
        ----------
        vectors
            (n, D) numbers, a mapping of ids to vectors, a data frame (pyarrow, pandas, polars), or the path of a
            ``.npy`` or ``.parquet`` file. In a table, ``id``, ``label`` and ``appeal`` are what they say, a column of
            lists (or else the columns of numbers) holds the vectors, and other columns are data.
        ids
            As for `Items`; they take precedence over the column ``id`` of a table, and so do the next three.
        labels
            As for `Items`.
        appeal
            As for `Items`.
        data
            As for `Items`.
        dimension
            Number of principal axes to keep. ``"auto"``: as many as `answers` can resolve, and no more than 95 % of the
            variance needs.
        answers
            Intended number of answers of a person.
        standardize
            Whether to divide each number by its standard deviation over the items. ``"auto"``: if they are of
            different units.
        vector_map
            A map that is used instead, such as `Items.vector_map` of yesterday's catalogue.

        Examples
        --------
        >>> vectors = np.random.default_rng(0).standard_normal((500, 64)) / np.arange(1, 65)
        >>> items = Items.from_vectors(vectors, dimension=5, standardize=False)
        >>> items.d, round(items.vector_map.provenance["variance_kept"], 2)
        (5, 0.9)
        """
        from pairseek.model.vector_tables import read_vectors  # few searches begin with vectors

        table = read_vectors(vectors)
        names = table.ids if ids is None else _listed(ids, "ids", len(table.vectors))
        if vector_map is None:
            vector_map = _vectors.principal_map(
                table.vectors, dimension=dimension, answers=answers, standardize=standardize, ids=names
            )
        elif not isinstance(vector_map, VectorMap):
            raise InvalidParameter(f"vector_map is {vector_map!r}: give a VectorMap, such as items.vector_map")
        return cls._unwarned(
            vector_map.place(table.vectors, names),
            names,
            table.labels if labels is None else labels,
            table.appeal if appeal is None else appeal,
            {**table.data, **(data or {})},
            vector_map=vector_map,
        )

    @classmethod
    def from_csv(cls, path: str | Path, *, keep: Sequence[str] = (), coordinates: Sequence[str] | None = None) -> Self:
        """Read a CSV or Parquet file with a header row.

        The column ``id`` (or ``item`` or ``name``, or one that ends in ``_id``, or else the first column if it is
        not numeric) names the items, ``label`` is shown to people, ``appeal`` is appeal, in capitals or not. Of the
        others, columns of numbers are coordinates and columns of text are data; `columns` and `data` of the result
        name them. A first column without a name that numbers the rows is the id if no other column is, and never a
        coordinate. Two columns that may both be the id, a first row of numbers, and blank ids or labels are refused.
        Ids and data are read as text: item ``"7"``, not 7.

        Commas, semicolons or tabs may separate the cells of a text in UTF-8, UTF-16 or Windows-1252. Decimal commas are
        read where cells are separated by something else.

        Parameters
        ----------
        path
            The file.
        keep
            Columns to keep as data although they hold numbers.
        coordinates
            Columns that are coordinates; all others without a role of their own are kept as data. An empty list: the
            items have no coordinates. None: all columns of numbers.
        """
        return cls._of_csv(path, keep, coordinates=coordinates)._warned()

    @classmethod
    def from_frame(cls, frame: object, *, keep: Sequence[str] = (), coordinates: Sequence[str] | None = None) -> Self:
        """Build items from a data frame of pandas, polars or pyarrow, which needs the extra ``frames``.

        Columns have the roles that they have in `from_csv`. A named index of pandas counts as a column, a column of
        vectors as one coordinate for each entry, and ids keep their type: item 7, not ``"7"``.
        """
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        return cls._unwarned(**items_of_frame(frame, kept, coordinates))._warned()

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame that `from_frame` reads back, ``keep`` naming the columns of data that hold numbers.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``. None: the first of them that is installed.
        """
        names = ["id", LABEL_COLUMN, APPEAL_COLUMN, *self.data, *self.columns]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise InvalidItems(f"the data frame would have two columns {twice!r}: rename the column of data")
        columns = (self.ids, self.labels, self.appeal.tolist(), *self.data.values(), *self.coordinates.T.tolist())
        return frame_of(dict(zip(names, columns, strict=True)), backend)

    @classmethod
    def _of_csv(
        cls,
        path: str | Path,
        keep: Sequence[str] = (),
        *,
        coordinates: Sequence[str] | None = None,
        media: bool = False,
        content: bytes | None = None,
        optional: bool = False,
    ) -> Self:
        """Read items as `from_csv` does, without a `ScaleWarning`; `pairseek.core.columns` describes the arguments."""
        kept = (keep,) if isinstance(keep, str) else tuple(keep)
        read = read_items(Path(path), kept, coordinates=coordinates, media=media, content=content, optional=optional)
        return cls._unwarned(**read, least=1 if optional else 2)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file that `from_csv` reads back, ``keep`` naming the columns of data that hold numbers.

        The file holds text: whole numbers as ids come back as text, and ids that would then be the same, or lose a
        space at an end, are refused.
        """
        columns = [f"x{i}" for i in range(self.d)]
        self._check_texts()
        needed = {"id", LABEL_COLUMN, APPEAL_COLUMN}
        taken = sorted(name for name in self.data if name in columns or name.casefold() in needed)
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

    def _check_texts(self) -> None:
        """Reject ids that a text file cannot distinguish or does not preserve."""
        texts: dict[str, ItemId] = {}
        for name in self.ids:
            text = str(name)
            if text != text.strip():
                raise InvalidItems(
                    f"the id {name!r} has a space at an end, which a CSV file does not keep: take it off"
                )
            if text in texts:
                raise InvalidItems(f"the ids {texts[text]!r} and {name!r} are the same in a CSV file: rename one")
            texts[text] = name

    @classmethod
    def from_file(cls, path: str | Path, *, coordinates: Sequence[str] | None = None) -> Self:
        """Read a file by its ending.

        ``.csv``, ``.tsv``, ``.txt`` and ``.parquet`` as `from_csv`, with its argument `coordinates`; ``.npy``; ``.npz``
        (arrays ``coordinates`` or ``X``, optional ``ids``); ``.mat`` (``X``).
        """
        return cls._of_file(path, coordinates=coordinates)._warned()

    @classmethod
    def _of_file(
        cls,
        path: str | Path,
        *,
        coordinates: Sequence[str] | None = None,
        media: bool = False,
        optional: bool = False,
    ) -> Self:
        """Read items as `from_file` does, without a `ScaleWarning`; with `media`, columns of media are data.

        With `optional`, a CSV or Parquet file may have no coordinates.
        """
        path = Path(path)
        if is_table(path):
            return cls._of_csv(path, coordinates=coordinates, media=media, optional=optional)
        if coordinates is not None:
            raise InvalidItems(f"{path} has no named columns: leave coordinates out")
        return cls._of_arrays(path)

    @classmethod
    def _of_arrays(cls, path: Path) -> Self:
        """Read ``.npy``, ``.npz`` or ``.mat``."""
        if not path.exists():
            raise InvalidItems(f"there is no file {path}")
        suffix = path.suffix.lower()
        try:
            if suffix == ".npy":
                return cls._unwarned(np.load(path, allow_pickle=False))
            if suffix == ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive.files}
            elif suffix == ".mat":
                from scipy.io import loadmat

                arrays = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
            else:
                raise InvalidItems(
                    f"{path} has an unknown ending {suffix!r}: use .csv, .tsv, .txt, .parquet, .npy, .npz or .mat"
                )
        except InvalidItems:
            raise
        except Exception as error:  # noqa: BLE001 - the readers raise many kinds for damaged files
            raise InvalidItems(f"{path} cannot be read as {suffix}: {error}") from None
        for name in ("coordinates", "X"):
            if name in arrays:
                ids = arrays.get("ids") if suffix == ".npz" else None
                return cls._unwarned(arrays[name], None if ids is None else list(ids))
        raise InvalidItems(f"{path} holds {sorted(arrays)}: name the array of coordinates 'X'")


@dataclass(frozen=True)
class Space:
    """A box in which any point can be shown: colours, faces, recipes, sounds.

    A query is then two points mirrored in the chosen plane, as far apart as serves the noise model.

    Parameters
    ----------
    low
        Smallest coordinates, one number for each dimension.
    high
        Largest coordinates, one number for each dimension.
    min_separation
        Minimum distance between the two points.
    max_separation
        Maximum distance between the two points. None: whatever fits into the box.

    Examples
    --------
    >>> import pairseek as ps
    >>> space = ps.Space([0.0, 0.0], [1.0, 1.0])
    >>> query = ps.Search(space, rng=7).ask()
    >>> len(query.left), len(query.right)
    (2, 2)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    min_separation: float = 0.0
    max_separation: float | None = None

    def __post_init__(self) -> None:
        try:
            low, high = np.atleast_1d(_real(self.low)), np.atleast_1d(_real(self.high))
            least = float(self.min_separation)
            most = None if self.max_separation is None else float(self.max_separation)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidParameter(
                f"a Space from {self.low!r} to {self.high!r}, separation {self.min_separation!r} to "
                f"{self.max_separation!r} ({error}): give a number for each dimension, and numbers for the separation"
            ) from None
        if low.ndim != 1 or low.shape != high.shape or not len(low):
            raise InvalidParameter(f"a Space takes as many lows as highs, received {low.shape} and {high.shape}")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise InvalidParameter(f"the space from {self.low} to {self.high} is empty or infinite")
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))
        most = float(np.min(high - low)) if most is None else most
        if not 0 <= least <= most or most <= 0:
            raise InvalidParameter(
                f"min_separation {self.min_separation} and max_separation {self.max_separation} leave nothing: "
                f"need 0 <= min <= max, and min at most the narrowest side ({float(np.min(high - low)):g})"
            )

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        return len(self.low)

    @property
    def coordinates(self) -> FloatArray:
        """Return the (0, d) coordinates of items: a space has none."""
        return np.empty((0, self.d))

    @property
    def appeal(self) -> FloatArray:
        """Return the (0,) appeals of items: a space has none."""
        return np.empty(0)

    @property
    def spread(self) -> None:
        """Return None: a space has no items to be spread out."""

    def scaled(self) -> Self:
        """Return the space itself: its box is its scale."""
        return self

    def _placed(self, coordinates: FloatArray, appeal: FloatArray) -> Self:  # noqa: ARG002
        """Return the space itself: it has no items to be placed."""
        return self

    def _side(self, value: object) -> Side:
        """Return a point, as one side of a query."""
        return self.point(value)

    def _side_of(self, row: int, point: FloatArray) -> Side:  # noqa: ARG002
        """Return a point, as one side of a query."""
        return self.point(point)

    def _place_of(self, side: Side) -> tuple[FloatArray, float]:
        """Return the (d,) coordinates and the appeal, 0, of one side of a query."""
        return np.asarray(self.point(side)), 0.0

    def _catalogue(self, otherwise: Exception) -> Items:
        """Raise the error, because a space has no items; `Items` return themselves."""
        raise otherwise

    def record(self) -> JSON:
        """Return all that a file holds of the space, as plain data."""
        return {"kind": "space", **asdict(self)}

    @property
    def _fingerprint(self) -> str:
        """Return a text that tells this space from others."""
        return repr(self)

    @property
    def _key(self) -> str:
        """Return the name of this space in the record of an experiment."""
        return f"space:{self}"

    @property
    def _summary(self) -> str:
        """Return what there is to ask about, in words."""
        return "a space"

    def point(self, value: object) -> Point:
        """Return a point of the space as a tuple of floats."""
        try:
            array = _real(value)
        except (TypeError, ValueError, OverflowError):
            array = np.empty(0)
        if array.shape != (self.d,) or not np.all(np.isfinite(array)):
            raise UnknownItem(f"{value!r} is not a point of this space: give {self.d} finite numbers")
        return tuple(array.tolist())
