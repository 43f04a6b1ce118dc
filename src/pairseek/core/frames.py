"""Data frames and Parquet files, converted to and from columns of plain values.

narwhals handles pandas, polars and pyarrow; pyarrow handles Parquet. Both are in the extra ``frames``, and optional.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pairseek.errors import InvalidParameter, MissingExtra, PairseekError

Columns: TypeAlias = "dict[str, list[Any]]"
EXTENSION = ".parquet"
Backend: TypeAlias = Literal["pandas", "polars", "pyarrow"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""Data frame libraries, in order of preference."""
# Compression can hide a huge table in a small file, so what an uploaded file unpacks to is limited.
MAX_UNPACKED_BYTES = 256_000_000
"""Largest unpacked size of an uploaded file."""
MAX_CELLS = 5_000_000
"""Largest number of cells of an uploaded file; cells without bytes, such as missing ones, need memory too."""
MAX_COLUMNS = 2000
"""Largest number of columns of an uploaded Parquet file, whose description takes longer to read than their cells."""
_BATCH_ROWS = 8192


def is_parquet(path: Path) -> bool:
    """Return whether the file has the extension ``.parquet``."""
    return path.suffix.lower() == EXTENSION


def has_parquet() -> bool:
    """Return whether pyarrow is installed, which reads and writes Parquet."""
    return importlib.util.find_spec("pyarrow") is not None


def frame_columns(frame: Any, error: type[PairseekError]) -> Columns:
    """Return the columns of a data frame, after its pandas index if that has a name; split vector columns."""
    try:
        import narwhals as nw
    except ModuleNotFoundError:
        raise MissingExtra("reading a data frame", "frames") from None
    names = getattr(getattr(frame, "index", None), "names", None)
    if names and all(name is not None for name in names):
        frame = frame.reset_index()
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = f"{type(frame).__module__}.{type(frame).__name__}"
        raise error(
            f"a {kind} is not a data frame: give one of {', '.join(BACKENDS)}; collect() a lazy frame first"
        ) from None
    # pandas allows numbers as column names.
    columns = {str(name): table[name].to_list() for name in table.columns}
    if len(columns) != len(table.columns):
        raise error(f"the data frame has two columns with the same name: {', '.join(map(str, table.columns))}")
    if not len(table):
        raise error("the data frame has no rows")
    return _unnested(columns, "the data frame", error)


def parquet_columns(path: Path, error: type[PairseekError], content: bytes | None = None) -> Columns:
    """Return the columns of a Parquet file; an uploaded file may not unpack to more than a limit."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtra(f"reading {path.name}", "frames") from None
    try:
        with pyarrow.parquet.ParquetFile(path if content is None else io.BytesIO(content)) as file:
            names = file.schema_arrow.names
            if not file.metadata.num_rows:
                raise error(f"{path} has no rows")
            if len(set(names)) != len(names):
                raise error(f"{path} has two columns with the same name: {', '.join(names)}")
            if content is not None and file.metadata.num_columns > MAX_COLUMNS:
                raise error(
                    f"{path} has {file.metadata.num_columns:,} columns: an upload may have {MAX_COLUMNS:,}; give a "
                    f"smaller table"
                )
            texts = [] if content is None else _bounded_texts(path, file, error)
        columns: Columns = {name: [] for name in names}
        size = 0
        # A repeated text is stored once; as a dictionary it is not copied until its size is known.
        with pyarrow.parquet.ParquetFile(
            path if content is None else io.BytesIO(content), read_dictionary=texts
        ) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                size += sum(map(_unpacked_bytes, batch.columns))
                if content is not None and size > MAX_UNPACKED_BYTES:
                    raise _too_long(path, error)
                for name, column in zip(names, batch.columns, strict=True):
                    columns[name] += column.to_pylist()
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except (OSError, pyarrow.ArrowException) as problem:
        first = str(problem).partition("\n")[0]
        raise error(f"{path} cannot be read as Parquet: {first}") from None
    # pandas stores an unnamed index in this column.
    columns.pop("__index_level_0__", None)
    return _unnested(columns, str(path), error)


def _bounded_texts(path: Path, file: Any, error: type[PairseekError]) -> list[str]:
    """Return the text columns of an uploaded file; reject a file whose metadata say that it unpacks to too much."""
    metadata, leaves = file.metadata, [file.schema.column(position) for position in range(file.metadata.num_columns)]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    counts = [sum(group.column(position).num_values for group in groups) for position in range(len(leaves))]
    # The entries of a vector are cells, too.
    cells = max(metadata.num_rows * len(leaves), sum(counts))
    if cells > MAX_CELLS:
        raise error(
            f"{path} has {metadata.num_rows:,} rows and {cells:,} cells: an upload may have {MAX_CELLS:,} cells; give "
            f"a smaller table"
        )
    fixed = sum(count * leaf.length for count, leaf in zip(counts, leaves, strict=True) if leaf.length > 0)
    if max(fixed, sum(group.total_byte_size for group in groups)) > MAX_UNPACKED_BYTES:
        raise _too_long(path, error)
    texts = [leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    nested = next((leaf for leaf in texts if leaf.path != leaf.name), None)
    if nested is not None:
        raise error(f"{path}, column {nested.path!r}: an upload has no lists or records of texts; give one per cell")
    return [leaf.path for leaf in texts]


def _unpacked_bytes(column: Any) -> int:
    """Return the size of a column of a batch, with each repetition of a text."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    try:
        lengths = pyarrow.compute.binary_length(column.dictionary)
    except pyarrow.ArrowException:
        # Not texts: numbers, say, which are small.
        return int(column.nbytes)
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def _too_long(path: Path, error: type[PairseekError]) -> PairseekError:
    return error(f"{path} unpacks to more than {MAX_UNPACKED_BYTES // 1_000_000} MB: give a smaller table")


def text_rows(columns: Mapping[str, Sequence[Any]]) -> list[tuple[int, list[str]]]:
    """Return the header and rows as text with line numbers, as in the equivalent CSV file."""
    cells = [[text_of(value) for value in column] for column in columns.values()]
    return [(1, list(columns)), *((line, list(row)) for line, row in enumerate(zip(*cells, strict=True), 2))]


def text_of(value: object) -> str:
    """Return a cell as text; a missing value is empty."""
    return "" if value is None or value != value else str(value)


def _unnested(columns: Columns, what: str, error: type[PairseekError]) -> Columns:
    """Split each column of vectors into one column per entry."""
    out: Columns = {}
    for name, values in columns.items():
        if not isinstance(values[0], list | tuple | np.ndarray):
            out[name] = values
            continue
        lengths = {len(value) if isinstance(value, list | tuple | np.ndarray) else None for value in values}
        if len(lengths) != 1:
            raise error(
                f"{what}, column {name!r}: the vectors differ in length, or some are missing: make them equally long"
            )
        for position, entries in enumerate(np.array([list(value) for value in values]).T):
            out[f"{name}{position}"] = entries.tolist()
    return out


def frame_of(columns: Mapping[str, Sequence[Any]], backend: Backend | None) -> Any:
    """Return a data frame of the given library, by default the first of `BACKENDS` that is installed."""
    try:
        import narwhals as nw
    except ModuleNotFoundError:
        raise MissingExtra("a data frame", "frames") from None
    if backend not in (None, *BACKENDS):
        raise InvalidParameter(f"backend is {backend!r}: give one of {', '.join(BACKENDS)}", field="backend")
    for name in BACKENDS if backend is None else (backend,):
        try:
            return nw.from_dict({key: list(values) for key, values in columns.items()}, backend=name).to_native()
        except ModuleNotFoundError:
            continue
    missing = backend or " or ".join(BACKENDS[:2])
    raise InvalidParameter(f"{missing} is not installed: pip install {backend or BACKENDS[0]}", field="backend")
