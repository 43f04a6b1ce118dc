"""Public data sets that are not shipped: parsers, and a download verified by a checksum."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path

import numpy as np

from pairseek.core.csv import check_lengths, number, table_rows
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidChoices, InvalidParameter, MissingExtra
from pairseek.people.choices import Choices

JESTER_MISSING = 99.0
_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_DOWNLOAD_TIMEOUT = 60


def fetch_verified(source: str, sha256: str | None) -> Path:
    """Verify the checksum of a file, after downloading it once if the source is an address.

    Parameters
    ----------
    source
        Path, or address that begins with ``https://`` or ``http://``.
    sha256
        The checksum, in hexadecimal. It is required, so that results always refer to the same content.
    """
    if sha256 is None or not _CHECKSUM.fullmatch(sha256.lower()):
        raise InvalidParameter(
            f"the checksum of {source} is {sha256!r}: give the 64 hexadecimal digits that `sha256sum FILE` prints",
            field="sha256",
        )
    if not source.startswith(("https://", "http://")):
        return _verify(Path(source), sha256.lower())
    try:
        import pooch
    except ModuleNotFoundError:
        raise MissingExtra(f"fetching {source}", "data", "; or give the path of a copy") from None
    pooch.get_logger().setLevel(logging.ERROR)
    folder = Path(pooch.os_cache("pairseek")) / "compare"
    download = pooch.HTTPDownloader(timeout=_DOWNLOAD_TIMEOUT)
    try:
        return Path(pooch.retrieve(source, known_hash=f"sha256:{sha256.lower()}", path=folder, downloader=download))
    except ValueError as error:
        raise InvalidChoices(f"{source} is not the expected file: {error}") from None
    except Exception as error:  # noqa: BLE001 - pooch passes on any exception of its transport
        raise InvalidChoices(
            f"{source} could not be fetched ({type(error).__name__}): give the path of a copy"
        ) from None


def _verify(path: Path, sha256: str) -> Path:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read: {error.strerror or error}", field="source") from None
    if digest != sha256:
        raise InvalidChoices(f"{path} has the checksum {digest}, but {sha256} was expected: give the expected file")
    return path


def read_jester(path: Path, *, most_people: int | None = None) -> Choices:
    """Read ratings of jokes: a row per person, with the number of ratings first, then a rating for each joke.

    A rating is in [-10, 10]; 99 means that the joke was not rated. Export the spreadsheets of the data set to CSV
    without a header.

    Parameters
    ----------
    path
        CSV file.
    most_people
        Number of rows to read. None: all.
    """
    table = table_rows(path, InvalidChoices, "a row of ratings for each person")
    ratings = []
    for line, cells in table.lines[:most_people]:
        try:
            count, *values = (number(cell, decimal_comma=table.decimal_comma) for cell in cells)
        except ValueError:
            raise InvalidChoices(f"{path}, line {line}: a rating is not a number") from None
        rated = [(joke, value) for joke, value in enumerate(values, 1) if value != JESTER_MISSING]
        if len(rated) != count:
            raise InvalidChoices(
                f"{path}, line {line}: the first cell announces {count:g} ratings, but there are {len(rated)}: "
                f"give the number of ratings first, and 99 for a joke without one"
            )
        if any(not -10.0 <= value <= 10.0 for _, value in rated):
            raise InvalidChoices(f"{path}, line {line}: a rating is outside of -10 to 10")
        ratings += [(f"p{line}", f"joke {joke:03d}", value) for joke, value in rated]
    return Choices.from_ratings(ratings)


def read_colours(pairs: Path, colours: Path) -> tuple[Choices, FloatArray]:
    """Read choices between colours and the coordinates of the colours.

    Parameters
    ----------
    pairs
        CSV file with the columns person, left, right and winner.
    colours
        CSV file with the columns id and three coordinates, such as L, a and b.
    """
    table = _four_column_rows(colours, "the columns id and three coordinates")
    ids = [row[0] for _, row in table]
    try:
        vectors = np.array([[float(cell) for cell in row[1:4]] for _, row in table])
    except ValueError:
        raise InvalidChoices(f"{colours}: a coordinate is not a number") from None
    rows = []
    for line, (person, left, right, winner) in _four_column_rows(pairs, "the columns person, left, right and winner"):
        if winner not in (left, right):
            raise InvalidChoices(f"{pairs}, line {line}: the winner {winner!r} is neither {left!r} nor {right!r}")
        rows.append((person, winner, right if winner == left else left))
    return Choices.from_pairs(rows, ids=ids), vectors


def _four_column_rows(path: Path, expected_columns: str) -> list[tuple[int, list[str]]]:
    """Return the line numbers and the four cells of the rows below the header of a table."""
    table = table_rows(path, InvalidChoices, expected_columns)
    check_lengths(path, table, InvalidChoices)
    if len(table.lines[0][1]) != 4:
        raise InvalidChoices(f"{path} has {len(table.lines[0][1])} columns: give {expected_columns}")
    return table.lines[1:]
