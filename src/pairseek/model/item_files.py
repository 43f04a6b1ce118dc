"""Files and data frames of items: CSV, NumPy and MATLAB arrays."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.columns import APPEAL_COLUMN, LABEL_COLUMN
from pairseek.core.csv import TEXT_ENDINGS
from pairseek.core.frames import Backend, frame_of
from pairseek.core.notebook import ShownItems
from pairseek.core.types import ItemId
from pairseek.errors import InvalidItems


def items_frame(items: ShownItems, backend: Backend | None) -> Any:
    """Return a data frame of items; reject two columns with the same name."""
    names = ["id", LABEL_COLUMN, APPEAL_COLUMN, *items.data, *items.columns]
    duplicate = next((name for position, name in enumerate(names) if name in names[:position]), None)
    if duplicate is not None:
        raise InvalidItems(f"the data frame would have two columns {duplicate!r}: rename the data column")
    columns = (items.ids, items.labels, items.appeal.tolist(), *items.data.values(), *items.coordinates.T.tolist())
    return frame_of(dict(zip(names, columns, strict=True)), backend)


def write_csv(items: ShownItems, path: Path) -> None:
    """Write items to a CSV file; reject ids and column names that reading it would not restore."""
    columns = [f"x{i}" for i in range(items.coordinates.shape[1])]
    _check_ids_as_text(items.ids)
    reserved = {"id", LABEL_COLUMN, APPEAL_COLUMN}
    taken = sorted(name for name in items.data if name in columns or name.casefold() in reserved)
    if taken:
        raise InvalidItems(f"data has a column {taken[0]!r}, a name that the file reserves: rename it")
    coordinates = items.coordinates.tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "appeal", *items.data, *columns])
        for row, item in enumerate(items.ids):
            writer.writerow(
                [
                    item,
                    items.labels[row],
                    repr(float(items.appeal[row])),
                    *(values[row] for values in items.data.values()),
                    *map(repr, coordinates[row]),
                ]
            )


def _check_ids_as_text(ids: Iterable[ItemId]) -> None:
    """Reject ids that a text file cannot distinguish or does not preserve."""
    texts: dict[str, ItemId] = {}
    for name in ids:
        text = str(name)
        if text != text.strip():
            raise InvalidItems(
                f"the id {name!r} begins or ends with a space, which a CSV file does not preserve: remove the space"
            )
        if text in texts:
            raise InvalidItems(f"the ids {texts[text]!r} and {name!r} are the same in a CSV file: rename one")
        texts[text] = name


def read_arrays(path: Path) -> tuple[Any, list[Any] | None]:
    """Read coordinates, and ids if there are any, from a ``.npy``, ``.npz`` or ``.mat`` file."""
    if not path.exists():
        raise InvalidItems(f"there is no file {path}")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return np.load(path, allow_pickle=False), None
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        elif suffix == ".mat":
            from scipy.io import loadmat

            arrays = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
        else:
            raise InvalidItems(
                f"{path} has an unknown extension {suffix!r}: use {', '.join(TEXT_ENDINGS)}, .xlsx, .parquet, .npy, "
                f".npz or .mat"
            )
    except InvalidItems:
        raise
    except Exception as error:  # noqa: BLE001 - the readers raise many types for damaged files
        raise InvalidItems(f"{path} cannot be read as {suffix}: {error}") from None
    for name in ("coordinates", "X"):
        if name in arrays:
            ids = arrays.get("ids") if suffix == ".npz" else None
            return arrays[name], None if ids is None else list(ids)
    raise InvalidItems(f"{path} contains {sorted(arrays)}: name the array of coordinates 'X'")
