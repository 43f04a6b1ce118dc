"""Items on disk, with a provenance file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from pairseek._version import __version__
from pairseek.core.files import write_atomically
from pairseek.core.types import JSON, FloatArray
from pairseek.embed.base import TripletEmbedding
from pairseek.embed.triplets import Triplets
from pairseek.embed.vectors import PCA
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.model.items import Items


def provenance(method: TripletEmbedding | PCA, *, held_out: Triplets | None = None) -> JSON:
    """Describe how an embedding was made: method, dimension, settings, seed and prediction error.

    Parameters
    ----------
    method
        A fitted method.
    held_out
        Triplets not used in the fit; the record includes their error.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.embed import PCA, provenance
    >>> method = PCA(n_components=2).fit(np.random.default_rng(0).standard_normal((20, 5)))
    >>> record = provenance(method)
    >>> record["method"], record["dimensions"], round(record["variance_kept"], 2)
    ('pca', 2, 0.67)
    """
    settings = {name: value for name, value in method.get_params().items() if name not in ("progress", "random_state")}
    record: JSON = {
        "pairseek": __version__,
        "method": method.name,
        "dimensions": int(method.embedding_.shape[1]),
        "settings": settings,
    }
    if isinstance(method, PCA):
        share = method.explained_variance_ratio_
        return {**record, "variance_kept": float(share.sum()), "variance_by_dimension": share.tolist()}
    seed = method.random_state
    return {
        **record,
        "seed": int(seed) if isinstance(seed, int | np.integer) else None,
        "shrinkage": method.shrinkage_,
        "validation_triplet_error": method.validation_error_ if np.isfinite(method.validation_error_) else None,
        "held_out_triplet_error": None if held_out is None else 1.0 - method.score(held_out),
        "held_out_triplets": 0 if held_out is None else len(held_out),
    }


def save_items(items: Items, path: str | Path, record: JSON, *, scaled: bool = False) -> tuple[Path, Path]:
    """Write the items as CSV, and their provenance as JSON next to it.

    Parameters
    ----------
    items
        The items as they will be searched.
    path
        Path that ends in .csv.
    record
        Record from `provenance`.
    scaled
        Whether `Items.scaled` was applied; stored in the provenance.

    Returns
    -------
    items_path, provenance_path
        Paths of both files, such as ``wines.csv`` and ``wines.provenance.json``.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.embed import PCA, provenance, save_items
    >>> method = PCA(n_components=2).fit(np.random.default_rng(0).standard_normal((20, 5)))
    >>> table, note = save_items(method.to_items(), "wines.csv", provenance(method))
    >>> table.name, note.name
    ('wines.csv', 'wines.provenance.json')
    """
    items_path = Path(path)
    check_items_path(items_path)
    provenance_path = items_path.with_suffix(".provenance.json")
    full_record = {**record, "items": items.n, "scaled": scaled, "coordinates": _digest(items.coordinates)}
    try:
        items.to_csv(items_path)
        write_atomically(provenance_path, json.dumps(full_record, indent=1, allow_nan=False) + "\n")
    except OSError as error:
        raise InvalidFile(f"cannot write {error.filename or items_path}: {error.strerror or error}") from error
    return items_path, provenance_path


def check_items_path(path: Path) -> None:
    """Raise an error before a long fit if items cannot be written to this path."""
    if path.suffix.lower() != ".csv":
        raise InvalidParameter(
            f"items are written as CSV, but the file is {path.name!r}: give a name that ends in .csv",
            field="path",
        )
    if not path.absolute().parent.is_dir():
        raise InvalidFile(f"cannot write {path}: there is no folder {path.parent}; create it first")


def read_provenance(path: str | Path) -> JSON | None:
    """Read the provenance of the items in a file; return None without a provenance file.

    A provenance file for different coordinates is rejected: the items were edited or replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.embed import PCA, provenance, read_provenance, save_items
    >>> method = PCA(n_components=2).fit(np.random.default_rng(0).standard_normal((20, 5)))
    >>> table, note = save_items(method.to_items(), "teas.csv", provenance(method))
    >>> record = read_provenance("teas.csv")
    >>> record["method"], record["items"], record["scaled"]
    ('pca', 20, False)
    """
    items_path = Path(path)
    provenance_path = items_path.with_suffix(".provenance.json")
    if not provenance_path.is_file():
        return None
    try:
        record = json.loads(provenance_path.read_text(encoding="utf-8"))
        digest = record["coordinates"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidFile(f"{provenance_path} is not a valid provenance file: remove it, or embed again") from None
    if digest != _digest(Items._of_file(items_path).coordinates):
        raise InvalidFile(f"{provenance_path} is not about the items in {items_path}: remove it, or embed again")
    return dict(record)


def _digest(coordinates: FloatArray) -> str:
    return hashlib.sha256(coordinates.astype("<f8").tobytes()).hexdigest()
