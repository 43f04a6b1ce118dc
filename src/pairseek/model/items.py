"""Items: points with ids, labels, appeal and data."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from pairseek.core.lazy import LazyModule, cached_property
from pairseek.core.types import JSON, FloatArray, IntArray, ItemId, Side
from pairseek.core.validation import caller_level, without_numpy
from pairseek.errors import DimensionWarning, InvalidItems, InvalidParameter, ScaleWarning, UnknownItem
from pairseek.model import vectors as _vectors
from pairseek.model.item_validation import as_list, validated
from pairseek.model.vectors import VectorMap

if TYPE_CHECKING:
    from pairseek.core import columns as _files
    from pairseek.core import csv as _csv
    from pairseek.core import notebook
    from pairseek.core.columns import ColumnRules
    from pairseek.core.frames import Backend
    from pairseek.model import item_files
    from pairseek.model import scales as _scales
else:
    # Items made of arrays need no files, and only a notebook draws them.
    _csv, _files, notebook = (LazyModule(f"pairseek.core.{name}") for name in ("csv", "columns", "notebook"))
    _scales, item_files = (LazyModule(f"pairseek.model.{name}") for name in ("scales", "item_files"))


@dataclass(frozen=True, eq=False)
class Items:
    """Items in an embedding, validated at construction and immutable.

    If the standard deviations of two coordinates differ by more than a factor of 20, a `ScaleWarning` is issued,
    because the narrow one hardly affects distances; `standardized` brings all coordinates to one scale.

    Parameters
    ----------
    coordinates
        (n, d) finite numbers, n >= 2, d >= 1. Items may share a point; such a pair is asked only if the response has
        residual utilities. None: the items have no coordinates (d = 0), and `ids` is required.
    ids
        One int or str per item; 0..n-1 if None.
    labels
        One text per item, shown to people; the ids if None.
    appeal
        One number per item, added to its logit for every person; zero if None.
    data
        Further columns, stored unchanged: a sequence of n values for each name.

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
    # Names of the coordinates in the source file, for messages.
    _columns: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    vector_map: VectorMap | None = field(default=None, init=False, repr=False)
    """Map from vectors to these coordinates, for items from `from_vectors`; otherwise None."""

    def __init__(
        self,
        coordinates: npt.ArrayLike | None = None,
        ids: Sequence[object] | npt.NDArray[np.generic] | None = None,
        labels: Sequence[str] | None = None,
        appeal: npt.ArrayLike | None = None,
        data: Mapping[str, Sequence[object]] | None = None,
    ) -> None:
        self._set(validated(coordinates, ids, labels, appeal, data))
        self._with_warnings()

    @classmethod
    def _without_warnings(
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
        """Return validated items without warnings, for derived items and for callers that issue them themselves.

        At least two items are required or, without coordinates, `least`.
        """
        items = cls.__new__(cls)
        items._set(validated(coordinates, ids, labels, appeal, data, least))
        items._set({"_columns": None if columns is None else tuple(columns), "vector_map": vector_map})
        return items

    def _set(self, attributes: Mapping[str, object]) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def _with_warnings(self) -> Self:
        """Issue a `ScaleWarning` or a `DimensionWarning` if there is a reason, and return the items."""
        if self.scale_note is not None:
            warnings.warn(self.scale_note, ScaleWarning, stacklevel=caller_level())
        note = _vectors.dimension_note(self.coordinates)
        if note is not None:
            warnings.warn(note, DimensionWarning, stacklevel=caller_level())
        return self

    def __len__(self) -> int:
        return len(self.coordinates)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        # Unpickling goes through validation, so that copies are read-only too.
        coordinates = self.coordinates if self.d else None
        parts = (coordinates, self.ids, self.labels, self.appeal, dict(self.data), self._columns, self.vector_map)
        return type(self)._without_warnings, parts

    def __repr__(self) -> str:
        note = "" if self.columns_note is None else f"; {self.columns_note}"
        return f"Items(n={self.n}, d={self.d}, hash={self.hash[:8]}{note})"

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
        """Return the SHA-256 of what a search depends on: coordinates, ids and appeal."""
        digest = hashlib.sha256(repr((self.coordinates.shape, self.ids)).encode())
        digest.update(self.coordinates.astype("<f8").tobytes())
        digest.update(self.appeal.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def _positions(self) -> dict[ItemId, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def index(self, item: object) -> int:
        """Return the row of the item with this id."""
        plain = without_numpy(item)
        # True == 1, but a bool is never meant as an id.
        if not isinstance(plain, bool):
            try:
                return self._positions[plain]
            except (KeyError, TypeError):
                pass
        similar = self._id_of_other_type(plain)
        if similar is not None:
            raise UnknownItem(f"{similar!r} is an id, {plain!r} is not: ids read from a CSV file are text")
        raise UnknownItem(f"no item has the id {item!r}: the ids run from {self.ids[0]!r} to {self.ids[-1]!r}")

    def find(self, item: Side) -> int:
        """Return the row of the item with this id, or -1 if no item has it."""
        return self._positions.get(item, -1)  # type: ignore[arg-type]

    def _with_coordinates(self, coordinates: FloatArray, appeal: FloatArray) -> Self:
        """Return these items with other coordinates and appeals."""
        return self._without_warnings(coordinates, self.ids, self.labels, appeal, self.data)

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

    def _require_catalogue(self, error: Exception) -> Items:  # noqa: ARG002
        """Return the items themselves; a `Space`, which has no catalogue, raises the error instead."""
        return self

    def record(self) -> JSON:
        """Return the items as plain data for a file."""
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
        """Return a text that identifies these items: their hash."""
        return self.hash

    @property
    def _key(self) -> str:
        """Return the key of these items in the record of an experiment."""
        return f"items:{self.hash}"

    @property
    def _summary(self) -> str:
        """Return a short description."""
        return f"{self.n} items"

    def _id_of_other_type(self, value: object) -> ItemId | None:
        """Return the id that equals this value when written, but is of the other type, text or number."""
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        if isinstance(value, int):
            return str(value) if str(value) in self._positions else None
        return next((name for name in self.ids if isinstance(name, int) and str(name) == value.strip()), None)

    def subset(self, rows: IntArray) -> Self:
        """Return the items in the given rows, in that order."""
        row_list = rows.tolist()
        return self._without_warnings(
            self.coordinates[rows] if self.d else None,
            [self.ids[row] for row in row_list],
            [self.labels[row] for row in row_list],
            self.appeal[rows],
            {name: [values[row] for row in row_list] for name, values in self.data.items()},
            self._columns,
            self.vector_map,
        )

    @cached_property
    def spread(self) -> float:
        """Return sqrt(tr cov(items)), the λ of EPMV in the paper's experiments."""
        return float(np.sqrt(np.var(self.coordinates, axis=0, ddof=1).sum()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates: those in the source file, or x0, x1 and so on."""
        return tuple(f"x{i}" for i in range(self.d)) if self._columns is None else self._columns

    @property
    def columns_note(self) -> str | None:
        """Describe which columns of the source file are coordinates and which are data; None without a file."""
        return None if self._columns is None else _files.columns_note(self._columns, list(self.data)) or None

    @cached_property
    def scale_contrast(self) -> _scales.ScaleContrast | None:
        """Return the columns with the largest and smallest standard deviations; None if every column is constant."""
        return _scales.scale_contrast(self.coordinates, self._columns)

    @cached_property
    def scale_note(self) -> str | None:
        """Return a warning if the standard deviations of two columns differ by more than a factor of 20; else None."""
        return _scales.scale_note(self.coordinates, self._columns)

    def standardized(self) -> Self:
        """Return the items with each coordinate centred and divided by its standard deviation.

        A constant coordinate becomes zero. Ids, labels, appeal and data do not change.

        Examples
        --------
        >>> wines = Items([[10.0, 0.0], [20.0, 1.0], [30.0, 2.0]])
        >>> wines.standardized().coordinates.round(6).tolist()
        [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]
        """
        if not self.d:
            return self
        points = _scales.standardize(self.coordinates)
        return self._without_warnings(points, self.ids, self.labels, self.appeal, self.data, self._columns)

    def scaled(self) -> Self:
        """Return the items centred and scaled by sqrt(d)/(3 sqrt(smallest eigenvalue of the covariance)).

        This is the paper's rule (supplement, "Performance across dimensions"): three standard deviations along the
        narrowest direction reach the corner of [-1, 1]^d.
        """
        if not self.d:
            return self
        points = _scales.cover_cube(self.coordinates)
        return self._without_warnings(points, self.ids, self.labels, self.appeal, self.data, self._columns)

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
        answers: int = _vectors.DEFAULT_ANSWERS,
        standardize: _vectors.Standardize = "auto",
        vector_map: VectorMap | None = None,
    ) -> Self:
        """Return low-dimensional items from high-dimensional vectors, such as embeddings of texts or images.

        Parameters
        ----------
        vectors
            (n, D) numbers, a mapping of ids to vectors, a data frame (pyarrow, pandas, polars), or the path of a
            ``.npy`` or ``.parquet`` file. In a table, ``id``, ``label`` and ``appeal`` mean what they say, a column of
            lists (or failing that, the numeric columns) holds the vectors, and other columns are data.
        ids, labels, appeal, data
            As for `Items`; they override the columns of a table.
        dimension
            Number of principal axes to keep. ``"auto"``: three for each of the `answers`, but no more than 64, or than
            it takes to explain 95 % of the variance.
        answers
            Intended number of answers per person.
        standardize
            Whether to divide each component by its standard deviation over the items. ``"auto"``: if the components
            have different units.
        vector_map
            Existing map to use instead, such as `Items.vector_map` of yesterday's catalogue.

        Examples
        --------
        >>> vectors = np.random.default_rng(0).standard_normal((500, 64)) / np.arange(1, 65)
        >>> items = Items.from_vectors(vectors, dimension=5, standardize=False)
        >>> items.d, round(items.vector_map.provenance["variance_kept"], 2)
        (5, 0.9)
        """
        from pairseek.model.vector_tables import read_vectors  # few searches start from vectors

        table = read_vectors(vectors)
        names = table.ids if ids is None else as_list(ids, "ids", len(table.vectors))
        if vector_map is None:
            vector_map = _vectors.principal_map(
                table.vectors, dimension=dimension, answers=answers, standardize=standardize, ids=names
            )
        elif not isinstance(vector_map, VectorMap):
            raise InvalidParameter(f"vector_map is {vector_map!r}: give a VectorMap, such as items.vector_map")
        return cls._without_warnings(
            vector_map.place(table.vectors, names),
            names,
            table.labels if labels is None else labels,
            table.appeal if appeal is None else appeal,
            {**table.data, **(data or {})},
            vector_map=vector_map,
        )

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        keep: Sequence[str] = (),
        coordinates: Sequence[str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Read a CSV or Parquet file with a header row.

        The column ``id`` (or ``item``, ``name``, one that ends in ``_id``, ``movieId`` or ``asin``, or failing those a
        non-numeric first column) names the items, ``label`` is shown to people and ``appeal`` is their appeal,
        regardless of case. All other numeric columns are coordinates and text columns are data; `columns` and `data` of
        the result list them. An unnamed first column that numbers the rows is the id if nothing else is, and never a
        coordinate. Files with two candidate id columns, without a header row, or with blank ids or labels are rejected.
        Ids and data are read as text: item ``"7"``, not 7.

        Text files may use UTF-8, UTF-16 or Windows-1252, with cells separated by commas, semicolons or tabs. Decimal
        commas are recognized unless commas separate the cells.

        Parameters
        ----------
        keep
            Numeric columns to keep as data.
        coordinates
            Coordinate columns; other columns without a role become data. An empty list: the items have no coordinates.
            None: all numeric columns.
        columns
            Columns by role, such as ``{"id": "sku", "label": "title"}``, where the file uses other names.
        """
        return cls._of_file(path, _files.ColumnRules(keep, coordinates, columns), as_table=True)._with_warnings()

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        keep: Sequence[str] = (),
        coordinates: Sequence[str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Build items from a pandas, polars or pyarrow data frame; requires the extra ``frames``.

        Columns have the same roles as in `from_csv`. A named pandas index counts as a column, a column of vectors as
        one coordinate per entry, and ids keep their type: item 7, not ``"7"``.
        """
        rules = _files.ColumnRules(keep, coordinates, columns)
        return cls._without_warnings(**_files.items_of_frame(frame, rules))._with_warnings()

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame that `from_frame` can read, with ``keep`` listing the numeric data columns.

        `backend` is ``"pandas"``, ``"polars"`` or ``"pyarrow"``. None: the first that is installed.
        """
        return item_files.items_frame(self, backend)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file that `from_csv` can read, with ``keep`` listing the numeric data columns.

        Integer ids come back as text. Ids that would then coincide, or lose a leading or trailing space, are rejected.
        """
        item_files.write_csv(self, Path(path))

    @classmethod
    def from_file(cls, path: str | Path, *, coordinates: Sequence[str] | None = None) -> Self:
        """Read a file of any supported format, recognized by its extension.

        ``.csv``, ``.tsv``, ``.txt`` and ``.parquet`` are read by `from_csv`, which explains `coordinates`. Others are
        ``.npy``, ``.npz`` (array ``coordinates`` or ``X``, optionally ``ids``) and ``.mat`` (``X``).
        """
        return cls._of_file(path, _files.ColumnRules(coordinates=coordinates))._with_warnings()

    @classmethod
    def _of_file(
        cls, path: str | Path, rules: ColumnRules | None = None, *, content: bytes | None = None, as_table: bool = False
    ) -> Self:
        """Read items like `from_file` or, with `as_table`, like `from_csv`, without warnings."""
        path, rules = Path(path), rules or _files.ColumnRules()
        if as_table or _csv.is_table(path):
            return cls._without_warnings(**_files.read_items(path, rules, content), least=1 if rules.optional else 2)
        if rules.coordinates is not None:
            raise InvalidItems(f"{path} has no named columns: omit the argument coordinates")
        points, ids = item_files.read_arrays(path)
        return cls._without_warnings(points, ids)
