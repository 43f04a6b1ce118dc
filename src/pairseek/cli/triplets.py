"""Input of triplets, and the response model for the options --response, --noise and --k."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pairseek.core.types import ItemId
from pairseek.embed import Triplets
from pairseek.errors import InvalidParameter
from pairseek.model.noise import Noise
from pairseek.model.responses import Logistic, Probit, Response


def read_triplets(path: Path, ids: Sequence[ItemId] | None, option: str, where: Sequence[str] | None) -> Triplets:
    """Read the triplets of a CSV file that match the conditions of an option."""
    return Triplets.from_csv(path, ids=ids, where=_conditions(option, where) or None)


def response_of(name: str, noise: Noise, k: float) -> Response:
    """Return the response model with this name."""
    return (Probit if name == "probit" else Logistic)(k, noise)


def _conditions(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Parse conditions of the form COLUMN=VALUE."""
    conditions = {}
    for text in texts or ():
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise InvalidParameter(f"{option} is {text!r}: give COLUMN=VALUE, such as alg=Test")
        conditions[column.strip()] = value.strip()
    return conditions
