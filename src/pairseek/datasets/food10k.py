"""Embeddings of Yummly Food-10k by the authors of the paper, and published facts about them.

The embeddings do not come with this package. The environment variable ``PAIRSEEK_DATA`` can name a folder with local
copies; otherwise they are downloaded once from a fixed commit of the authors' repository and verified by checksum. The
facts (scale, triplet error, fitted noise constants) are included: see ``food10k.SOURCE.txt``.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from pairseek.errors import InvalidItems, InvalidParameter, MissingExtra
from pairseek.model.items import Items
from pairseek.model.noise import PUBLISHED_NOISES, Noise
from pairseek.model.responses import Logistic, Probit, Response

DATA_VARIABLE = "PAIRSEEK_DATA"
MIRROR_VARIABLE = "PAIRSEEK_FOOD10K_URL"
COMMIT = "9e621462af6b7ca502b362b1415c781dc10eb404"
BASE_URL = f"https://raw.githubusercontent.com/siplab-gt/pairsearch/{COMMIT}/make-embedding/data/"
_LOCAL_FOLDERS = ("data/food10k", "food10k", ".")
_RESPONSES: dict[str, tuple[str, type[Response]]] = {
    "logistic": ("logistic", Logistic),
    "probit": ("gaussian", Probit),
}
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Food10kFacts:
    """Published facts about the embedding in d dimensions.

    Attributes
    ----------
    d, n
        Number of dimensions and of items.
    scale
        Scale factor of the centred coordinates, as in `Items.scaled`.
    triplet_error
        Fraction of training triplets that the embedding violates.
    best
        Noise kind with the highest likelihood for ``"logistic"`` and for ``"probit"``.
    source, size, sha256
        Name, size and checksum of the authors' file.
    """

    d: int
    n: int
    scale: float
    triplet_error: float
    best: MappingProxyType[str, Noise]
    source: str
    size: int
    sha256: str
    _constants: MappingProxyType[str, Any]

    def response(self, name: Literal["logistic", "probit"], noise: Noise) -> Response:
        """Return the response model with the published noise constant.

        Examples
        --------
        >>> food10k_facts(4).response("logistic", "normalized")
        Logistic(k=1.5636842555329606, noise='normalized', lapse=0.0)
        """
        if name not in _RESPONSES or noise not in PUBLISHED_NOISES:
            raise InvalidParameter(
                f"no constant was published for {name!r} with {noise!r} noise: use {' or '.join(_RESPONSES)} with "
                f"{', '.join(PUBLISHED_NOISES)}"
            )
        published_name, response_type = _RESPONSES[name]
        return response_type(self._constants[published_name][noise]["k"], noise)


@cache
def _published() -> dict[int, Food10kFacts]:
    text = (resources.files(__package__) / "food10k.json").read_text(encoding="utf-8")
    facts = {}
    for d, record in ((int(key), value) for key, value in json.loads(text).items()):
        best = {name: record["best"][published] for name, (published, _) in _RESPONSES.items()}
        facts[d] = Food10kFacts(
            d,
            record["n"],
            record["scale"],
            record["triplet_error"],
            MappingProxyType(best),
            record["source"],
            record["bytes"],
            record["sha256"],
            MappingProxyType(record["k"]),
        )
    return facts


def food10k_dimensions() -> tuple[int, ...]:
    """Return the dimensions of the published embeddings.

    Examples
    --------
    >>> food10k_dimensions()
    (2, 3, 4, 5, 6, 7, 9, 12, 15, 20)
    """
    return tuple(_published())


def food10k_facts(d: int) -> Food10kFacts:
    """Return the published facts about the embedding in d dimensions."""
    if isinstance(d, bool) or d not in _published():
        raise InvalidParameter(
            f"Food-10k has no embedding in {d!r} dimensions: use one of {', '.join(map(str, _published()))}", field="d"
        )
    return _published()[d]


def food10k(d: int, *, base_url: str | None = None) -> Items:
    """Return the 12,624 items of Food-10k in d dimensions as published, neither centred nor scaled.

    The experiments of the paper use ``food10k(d).scaled()``.

    Parameters
    ----------
    d
        One of `food10k_dimensions`.
    base_url
        Address from which to download the authors' files if there is no local copy; None for the environment variable
        ``PAIRSEEK_FOOD10K_URL``, or else the authors' repository.
    """
    facts = food10k_facts(d)
    path = _local_copy(facts) or _download(facts, base_url or os.environ.get(MIRROR_VARIABLE) or BASE_URL)
    items = Items.from_file(path)
    if (items.n, items.d) != (facts.n, facts.d):
        raise InvalidItems(
            f"{path} contains {items.n} items in {items.d} dimensions, but Food-10k has {facts.n} in {facts.d}: remove "
            f"the file, or replace it with the published {facts.source}"
        )
    return items


def synthetic(d: int, *, n: int = 12_624) -> Items:
    """Return normally distributed items, by default as many as in Food-10k; every call returns the same items.

    Examples
    --------
    >>> synthetic(4).n, synthetic(3, n=50).d
    (12624, 3)
    """
    for name, value, minimum in (("d", d, 1), ("n", n, 2)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
            raise InvalidParameter(f"{name} of synthetic items is {value!r}: give a whole number, at least {minimum}")
    return Items(np.random.default_rng([int(d), int(n)]).standard_normal((n, d)))


def _file_names(facts: Food10kFacts) -> tuple[str, str]:
    return f"items-d{facts.d:02d}.npy", facts.source


def _local_copy(facts: Food10kFacts) -> Path | None:
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return None
    candidates = (Path(folder) / folder_name / name for folder_name in _LOCAL_FOLDERS for name in _file_names(facts))
    return next((path for path in candidates if path.is_file()), None)


def local_folder() -> Path | None:
    """Return the folder of local copies below ``PAIRSEEK_DATA``; None if it has no Food-10k file."""
    copies = (_local_copy(food10k_facts(d)) for d in food10k_dimensions())
    return next((path.parent for path in copies if path is not None), None)


def _download(facts: Food10kFacts, base_url: str) -> Path:
    try:
        import pooch
    except ModuleNotFoundError:
        raise MissingExtra("downloading Food-10k", "data", f"; or {_instructions(facts)}") from None
    # Suppress pooch's download messages.
    pooch.get_logger().setLevel(logging.ERROR)
    url = f"{base_url.rstrip('/')}/{facts.source}"
    cache = Path(pooch.os_cache("pairseek")) / "food10k"
    try:
        return Path(
            pooch.retrieve(
                url,
                known_hash=f"sha256:{facts.sha256}",
                fname=facts.source,
                path=cache,
                downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS),
            )
        )
    except ValueError as error:
        raise InvalidItems(f"{url} is not the published file: {error}; {_instructions(facts)}") from None
    except Exception as error:  # noqa: BLE001 - pooch passes on any exception of its transport
        reason = str(error) if 0 < len(str(error)) < 100 else type(error).__name__
        raise InvalidItems(
            f"the Food-10k embedding in {facts.d} dimensions has no local copy and could not be downloaded from {url} "
            f"({reason}); {_instructions(facts)}"
        ) from None


def _instructions(facts: Food10kFacts) -> str:
    npy, mat = _file_names(facts)
    folder = os.environ.get(DATA_VARIABLE)
    target = f"{folder}{os.sep}data{os.sep}food10k" if folder else f"a folder data{os.sep}food10k"
    setting = "" if folder else f" and set {DATA_VARIABLE} to the parent of the folder data"
    substitute = 'without the data, --data synthetic (in Python, data="synthetic") uses random items of the same shape'
    return f"put {mat} (or {npy}) into {target}{setting}, or set {MIRROR_VARIABLE} to another source; {substitute}"
